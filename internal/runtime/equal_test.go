package runtime

import (
	"encoding/json"
	"testing"
)

func TestSameValue(t *testing.T) {
	t.Parallel()
	one, half, none := 1.0, 0.5, 0.0
	tests := []struct {
		name, want, got string
		tolerance       *float64
		same, exact     bool
	}{
		{"the same text", `{"a":1}`, `{"a":1}`, nil, true, true},
		{"blanks and order of keys", `{"a":1,"b":[2]}`, `{"b": [2], "a": 1}`, nil, true, true},
		{"another key", `{"a":1}`, `{"b":1}`, nil, false, false},
		{"a key more", `{"a":1}`, `{"a":1,"b":1}`, nil, false, false},
		{"a value under the key", `{"a":1}`, `{"a":2}`, nil, false, false},
		{"an element more", `[1]`, `[1,2]`, nil, false, false},
		{"another element", `[1,2]`, `[1,3]`, nil, false, false},
		{"another order", `[1,2]`, `[2,1]`, nil, false, false},
		{"other kinds", `{"a":1}`, `[1]`, nil, false, false},
		{"an array for an object", `[1]`, `{"a":1}`, nil, false, false},
		{"text for a number", `1`, `"1"`, nil, false, false},
		{"another text", `"a"`, `"b"`, nil, false, false},
		{"null", `null`, ` null`, nil, true, true},
		{"true and false", `true`, `false`, nil, false, false},
		{"whole numbers within 1e-9", `20000000000`, `20000000001`, nil, true, false},
		{"whole numbers beyond 1e-9", `200000000`, `200000001`, nil, false, false},
		{"long identifiers", `123456789012345678901`, `123456789012345678902`, nil, false, false},
		{"whole numbers beyond 2^53 are exact", `9007199254740993`, `9007199254740992`, nil, false, false},
		{"whole numbers under a tolerance", `100`, `101`, &one, true, false},
		{"whole numbers beyond it", `100`, `102`, &one, false, false},
		{"whole numbers beyond 2^53 within it", `9007199254740993`, `9007199254740992`, &one, true, false},
		{"whole numbers beyond 2^53 beyond it", `9007199254740993`, `9007199254740992`, &half, false, false},
		{"rounding without a tolerance", `0.3`, `0.30000000000000004`, &none, false, false},
		{"whole numbers without a tolerance", `20000000000`, `20000000001`, &none, false, false},
		{"a written fraction without a tolerance", `[1]`, `[1.0]`, &none, true, false},
		{"rounding", `0.3`, `0.30000000000000004`, nil, true, false},
		{"rounding of large ones", `1e15`, `1000000000000001.5`, nil, true, false},
		{"a written fraction", `1`, `1.0`, nil, true, false},
		{"an exponent", `1e2`, `100`, nil, true, false},
		{"a millionth", `1.0`, `1.000001`, nil, false, false},
		{"at the relative edge, negative", `-1.0`, `-1.0000000005`, nil, true, false},
		{"beyond what a float holds", `1e400`, `1.5`, nil, false, false},
		{"no number beyond what a float holds", `1.5`, `1e400`, nil, false, false},
		{"inside of arrays", `[[0.1]]`, `[[0.10000000000000001]]`, nil, true, false},
		{"no JSON", `{`, `{}`, nil, false, false},
		{"no JSON came", `{}`, `{`, nil, false, false},
	}
	for _, tt := range tests {
		want, got := json.RawMessage(tt.want), json.RawMessage(tt.got)
		if same := sameValue(want, got, tt.tolerance); same != tt.same {
			t.Errorf("%s: the same value: %v, want %v", tt.name, same, tt.same)
		}
		if same := sameExact(want, got); same != tt.exact {
			t.Errorf("%s: exactly the same: %v, want %v", tt.name, same, tt.exact)
		}
	}
}

func TestRawArray(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]json.RawMessage{
		"[]": nil, "[1]": {json.RawMessage("1")}, `[1,"b",[3]]`: {json.RawMessage("1"), json.RawMessage(`"b"`),
			json.RawMessage("[3]")},
	} {
		if got := rawArray(values); string(got) != want || cap(got) != len(got)+min(1, len(values)) {
			t.Errorf("got %s of capacity %d, want %s", got, cap(got), want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "abc": "abc", "abcd": "abcd", "abcde": "abcd…", "äöüß": "äöüß",
		"äöüß!": "äöüß…"} {
		if got := Clip(in, 4); got != want {
			t.Errorf("Clip(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMergePatch(t *testing.T) {
	t.Parallel()
	before := map[string]json.RawMessage{"a": json.RawMessage("1"), "o": json.RawMessage(`{"x":1,"y":2}`)}
	tests := []struct{ name, patch, want string }{
		{"set", `{"b":2}`, `{"a":1,"b":2,"o":{"x":1,"y":2}}`},
		{"replace", `{"a":[2]}`, `{"a":[2],"o":{"x":1,"y":2}}`},
		{"delete", `{"a":null}`, `{"o":{"x":1,"y":2}}`},
		{"delete what is not there", `{"zz":null}`, `{"a":1,"o":{"x":1,"y":2}}`},
		{"inside", `{"o":{"x":null,"z":3}}`, `{"a":1,"o":{"y":2,"z":3}}`},
		{"nulls inside of a new object", `{"n":{"x":null,"z":3}}`, `{"a":1,"n":{"z":3},"o":{"x":1,"y":2}}`},
		{"an object in the place of a number", `{"a":{"x":null}}`, `{"a":{},"o":{"x":1,"y":2}}`},
	}
	for _, tt := range tests {
		change, err := mergePatch(before, json.RawMessage(tt.patch))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		after := map[string]json.RawMessage{}
		for k, v := range before {
			after[k] = v
		}
		change.Apply(after)
		if got, _ := json.Marshal(after); string(got) != tt.want { // JSON encodes
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if tt.name == "delete what is not there" && len(change.Delete)+len(change.Set) != 0 {
			t.Errorf("%s: a change: %+v", tt.name, change)
		}
	}
}
