package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// written returns a value in the form of a model that must follow the strict form of the shape.
func written(r *rand.Rand, s *shape, v any) any {
	if s.textual() {
		return string(agent.Encoded(v))
	}
	for _, one := range append([]*shape{s}, s.anyOf...) {
		switch x := v.(type) {
		case map[string]any:
			if one.kind == "object" {
				return members(r, one, x)
			}
		case []any:
			if one.kind == "array" {
				list := make([]any, len(x))
				for i := range x {
					list[i] = written(r, one.items, x[i])
				}
				return list
			}
		}
	}
	return v
}

// given returns the object without y if that is null. Models without a strict schema omit what they do not give.
func given(v any) any {
	object, _ := v.(map[string]any)
	if object["y"] == nil {
		delete(object, "y")
	}
	return object
}

func members(r *rand.Rand, s *shape, v map[string]any) map[string]any {
	out := map[string]any{}
	for _, p := range s.properties {
		value, given := v[p.name]
		if out[p.name] = nil; given {
			out[p.name] = written(r, p.of, value)
		}
	}
	return out
}

// valueOf returns a value of the shape. An optional one is not null, which would mean that it is not given.
func valueOf(r *rand.Rand, s *shape) any {
	if len(s.anyOf) > 0 {
		return valueOf(r, s.anyOf[r.IntN(len(s.anyOf))])
	}
	switch s.kind {
	case "object":
		out := map[string]any{}
		for _, p := range s.properties {
			if v := valueOf(r, p.of); p.required || v != nil && r.IntN(2) == 0 {
				out[p.name] = v
			}
		}
		return out
	case "array":
		out := []any{}
		for range r.IntN(3) {
			out = append(out, valueOf(r, s.items))
		}
		return out
	case "string":
		if len(s.enum) > 0 {
			return s.enum[r.IntN(len(s.enum))]
		}
		return []any{"", "a", "[1]", "{", "null", "1"}[r.IntN(6)]
	case "number", "integer":
		return float64(r.IntN(3))
	case "boolean":
		return r.IntN(2) == 0
	case "null":
		return nil
	}
	return randomValue(r, 2)
}

// For any declared schema, the strict form follows the rules, and values written in it are read back as meant.
func TestStrictFormsAreReadBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 37))
		f := &agent.Interface{Parameters: []agent.Parameter{{Name: "x", Schema: agent.Encoded(randomSchema(r, 4)),
			Required: true}, {Name: "y", Schema: agent.Encoded(randomSchema(r, 3))}}}
		tool := &Tool{takes: f}
		tool.shape, _, _ = parameters(f)
		held := tool.Strict()
		if err := rules(decoded(t, held), true); err != nil {
			t.Fatalf("seed %d: %s in the strict form is %s: %v", seed, tool.shape.schema(), held, err)
		}
		takes, err := contract.CompileStored(held)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, held, err)
		}
		for range 5 {
			meant := agent.Encoded(valueOf(r, tool.shape))
			var v map[string]any
			if err := json.Unmarshal(meant, &v); err != nil {
				t.Fatal(err)
			}
			sent := agent.Encoded(members(r, tool.shape, v))
			if bad := takes.Check(sent); bad != nil && !bounded(tool.shape) {
				t.Fatalf("seed %d: %s does not take %s: %s", seed, held, sent, bad.Message)
			}
			if form := tool.Gemini(); ofGemini(decoded(t, form)) != nil {
				t.Fatalf("seed %d: %s for Gemini is %s: %v", seed, tool.shape.schema(), form,
					ofGemini(decoded(t, form)))
			}
			if read, err := tool.Object(agent.Encoded(given(decoded(t, sent))),
				Strict); err != nil || string(agent.Encoded(decoded(t, read))) != string(meant) {
				t.Fatalf("seed %d: %s was sent by Gemini as %s and read as %s, %v", seed, meant, sent, read, err)
			}
			got, err := tool.Object(sent, Strict)
			if err != nil || string(agent.Encoded(decoded(t, got))) != string(meant) {
				t.Fatalf("seed %d: %s was sent as %s and read as %s, %v; the shape is %s", seed, meant, sent, got, err,
					tool.shape.schema())
			}
		}
	}
}

