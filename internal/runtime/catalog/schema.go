package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxText bounds what a text of a model may show of itself, in characters.
const maxText = 400

// errUnseen refuses a schema that cannot be shown: names and values in it have characters that nobody sees.
var errUnseen = errors.New("a name or a value has characters that nobody sees")

// A schemaView writes a schema anew as agents may be shown it.
type schemaView struct {
	in    *json.Decoder
	out   bytes.Buffer
	texts bool // it has texts that describe
}

// What a part of a schema is.
const (
	aSchema  = iota // a schema, or a list of schemas
	byName          // an object of schemas
	someData        // names and values, which count as they are
	someText        // a text that describes
	leftOut         // what nothing depends on
)

// shownSchema returns a schema of a model's as agents may be shown it: with the keywords of JSON Schema only, and texts that describe made one
// bounded line. texts reports whether there are any. It reads the schema once. The error is errUnseen, or says that the schema is no JSON.
func shownSchema(raw json.RawMessage) (shown json.RawMessage, texts bool, err error) {
	v := schemaView{in: json.NewDecoder(bytes.NewReader(raw))}
	v.in.UseNumber()
	if err := v.write(aSchema); err != nil {
		return nil, false, err
	}
	return v.out.Bytes(), v.texts, nil
}

func (v *schemaView) write(part int) error {
	token, err := v.in.Token()
	if err != nil {
		return err
	}
	switch x := token.(type) {
	case json.Delim:
		return v.list(part, x)
	case string:
		switch {
		case part == someText:
			x, v.texts = agent.OneLine(x, maxText), true
		case part != leftOut && !seen(x):
			return errUnseen
		}
		v.out.Write(agent.Encoded(x))
	case json.Number:
		v.out.WriteString(x.String())
	default:
		v.out.Write(agent.Encoded(x)) // a boolean, or null
	}
	return nil
}

// list writes an object or an array whose beginning has been read.
func (v *schemaView) list(part int, begins json.Delim) error {
	v.out.WriteString(begins.String())
	for first := true; v.in.More(); {
		start, inner := v.out.Len(), part
		if !first {
			v.out.WriteByte(',')
		}
		if begins == '{' {
			name, err := v.in.Token()
			if err != nil {
				return err
			}
			if inner = inside(part, name.(string)); inner != leftOut && !seen(name.(string)) {
				return errUnseen
			}
			v.out.Write(append(agent.Encoded(name), ':'))
		}
		if err := v.write(inner); err != nil {
			return err
		}
		if inner == leftOut {
			v.out.Truncate(start)
		} else {
			first = false
		}
	}
	ends, err := v.in.Token()
	if err == nil {
		v.out.WriteString(ends.(json.Delim).String())
	}
	return err
}

// inside returns the kind of the member of that name.
func inside(part int, name string) int {
	switch part {
	case aSchema:
	case byName:
		return aSchema
	default:
		return part
	}
	switch name {
	case "description", "title":
		return someText
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return byName
	case "items", "prefixItems", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else", "allOf", "anyOf", "oneOf":
		return aSchema
	case "type", "enum", "const", "default", "format", "pattern", "required", "dependentRequired", "$ref", "uniqueItems", "multipleOf", "readOnly", "writeOnly",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties":
		return someData
	}
	return leftOut
}

func seen(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !agent.Seen(r) && r != '\n' && r != '\t' })
}
