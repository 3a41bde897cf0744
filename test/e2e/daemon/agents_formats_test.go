package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// oddInterface has what some model API refuses each: free values, mixed enums, unions, names of members, references to
// itself, keywords, a boolean.
const oddInterface = `[{"name":"rows","required":true,"schema":{"type":"array","items":{"type":"array"}}},
	{"name":"kind","required":false,"schema":{"enum":["a",1,null,{"o":1}]}},{"name":"either","required":false,"schema":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"number"}}}]}},
	{"name":"office","required":false,"schema":{"type":"object","properties":{"Größe in m²":{"type":"number"},"$top":{},"":{"type":"string"}},"required":["more"]}},
	{"name":"tree","required":false,"schema":{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/n"}}}}}}},
	{"name":"when","description":"When","required":false,"schema":{"type":["string","null"],"format":"date","pattern":"^2","default":"2026-01-01"}},{"name":"any","required":false,"schema":true},{"name":"free","required":false,"type":"object"}]`

// oddProgram returns the keywords that it was given.
var oddProgram = rig.Program(
	"\tout := map[string]any{}\n\tfor _, name := range []string{\"rows\", \"kind\", \"either\", \"office\", \"tree\", \"when\", \"any\", \"free\"} {\n\t\tif v, ok := call.Kwargs[name]; ok {\n\t\t\tout[name] = v\n\t\t}\n\t}\n\treturn out, nil")

// refused reports in which schema something stands that a client refuses: an array without items, an enum of other
// values than texts, a keyword that not all know, other keywords next to anyOf; for Gemini also a value without a type
// and an object without properties.
func refused(schema any, gemini bool) string {
	m, _ := schema.(object)
	inner, _ := m["anyOf"].([]any)
	switch kind := m["type"]; {
	case inner != nil && len(m) > 1, kind == nil && inner == nil && gemini, kind == "array" && m["items"] == nil,
		kind == "object" && m["properties"] == nil, kind != "string" && m["enum"] != nil:
		return fmt.Sprint(schema)
	}
	for name, v := range m {
		switch name {
		case "items":
			inner = append(inner, v)
		case "properties":
			for _, p := range v.(object) {
				inner = append(inner, p)
			}
			if gemini && len(v.(object)) == 0 {
				return fmt.Sprint(schema)
			}
		case "type", "description", "enum", "minimum", "maximum", "minItems", "maxItems", "required", "anyOf",
			"nullable":
		default:
			return name
		}
	}
	for _, s := range inner {
		if bad := refused(s, gemini); bad != "" {
			return bad
		}
	}
	return ""
}

var toolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// Whatever stands in an interface, in a purpose and in a name: each format has what its clients take, and what a model
// sends in it is read as it was meant.
func TestFormatsOfOddTools(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	for role, method := range map[string]string{"odd": "echo", "3d printer": "slice it!", "7": "8", "größe": "ü",
		strings.Repeat("long", 30): "m"} {
		at := "/v1/tools/" + url.PathEscape(role)
		d.Do(http.StatusCreated, http.MethodPut, at, object{"purpose": strings.Repeat("what it is for ", 200)})
		d.Do(http.StatusOK, http.MethodPut, at+"/methods/"+url.PathEscape(method),
			object{"code": oddProgram, "parameters": json.RawMessage(oddInterface)})
	}
	for format, schema := range map[string]string{"openai": "parameters", "openai-responses": "parameters",
		"anthropic": "input_schema", "gemini": "parameters", "mcp": "inputSchema"} {
		tools := d.Get("/v1/tools?format=" + format)["tools"].([]any)
		if format == "gemini" {
			tools = tools[0].(object)["functionDeclarations"].([]any)
		}
		if len(tools) < 5 {
			t.Errorf("%s: %d tools", format, len(tools))
		}
		for _, one := range tools {
			tool := one.(object)
			if format == "openai" {
				tool = tool["function"].(object)
			}
			if name, description := tool["name"].(string),
				tool["description"].(string); !toolName.MatchString(name) ||
				utf8.RuneCountInString(description) > 1024 {
				t.Errorf("%s: %s: %d characters", format, name, utf8.RuneCountInString(description))
			}
			if bad := refused(tool[schema], format == "gemini"); bad != "" {
				t.Errorf("%s: %v: %s", format, tool["name"], bad)
			}
		}
	}
	value := object{"rows": []any{[]any{1, "2", nil}}, "kind": object{"o": 1}, "either": object{"b": 2},
		"office": object{"Größe in m²": 3, "$top": []any{}, "more": "x"}, "any": "12", "free": object{"x": nil}}
	held := object{"rows": []any{[]any{"1", `"2"`, "null"}}, "kind": `{"o":1}`, "either": `{"b":2}`,
		"office": object{"Größe in m²": 3, "$top": "[]", "more": `"x"`}, "any": `"12"`, "free": `{"x":null}`}
	d.WantValue(function(d, "odd__echo", object{"arguments": value}), value, "persisted")
	d.WantValue(function(d, "odd__echo", object{"arguments": held, "strict": true}), value, "persisted")
	held["tree"], held["when"] = nil, nil
	d.WantValue(function(d, "odd__echo", object{"arguments": string(rig.Encode(t, held)), "strict": true}), value,
		"persisted")
}

// A person whose schema makes no sense reads which one, and at which place.
func TestSchemasThatMakeNoSense(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/odd", object{"purpose": "p"})
	for schema, want := range map[string]string{`{"enum":[]}`: "the schema of x is not a usable JSON Schema: /enum must be", `{"$ref":"#"}`: "the schema of x is not a usable JSON Schema: is not a usable schema: infinite loop",
		`{"type":7}`: "the schema of x is not a usable JSON Schema: /type"} {
		got := d.Send(http.MethodPut, "/v1/tools/odd/methods/m",
			rig.Encode(t, object{"code": rig.Program("\treturn call.Kwargs[\"x\"], nil"),
				"parameters": []any{object{"name": "x", "schema": json.RawMessage(schema)}}}), nil)
		if text := string(got.Body); got.Status != http.StatusUnprocessableEntity || !strings.Contains(text, want) ||
			strings.Contains(text, "deliverable") || strings.Contains(text, "contract.invalid") {
			t.Errorf("%s: %d %s", schema, got.Status, text)
		}
	}
}
