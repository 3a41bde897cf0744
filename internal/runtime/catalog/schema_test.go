package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// rules reports what some client rejects in a schema. Visual Studio Code and Copilot reject an array without items.
// Gemini rejects enums of anything but strings, lists of types and most keywords. OpenAI's strict form rejects anything
// that it does not list.
func rules(schema any, strict bool) error {
	m, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", schema)
	}
	for name := range m {
		if !slices.Contains([]string{"type", "description", "enum", "minimum", "maximum", "minItems", "maxItems",
			"items", "properties", "required", "anyOf"}, name) && (!strict || name != "additionalProperties") {
			return fmt.Errorf("the keyword %s", name)
		}
	}
	kind := m["type"]
	if list, several := kind.([]any); several {
		if !strict || len(list) != 2 || list[1] != "null" {
			return fmt.Errorf("the types %v", list)
		}
		kind = list[0]
	}
	inner := []any{}
	switch kind {
	case "array":
		inner = append(inner, m["items"])
	case "object":
		properties, _ := m["properties"].(map[string]any)
		required, _ := m["required"].([]any)
		if properties == nil || strict && (len(required) != len(properties) || m["additionalProperties"] != false) {
			return fmt.Errorf("the object %v", m)
		}
		for _, name := range required {
			if properties[name.(string)] == nil {
				return fmt.Errorf("%v is required and no property", name)
			}
		}
		for _, p := range properties {
			inner = append(inner, p)
		}
	case nil:
		if strict && m["anyOf"] == nil {
			return fmt.Errorf("any value: %v", m)
		}
	}
	if enum, has := m["enum"].([]any); has && (kind != "string" || len(enum) == 0 || slices.Contains(enum, "") ||
		slices.ContainsFunc(enum, func(v any) bool { _, is := v.(string); return !is && (!strict || v != nil) })) {
		return fmt.Errorf("the enum %v of %v", enum, kind)
	}
	for name, of := range map[string]any{"items": "array", "minItems": "array", "properties": "object",
		"required": "object", "additionalProperties": "object"} {
		if m[name] != nil && kind != of {
			return fmt.Errorf("%s beside the type %v", name, kind)
		}
	}
	if several, has := m["anyOf"].([]any); has {
		if inner = append(inner, several...); kind != nil || len(several) < 2 || m["description"] != nil {
			return fmt.Errorf("anyOf %v beside the type %v", several, kind)
		}
	}
	for _, s := range inner {
		if err := rules(s, strict); err != nil {
			return err
		}
	}
	return nil
}

