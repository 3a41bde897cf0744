package contract

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// A misspelled constraint is refused with the correct name. Annotations are not.
func TestMisspeltConstraints(t *testing.T) {
	t.Parallel()
	for name, meant := range map[string]string{"minitems": "minItems", "min-items": "minItems",
		"minimum_items": "minItems", "max_items": "maxItems", "mininum": "minimum", "min_itmes": "minItems",
		"propreties": "properties",
		"Required":   "required", "requierd": "required", "require": "required", "property": "properties",
		"Type":  "type",
		"types": "type", "item": "items", "additional_properties": "additionalProperties",
		"min_length": "minLength", "max_len": "maxLength", "patern": "pattern", "constrains": "constraints",
		"one_of": "oneOf", "enums": "enum"} {
		for _, at := range []string{"", "/properties/movies", "/constraints/properties/movies"} {
			doc := `{"` + name + `":["x"]}`
			for _, step := range []string{"movies", "properties", "constraints"} {
				if strings.Contains(at, "/"+step) {
					doc = `{"` + step + `":` + doc + `}`
				}
			}
			_, err := Compile(json.RawMessage(doc))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Pointer != at+"/"+name ||
				!strings.HasSuffix(invalid.Reason, "it is written "+meant) {
				t.Errorf("%s: %v, want %s", doc, err, meant)
			}
			if _, err := CompileStored(json.RawMessage(doc)); err != nil {
				t.Errorf("stored %s: %v", doc, err)
			}
			if _, odd, err := compileTolerant(json.RawMessage(doc)); err != nil || len(odd) != 1 || odd[0] != *invalid {
				t.Errorf("a program's %s: %v, %v", doc, odd, err)
			}
		}
	}
	for _, name := range []string{"title", "note", "notes", "comment", "$comment", "x-type", "format", "formats",
		"example", "unit", "name", "purpose", "nullable", "id", "key", "value", "requiredIf", "required_by", "multiple",
		"constant", "allow", "typed", "definition", "discriminator", "enumNames", "minimumDate",
		"formatMinimum", "propertyOrder", "errorMessage", "typeName", "itemsType", "dependencies", "additionalItems",
		"größe", ""} {
		if _, err := Compile(json.RawMessage(`{"` + name + `":1}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// names of keys are not constraints
	if _, err := Compile(json.RawMessage(
		`{"properties":{"Type":{},"minitems":{}},"required":["Type"],"enum":[{"types":1}],"default":{"item":1}}`)); err != nil {
		t.Error(err)
	}
}

// A signature that was stored before, or that a stored program uses, is still accepted.
func TestMisspeltConstraintsOfSignatures(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"inputs":[{"name":"q"}],"outputs":[{"name":"a","schema":{"min_length":1}}]}`)
	var bad *SignatureError
	if _, err := ParseNewSignature(raw); !errors.As(err, &bad) || bad.Pointer != "/outputs/0/schema/min_length" {
		t.Errorf("a new one: %v", err)
	}
	s, err := ParseSignature(raw)
	if err != nil || s.Outputs[0].Check(json.RawMessage(`"x"`)) != nil {
		t.Errorf("a stored one: %v", err)
	}
}

// If keys differ only by case or separators, the violation names the right ones. The value is not changed.
func TestViolationsNameTheKeyToUse(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"type":"object","required":["status","movie_list","n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	v := s.Check(json.RawMessage(`{"Status":"ok","movieList":[],"other":1,"STATUS":2}`))
	if v == nil {
		t.Fatal("no violation")
	}
	raw, _ := json.Marshal(v.Metadata["rename_keys"])
	if string(raw) != `{"STATUS":"status","movieList":"movie_list"}` ||
		!strings.Contains(v.Message, `its key "movieList" must be "movie_list"`) {
		t.Errorf("%s: %s", raw, v.Message)
	}
	if v := s.Check(json.RawMessage(`{"x":1}`)); v == nil || v.Metadata["rename_keys"] != nil {
		t.Errorf("nothing to rename: %+v", v)
	}
}
