package contract

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestStricter(t *testing.T) {
	t.Parallel()
	const movies = `{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array"}}}}`
	for _, tt := range []struct {
		name, a, than string
		want          bool
	}{
		{"anything than nothing", `{"type":"array"}`, ``, true},
		{"nothing than anything", ``, `{"type":"array"}`, false},
		{"nothing than nothing", `{}`, `null`, false},
		{"annotations than nothing", `{"title":"a","description":"b"}`, ``, false},
		{"the same", movies, movies, false},
		{"the same in other words", `{"minItems":1,"type":"Array"}`, `{"min_items":1}`, false},
		{"one more item", `{"type":"array","min_items":1}`, `{"type":"array"}`, true},
		{"one item less", `{"type":"array","min_items":1}`, `{"type":"array","min_items":2}`, false},
		{"items without a type", `{"min_items":1}`, `{"type":"array"}`, true},
		{"of constraints", `{"type":"array","constraints":{"min_items":2}}`, `{"type":"array","min_items":1}`, true},
		{"than constraints", `{"type":"array","min_items":2}`, `{"type":"array","constraints":{"min_items":1}}`, true},
		{"movies", `{"type":"object","required":["movies","status"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`, movies, true},
		{"movies as a schema", `{"type":"object","required":["movies","status"],"properties":{"movies":{"type":"array","minItems":1}}}`, movies, true},
		{"movies without a key", `{"type":"object","required":["movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`, movies, false},
		{"another key", `{"required":["a","b"]}`, `{"required":["a"]}`, true},
		{"other keys", `{"required":["b"]}`, `{"required":["a"]}`, false},
		{"fewer types", `{"type":"array"}`, `{"type":["array","object"]}`, true},
		{"integers", `{"type":"integer"}`, `{"type":"number"}`, true},
		{"numbers", `{"type":"number"}`, `{"type":"integer"}`, false},
		{"other types", `{"type":"array","min_items":1}`, `{"type":"object"}`, false},
		{"elements", `{"items":{"type":"object","required":["t"]}}`, `{"items":{"type":"object"}}`, true},
		{"elements after others", `{"prefixItems":[true],"items":{"type":"string","minLength":1}}`,
			`{"items":{"type":"string"}}`, false},
		{"closed", `{"properties":{"a":{}},"additionalProperties":false}`,
			`{"properties":{"a":{},"b":{}},"additionalProperties":false}`, true},
		{"opened", `{"properties":{"a":{},"b":{}},"additionalProperties":false,"required":["a"]}`,
			`{"properties":{"a":{}},"additionalProperties":false}`, false},
		{"a narrower bound", `{"minimum":0.5,"maximum":9007199254740992}`, `{"minimum":0,"maximum":9007199254740993}`,
			true},
		{"a wider bound", `{"minimum":9007199254740992}`, `{"minimum":9007199254740993}`, false},
		{"the same pattern", `{"type":"string","pattern":"^a"}`, `{"pattern":"^a"}`, true},
		{"another pattern", `{"type":"string","pattern":"^ab"}`, `{"pattern":"^a"}`, false},
		{"fewer values", `{"enum":[1]}`, `{"enum":[1,2]}`, false}, // not compared
		{"what contains depends on", `{"type":"array","contains":true,"minContains":2}`,
			`{"contains":true,"minContains":2}`, false},
		{"a reference", `{"type":"array","min_items":1}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"array"}}}`, false},
		{"an unknown name", `{"type":"array","min_items":1,"sorted":true}`, `{"type":"array"}`, false},
		{"than an unknown name", `{"type":"array","min_items":1}`, `{"type":"array","sorted":true}`, false},
		{"a nested short form", `{"properties":{"a":{"constraints":{"min_items":1}}}}`, ``, false},
		{"a misspelt name", `{"type":"array","minitems":1}`, ``, false},
		{"than a misspelt name", `{"type":"array","min_items":1}`, `{"type":"array","minitems":1}`, true},
		{"a constraint without sense", `{"type":"array","min_items":-1}`, ``, false},
		{"no object", `[]`, ``, false},
		{"not JSON", `{`, ``, false},
		{"than not JSON", `{"type":"array"}`, `{`, false},
	} {
		if got := Stricter(json.RawMessage(tt.a), json.RawMessage(tt.than)); got != tt.want {
			t.Errorf("%s: Stricter(%s, %s) = %v", tt.name, tt.a, tt.than, got)
		}
	}
}

