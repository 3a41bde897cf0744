package rawjson

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	tests := []struct{ raw, want string }{
		{`{}`, `[]`}, {` { } `, `[]`}, {`[1]`, `[]`}, {`"a"`, `[]`}, {``, `[]`},
		{`{"a":1}`, `[a=1]`},
		{` { "a" : [1, {"b":"}"}] , "c":"x\"y" ,"d":null } `, `[a=[1, {"b":"}"}] c="x\"y" d=null]`},
		{`{"k\u00e9\"":{},"a":true}`, `[ké"={} a=true]`},
		{`{"a":1,"a":2}`, `[a=1 a=2]`},
		{`{"a":1`, `[a=1]`}, {`{"a"`, `[]`}, {`{"a":1,5}`, `[a=1]`}, {`{"\ud`, `[]`},
	}
	for _, tt := range tests {
		got := []string{}
		Members([]byte(tt.raw), func(key string, value []byte) { got = append(got, key+"="+string(value)) })
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: got %v, want %s", tt.raw, got, tt.want)
		}
	}
}

// Members visits the members that encoding/json decodes, for objects with distinct keys. Other text does no harm.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c":"\"}"}`))
	f.Add([]byte(`{"a":1,`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]json.RawMessage{}
		Members(raw, func(key string, value []byte) { got[key] = value })
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil || want == nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	})
}