// ofGemini reports what Gemini rejects in a schema: a value without a type, an object without properties, other
// keywords next to anyOf.
func ofGemini(schema any) error {
	m, _ := schema.(map[string]any)
	inner, _ := m["anyOf"].([]any)
	switch kind, typed := m["type"].(string); {
	case inner != nil && len(m) > 1:
		return fmt.Errorf("more than anyOf: %v", m)
	case inner == nil && !typed:
		return fmt.Errorf("no type: %v", m)
	case kind == "object":
		properties, _ := m["properties"].(map[string]any)
		if len(properties) == 0 || m["additionalProperties"] != nil {
			return fmt.Errorf("the object %v", m)
		}
		for _, p := range properties {
			inner = append(inner, p)
		}
	case kind == "array":
		inner = append(inner, m["items"])
	}
	for _, s := range inner {
		if err := ofGemini(s); err != nil {
			return err
		}
	}
	return nil
}

// bounded reports whether the shape has bounds of numbers or lengths, which valueOf does not support.
func bounded(s *shape) bool {
	if s.least != "" || s.most != "" || s.items != nil && bounded(s.items) {
		return true
	}
	for _, one := range s.anyOf {
		if bounded(one) {
			return true
		}
	}
	for _, p := range s.properties {
		if bounded(p.of) {
			return true
		}
	}
	return false
}

// If a client does not state its form, strings stay unless all arguments are present and a string is clearly JSON.
func TestFormsThatNobodyNamed(t *testing.T) {
	t.Parallel()
	f := &agent.Interface{Parameters: []agent.Parameter{{Name: "any", Required: true}, {Name: "list", Type: "array"},
		{Name: "word", Type: "string"}}}
	tool := &Tool{takes: f}
	tool.shape, _, _ = parameters(f)
	for _, c := range []struct {
		form     Form
		in, want string
	}{
		{Unknown, `{"any":"{\"a\":1}","list":null,"word":null}`, `{"any":{"a":1}}`},
		{Unknown, `{"any":"\"a\"","list":"[1]","word":"[1]"}`, `{"any":"a","list":[1],"word":"[1]"}`},
		{Unknown, `{"any":"12","list":[],"word":"w"}`, `{"any":"12","list":[],"word":"w"}`},
		{Unknown, `{"any":"[1]"}`, `{"any":"[1]"}`}, {Sparse, `{"any":"[1]","list":[],"word":null}`,
			`{"any":"[1]","list":[]}`},
		{Strict, `{"any":"12","list":["12"],"word":"12"}`, `{"any":12,"list":[12],"word":"12"}`},
		{Plain, `{"any":"[1]","list":"[1]","word":null}`, `{"any":"[1]","list":[1],"word":null}`},
		{Plain, `{ "any": 9007199254740993 }`, `{ "any": 9007199254740993 }`},
		{Strict, `{"any":"9007199254740993"}`, `{"any":9007199254740993}`},
		{Strict, `{"any":"x"}`, ""}, {Strict, `{"any":"{\"a\":1,\"a\":2}"}`, ""}, {Unknown, `[]`, ""},
	} {
		got, err := tool.Object(json.RawMessage(c.in), c.form)
		if string(got) != c.want && c.want != "" || (err != nil) != (c.want == "") {
			t.Errorf("%d %s: %s, %v; want %s", c.form, c.in, got, err, c.want)
		}
	}
}