// A comparison of the largest possible deliverables ends, with false.
func TestStricterEnds(t *testing.T) {
	t.Parallel()
	list := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	var names []string
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint("k", i)))
	}
	for name, k := range map[string]string{
		"required": `{"required":[` + strings.Join(names, ",") + `]}`,
		"allOf":    `{"allOf":[` + list(9000, `{"minLength":1}`) + `]}`,
		"const":    `{"allOf":[` + list(500, `{"const":[`+list(200, "1")+`]}`) + `]}`,
	} {
		more := strings.TrimSuffix(k, "}") + `,"type":"array"}`
		for _, s := range []string{k, more} {
			if _, err := Compile(json.RawMessage(s)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if Stricter(json.RawMessage(k), json.RawMessage(more)) {
			t.Errorf("%s: what says less is stricter", name)
		}
	}
}

// For any two deliverables: a value that the stricter one accepts is accepted by the other, and only one is stricter.
func TestStricterAccepts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(35, 4))
	stricter, accepted := 0, 0
	for range 20_000 {
		than := randomSchema(r, 0)
		a := changed(r, than, 0)
		if r.IntN(4) == 0 {
			a = randomSchema(r, 0)
		}
		x, y := json.RawMessage(encoded(a)), json.RawMessage(encoded(than))
		if !Stricter(x, y) {
			continue
		}
		stricter++
		if Stricter(y, x) {
			t.Fatalf("%s and %s are both stricter", x, y)
		}
		sx, _, err := compileTolerant(x)
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
		sy, _, err := compileTolerant(y)
		if err != nil {
			t.Fatalf("%s: %v", y, err)
		}
		for range 20 {
			v := json.RawMessage(encoded(randomValue(r, 0)))
			if sx.Check(v) != nil {
				continue
			}
			accepted++
			if bad := sy.Check(v); bad != nil {
				t.Fatalf("%s is called stricter than %s, and accepts %s, which the other one refuses: %s", x, y, v,
					bad.Message)
			}
		}
	}
	if stricter < 1000 || accepted < 1500 {
		t.Errorf("%d pairs with %d accepted values show little", stricter, accepted)
	}
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// randomKeyword returns a keyword with a value that others of the same name may be stricter or weaker than.
func randomKeyword(r *rand.Rand, depth int) (name string, v any) {
	pick := func(of ...any) any { return of[r.IntN(len(of))] }
	sub := func() any {
		if depth > 1 || r.IntN(8) == 0 {
			return r.IntN(2) == 0
		}
		return randomSchema(r, depth+1)
	}
	names := []string{"type", "type", "required", "required", "min_items", "min_items", "minItems", "maxItems",
		"properties", "properties", "items", "prefixItems", "additionalProperties",
		"patternProperties", "minimum", "exclusiveMaximum", "minLength", "minProperties", "uniqueItems", "enum",
		"const", "pattern", "not", "anyOf", "allOf", "contains", "minContains", "propertyNames",
		"if", "then", "dependentRequired", "title", "unknown", "unevaluatedProperties", "constraints"}
	switch name = names[r.IntN(len(names))]; name {
	case "type":
		return name, pick("array", "object", "Array", []string{"object", "array"}, []string{"array", "integer"},
			"number", "integer", "string", []string{"null", "boolean", "object"})
	case "required":
		return name, pick([]string{"a"}, []string{"a", "b"}, []string{"b"}, []string{})
	case "min_items", "minItems", "maxItems", "minLength", "minProperties", "minContains":
		return name, r.IntN(3)
	case "minimum", "exclusiveMaximum":
		return name, pick(0, 1, 1.5, 2)
	case "uniqueItems":
		return name, r.IntN(2) == 0
	case "properties", "patternProperties":
		return name, pick(map[string]any{"a": sub()}, map[string]any{"a": sub(), "b": sub()},
			map[string]any{"b": sub()})
	case "constraints":
		return name, pick(map[string]any{"min_items": r.IntN(3)},
			map[string]any{"properties": map[string]any{"a": sub()}})
	case "prefixItems", "anyOf", "allOf":
		return name, pick([]any{sub()}, []any{sub(), sub()})
	case "enum":
		return name, pick([]any{1, "a"}, []any{[]any{}, map[string]any{}, 1})
	case "const":
		return name, pick(1, []any{1})
	case "pattern":
		return name, pick("^a", "b")
	case "dependentRequired":
		return name, map[string]any{"a": []string{"b"}}
	case "title", "unknown":
		return name, "x"
	}
	return name, sub()
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(4) {
		name, v := randomKeyword(r, depth)
		m[name] = v
	}
	return m
}

// changed returns the schema with a few random changes at any depth.
func changed(r *rand.Rand, s map[string]any, depth int) map[string]any {
	out := map[string]any{}
	for name, v := range s {
		switch sub := v.(type) {
		case map[string]any:
			if name == "properties" || name == "constraints" {
				members := map[string]any{}
				for key, m := range sub {
					if one, ok := m.(map[string]any); ok && r.IntN(2) == 0 {
						m = changed(r, one, depth+1)
					}
					members[key] = m
				}
				v = members
			} else if r.IntN(2) == 0 && name != "dependentRequired" && name != "patternProperties" {
				v = changed(r, sub, depth+1)
			}
		case int:
			v = sub + r.IntN(2)
		}
		out[name] = v
	}
	for range r.IntN(3) {
		name, v := randomKeyword(r, depth)
		out[name] = v
	}
	return out
}

func randomValue(r *rand.Rand, depth int) any {
	n := 9
	if depth > 2 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return []string{"", "a", "ab", "b"}[r.IntN(4)]
	case 3, 4:
		return r.IntN(4) - 1
	case 5:
		return []float64{0.5, 1.5}[r.IntN(2)]
	case 6:
		m := map[string]any{}
		for _, k := range []string{"a", "b", "c"} {
			if r.IntN(2) == 0 {
				m[k] = randomValue(r, depth+1)
			}
		}
		return m
	}
	list := make([]any, r.IntN(4))
	for i := range list {
		list[i] = randomValue(r, depth+1)
	}
	return list
}