func decoded(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"type":"object","properties":{"b":{"type":"string","description":"a\n\u202eb"},"a":{"$comment":"x","title":"t"}},"x-mcp-header":"y"}`,
			`{"type":"object","properties":{"b":{"type":"string","description":"a b"},"a":{"description":"t"}}}`},
		{`{"type":["string","null"],"format":"email","default":"x"}`,
			`{"anyOf":[{"type":"string","description":"Default: \"x\". Format: email."},{"type":"null"}]}`},
		{`{"type":["number","null"],"exclusiveMinimum":0,"multipleOf":0.5}`,
			`{"anyOf":[{"type":"number","description":"More than: 0. A multiple of: 0.5.","minimum":0},{"type":"null"}]}`},
		{`{"anyOf":[{"type":"string","format":"date"},{"type":"null"}],"maxLength":10}`,
			`{"anyOf":[{"type":"string","description":"Format: date. Characters at most: 10."},{"type":"null"}]}`},
		{`{"$ref":"#/$defs/d","description":"When","$defs":{"d":{"type":"string","format":"date","description":"A day"}}}`,
			`{"type":"string","description":"When. Format: date."}`},
		{`{"type":"string","allOf":[{"type":"string","format":"date"},{"maxLength":10}]}`,
			`{"type":"string","description":"Format: date."}`},
		{`{"type":"string","nullable":true}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		{`{"type":"string","format":"email","description":"Where to"}`,
			`{"type":"string","description":"Where to. Format: email."}`},
		{`{"type":"array"}`, `{"type":"array","items":{}}`}, {`{"type":"Object"}`, `{"type":"object","properties":{}}`},
		{`{"enum":["a","b"]}`, `{"type":"string","enum":["a","b"]}`},
		{`{"const":"a"}`, `{"type":"string","enum":["a"]}`},
		{`{"type":"integer","enum":[1,2]}`, `{"type":"integer","description":"One of: [1,2]."}`},
		{`{"type":["integer","number"],"enum":[1,2.5]}`, `{"type":"number","description":"One of: [1,2.5]."}`},
		{`{"type":["integer","null"],"enum":[1,2,null]}`,
			`{"anyOf":[{"type":"integer","description":"One of: [1,2]."},{"type":"null"}]}`},
		{`{"enum":["a",1,null]}`, `{"anyOf":[{"type":"string","enum":["a"]},{"type":"number","description":"One of: [1]."},{"type":"null"}]}`},
		{`{"enum":[[1],{"a":"<"}]}`, `{"description":"One of: [[1],{\"a\":\"\u003c\"}]."}`},
		{`{"const":3}`, `{"type":"number","description":"Always: 3."}`},
		{`{"const":""}`, `{"type":"string","description":"Always: \"\"."}`},
		{`{"enum":["","a"]}`, `{"type":"string","description":"One of: [\"\",\"a\"]."}`},
		{`{"type":"number","exclusiveMinimum":0,"maximum":1e2,"multipleOf":0.5}`,
			`{"type":"number","description":"More than: 0. A multiple of: 0.5.","minimum":0,"maximum":1e2}`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"number"},"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"v":{"type":"number"},"next":{}}}`},
		{`{"$ref":"http://example.org/x"}`, `{}`}, {`{"$ref":"#/$defs/none"}`, `{}`},
		{`{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"string"}]}`,
			`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`},
		{`{"oneOf":[{"type":"string"},{}]}`, `{}`}, {`{"anyOf":[{"type":"string"},false]}`, `{"type":"string"}`},
		{`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["b"]}`},
		{`{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}`,
			`{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"string"}]}}`},
		{`{"type":"array","items":[{"type":"number"}]}`, `{"type":"array","items":{}}`},
		{`{"type":"object","additionalProperties":{"type":"number"},"patternProperties":{"^a":{}}}`,
			`{"type":"object","description":"Members that match ^a: any value. Each other member: number.","properties":{}}`},
		{`{"type":["object","null"],"additionalProperties":{"type":"number"},"minProperties":1,"maxProperties":3}`,
			`{"anyOf":[{"type":"object","description":"Members at least: 1. Members at most: 3. Each member: number.","properties":{}},{"type":"null"}]}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
			`{"type":"object","description":"No other members.","properties":{"a":{"type":"string"}}}`},
		{`{"type":"object","propertyNames":{"pattern":"^<"},"additionalProperties":{"$ref":"#/$defs/p"},"$defs":{"p":{"type":"object","properties":{"price":{"type":"number"},"unit":{"enum":["kg","g"]}},"required":["price"]}}}`,
			`{"type":"object","description":"Names of members: Pattern: ^\u003c. Each member: {\"type\":\"object\",\"properties\":{\"price\":{\"type\":\"number\"},\"unit\":{\"type\":\"string\",\"enum\":[\"kg\",\"g\"]}},\"required\":[\"price\"]}.","properties":{}}`},
		{`{"type":"object","additionalProperties":{"type":"array"},"patternProperties":{"^x":false}}`,
			`{"type":"object","description":"Members that match ^x: none. Each other member: {\"type\":\"array\",\"items\":{}}.","properties":{}}`},
		{`{"type":"object","additionalProperties":true}`, `{"type":"object","properties":{}}`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"string","format":"uuid"}}`,
			`{"type":"array","description":"No item twice.","items":{"type":"string","description":"Format: uuid."}}`},
		{`{"type":"object","examples":[{"a":["\u202e"]}],"not":{"$comment":7}}`, `{"type":"object","properties":{}}`},
		{`true`, `{}`}, {`false`, `{}`}, {`{}`, `{}`}, {`{"type":7}`, `{}`},
		{`{"enum":["a\u200bb"]}`, `{}`}, {`{"type":"object","properties":{"a\u202e":{}}}`, `{}`},
		{`{"const":"\u0000"}`, `{}`}, {`{`, `{}`}, {`null`, `{}`},
		{`{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
	} {
		s, _ := shapeOf(json.RawMessage(c.in), true)
		if got := string(s.schema()); got != c.want {
			t.Errorf("%s\n     %s\nwant %s", c.in, got, c.want)
		}
	}
}

// Words describe the values that a shape cannot list, also where the strict form and Gemini's pass them as JSON text.
func TestWhatShapesCannotList(t *testing.T) {
	t.Parallel()
	var codes []string
	for i := range maxEnum + 10 {
		codes = append(codes, fmt.Sprintf("c%03d", i))
	}
	for in, want := range map[string]string{
		string(agent.Encoded(map[string]any{"type": "string", "enum": codes})): `One of: ["c000","c001",`,
		`{"type":["object","null"],"additionalProperties":{"type":"number"}}`:  "Each member: number. As JSON text.",
	} {
		f := &agent.Interface{Parameters: []agent.Parameter{{Name: "x", Schema: json.RawMessage(in), Required: true}}}
		tool := &Tool{takes: f}
		tool.shape, _, _ = parameters(f)
		for form, schema := range map[string]json.RawMessage{"strict": tool.Strict(), "gemini": tool.Gemini()} {
			var shown struct {
				Properties map[string]struct{ Description string }
			}
			if err := json.Unmarshal(schema, &shown); err != nil {
				t.Fatal(err)
			}
			if got := shown.Properties["x"].Description; !strings.HasPrefix(got, want) {
				t.Errorf("%s, %s: %s, want %q", in, form, schema, want)
			}
		}
	}
}

// A schema may be arbitrarily deep and have any references: the shown one is small.
func TestShapesAreBounded(t *testing.T) {
	t.Parallel()
	patterns, members := map[string]any{}, `{"type":"object","additionalProperties":`
	for i := range 2000 {
		patterns[strings.Repeat("x", i)] = map[string]any{"type": "string"}
	}
	bomb := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 20 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
		bomb += fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":%s,"y":%s,"z":%s}},`, i, next, next, next)
	}
	bomb += `"a20":{}}}`
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprint(i))
	}
	for name, in := range map[string]string{"items": strings.Repeat(`{"type":"array","items":`, 5000) + "{}" +
		strings.Repeat("}", 5000), "allOf": strings.Repeat(`{"allOf":[`, 4000) + "{}" + strings.Repeat("]}", 4000),
		"anyOf": strings.Repeat(`{"anyOf":[`, 4000) + "{}" + strings.Repeat("]}", 4000), "bomb": bomb,
		"enum":     string(agent.Encoded(map[string]any{"enum": names})),
		"members":  strings.Repeat(members, 4000) + "{}" + strings.Repeat("}", 4000),
		"patterns": string(agent.Encoded(map[string]any{"type": "object", "patternProperties": patterns})),
		"pattern":  string(agent.Encoded(map[string]any{"type": "string", "pattern": strings.Repeat("x", 5000)})),
	} {
		s, _ := shapeOf(json.RawMessage(in), true)
		got := s.schema()
		if len(got) > 10_000 {
			t.Errorf("%s: %d bytes are shown", name, len(got))
		}
		if err := rules(decoded(t, got), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// randomSchema returns schemas as models write them, valid and invalid.
func randomSchema(r *rand.Rand, depth int) any {
	some := func(of ...any) any { return of[r.IntN(len(of))] }
	if depth == 0 || r.IntN(8) == 0 {
		return some(true, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"},
			map[string]any{"enum": []any{"a", "b"}}, map[string]any{"enum": []any{1, "a", nil}},
			map[string]any{"const": 1})
	}
	inner := func() any { return randomSchema(r, depth-1) }
	m := map[string]any{}
	for range 1 + r.IntN(4) {
		switch r.IntN(16) {
		case 0, 1, 2:
			m["type"] = some("object", "array", "string", "number", "integer", "boolean", "null",
				[]any{"string", "null"}, []any{"array", "object"}, "Any", []any{})
		case 3, 4:
			m["type"], m["properties"] = "object", map[string]any{"a": inner(), "b": inner()}
		case 5:
			m["required"] = []any{"a", "c"}
		case 6, 7:
			m["type"], m["items"] = "array", inner()
		case 8:
			m["prefixItems"] = []any{inner(), inner()}
		case 9:
			m[some("anyOf", "oneOf", "allOf").(string)] = []any{inner(), inner()}
		case 10:
			m[some("not", "if", "additionalProperties", "contains", "propertyNames").(string)] = inner()
		case 11:
			m["$ref"] = some("#", "#/properties/a", "#/$defs/x", "#/items")
		case 12:
			m["$defs"] = map[string]any{"x": inner()}
		case 13:
			m[some("minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems", "minLength",
				"multipleOf").(string)] = some(0, 1, 2, 1.5)
		case 14:
			m[some("description", "title", "default", "examples", "format", "pattern").(string)] = some("a text",
				"date", 3, nil)
		case 15:
			m[some("nullable", "deprecated", "uniqueItems").(string)] = true
		}
	}
	return m
}

func randomValue(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(2) == 0 {
		return []any{"a", "b", "", 0, 1, 2, 1.5, -3, true, false, nil, "text"}[r.IntN(12)]
	}
	if r.IntN(2) == 0 {
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			m[name] = randomValue(r, depth-1)
		}
	}
	return m
}

// For any schema of a model, the shown one follows the rules and accepts every value that the original accepts.
func TestShapesKeepTheRulesAndAreWide(t *testing.T) {
	t.Parallel()
	compiled, taken := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 36))
		in := agent.Encoded(randomSchema(r, 4))
		s, _ := shapeOf(in, false)
		shown := s.schema()
		if err := rules(decoded(t, shown), false); err != nil {
			t.Fatalf("seed %d: %s is shown as %s: %v", seed, in, shown, err)
		}
		is, err := contract.CompileStored(shown)
		if err != nil {
			t.Fatalf("seed %d: %s is shown as %s: %v", seed, in, shown, err)
		}
		was, err := contract.CompileStored(in)
		if err != nil {
			continue
		}
		compiled++
		for range 20 {
			value := agent.Encoded(randomValue(r, 3))
			if was.Check(value) != nil {
				continue
			}
			taken++
			if v := is.Check(value); v != nil {
				t.Fatalf("seed %d: %s takes %s, what is shown does not: %s: %s", seed, in, value, shown, v.Message)
			}
		}
	}
	if compiled < 200 || taken < 1500 {
		t.Errorf("%d schemas compile, %d values were taken", compiled, taken)
	}
}