// A number, boolean, list or object may be given as JSON text if the schema accepts nothing else. A string stays one if
// it may be meant.
func TestScalarsAsText(t *testing.T) {
	t.Parallel()
	f := &agent.Interface{Parameters: []agent.Parameter{{Name: "n", Type: "number"}, {Name: "i", Type: "integer"},
		{Name: "b", Type: "boolean"}, {Name: "o", Type: "object"},
		{Name: "s", Type: "string"}, {Name: "any"}, {Name: "either",
			Schema: json.RawMessage(`{"type":["number","string"]}`)},
		{Name: "ns", Schema: json.RawMessage(`{"type":"array","items":{"type":"number"}}`)}}}
	tool := &Tool{takes: f}
	tool.shape, _, _ = parameters(f)
	for in, want := range map[string]string{
		`{"n":"2.50","i":"9007199254740993","b":"true"}`: `{"n":2.50,"i":9007199254740993,"b":true}`,
		`{"n":" 2 ","b":"yes","i":"two"}`:                `{"n":2,"b":"yes","i":"two"}`,
		`{"n":"true","b":"1","o":"[1]"}`:                 `{"n":"true","b":"1","o":"[1]"}`,
		`{"s":"2","any":"2","either":"2"}`:               `{"s":"2","any":"2","either":"2"}`,
		`{"ns":"[1,\"2\"]","o":"{\"a\":\"1\"}"}`:         `{"ns":[1,2],"o":{"a":"1"}}`,
	} {
		if got, err := tool.Object(json.RawMessage(in), Plain); string(got) != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

// Parameters whose names model APIs reject as keys of a schema are shown under keys that they take. Arguments may have
// either.
func TestParametersOfAnyName(t *testing.T) {
	t.Parallel()
	f := &agent.Interface{Parameters: []agent.Parameter{{Name: "l_nge", Type: "number", Required: true},
		{Name: "l\u00e4nge", Type: "number", Required: true}, {Name: "Kunden Nr.", Description: "as invoiced"},
		{Name: "2024"}, {Name: "a.b-c"}}}
	tool := &Tool{takes: f}
	tool.shape, tool.keys, _ = parameters(f)
	const want = `{"type":"object","properties":{"l_nge":{"type":"number"},` +
		`"l_nge_2":{"type":"number","description":"The argument \"l\u00e4nge\"."},` +
		`"Kunden_Nr_":{"description":"The argument \"Kunden Nr.\". as invoiced"},` +
		`"_2024":{"description":"The argument \"2024\"."},"a.b-c":{"description":"Any value."}},` +
		`"required":["l_nge","l_nge_2"]}`
	if got := tool.shape.schema(); !slices.Equal(agent.Canonical(got), agent.Canonical(json.RawMessage(want))) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, c := range []struct {
		object string
		form   Form
		want   string
	}{
		{`{"l_nge":1,"l_nge_2":"2","Kunden_Nr_":"7"}`, Plain, `{"Kunden Nr.":"7","l_nge":1,"l\u00e4nge":2}`},
		{`{"l_nge":1,"l\u00e4nge":2,"Kunden Nr.":"7"}`, Plain, `{"Kunden Nr.":"7","l_nge":1,"l\u00e4nge":2}`},
		{`{"l_nge":1,"l_nge_2":2,"Kunden_Nr_":"[7]","_2024":null,"a.b-c":null}`, Strict,
			`{"Kunden Nr.":[7],"l_nge":1,"l\u00e4nge":2}`},
		{`{"args":[1,2]}`, Plain, ``},
		{`{"l_nge":1}`, Plain, "l\u00e4nge is required"},
	} {
		_, kwargs, err := tool.Arguments(json.RawMessage(c.object), c.form)
		got := string(kwargs)
		var bad *agent.InputError
		if errors.As(err, &bad) {
			got = bad.Pointer[1:] + " " + bad.Detail
		}
		if c.want == got {
			continue
		}
		if err != nil || !slices.Equal(agent.Canonical(kwargs), agent.Canonical(json.RawMessage(c.want))) {
			t.Errorf("%s: got %s, %v", c.object, kwargs, err)
		}
	}
}
