package sessions

import (
	"encoding/json"
	"testing"
)

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
