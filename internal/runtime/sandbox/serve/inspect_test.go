package serve

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

type shouting struct{ Never chan int }

func (shouting) MarshalJSON() ([]byte, error) { return nil, errors.New("no form") }
func (shouting) String() string               { panic("methods are not called") }

type linked struct {
	Name string
	Next *linked
}

func nestedLists(n int) any {
	var v any = "leaf"
	for range n {
		v = []any{v}
	}
	return v
}

// A value that cannot be encoded is replaced by a text, which is the same every time. Other fields are unaffected.
func TestUnsafeArguments(t *testing.T) {
	cycle := map[string]any{"name": "c"}
	cycle["self"] = cycle
	ring := &linked{Name: "a"}
	ring.Next = &linked{Name: "b", Next: ring}
	wide := map[string]any{"f": func() {}}
	for i := range 100 {
		wide[strings.Repeat("k", i+1)] = i
	}
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(500), nil)
	tests := []struct {
		name string
		v    any
		want string // its JSON encoding
		safe bool
	}{
		{"a number", 1.5, `1.5`, true},
		{"2^63", uint64(1) << 63, `9223372036854775808`, true},
		{"bytes", []byte("ab"), `"YWI="`, true},
		{"invalid UTF-8", "a\xffb", `"a\ufffdb"`, true},
		{"NUL", "a\x00b", `"a\u0000b"`, true},
		{"a lone surrogate, as Go spells it", string(rune(0xd800)), `"` + "\ufffd" + `"`, true},
		{"NaN", math.NaN(), `"NaN"`, false},
		{"+Inf", math.Inf(1), `"+Inf"`, false},
		{"-Inf in a list", []any{1, math.Inf(-1)}, `"[1, -Inf]"`, false},
		{"a channel", make(chan int), `"(chan)"`, false},
		{"a function in a map", map[string]any{"f": func() {}, "a": nil}, `"{\"a\": null, \"f\": (func)}"`, false},
		{"a complex number", complex(1, -2), `"(1-2i)"`, false},
		{"a cyclic map", cycle, `"{\"name\": \"c\", \"self\": {\"name\": \"c\", \"self\": {\"name\": \"c\", \"self\": {\"name\": \"c\", \"self\": ...}}}}"`, false},
		{"a ring of pointers", ring, `"{Name: \"a\", Next: {Name: \"b\", Next: ...}}"`, false},
		{"depth 1000", nestedLists(1000), `"[[[[...]]]]"`, false},
		{"a number of 500 digits", huge, "", false},
		{"its own method refuses", shouting{}, `"{Never: (chan)}"`, false},
	}
	within := func(raw json.RawMessage) error { return wire.CheckValue(raw, 100) }
	plainly := func(v any) (json.RawMessage, error) { return json.Marshal(v) }
	for _, tt := range tests {
		got := refuse(callParams{"r", "m", []any{"before", tt.v, "after"}, map[string]any{"bad": tt.v, "good": true}},
			plainly, within)
		if again := refuse(callParams{"r", "m", []any{"before", tt.v, "after"},
			map[string]any{"bad": tt.v, "good": true}}, plainly, within); mustEncode(t, again) != mustEncode(t, got) {
			t.Errorf("%s: two texts: %s and %s", tt.name, mustEncode(t, got), mustEncode(t, again))
		}
		if string(got.Args[0]) != `"before"` || string(got.Args[2]) != `"after"` ||
			string(got.Kwargs["good"]) != "true" {
			t.Errorf("%s: the other fields are %s", tt.name, mustEncode(t, got))
		}
		if want := tt.want; want != "" && (!sameText(got.Args[1], want) || !sameText(got.Kwargs["bad"], want)) {
			t.Errorf("%s: got %s and %s, want %s", tt.name, got.Args[1], got.Kwargs["bad"], want)
		}
		if strings.HasPrefix(got.Unsafe, "argument 2: ") == tt.safe || strings.Contains(mustEncode(t, got), "0xc") ||
			wire.CheckValue([]byte(mustEncode(t, got)), 200) != nil {
			t.Errorf("%s: %s", tt.name, mustEncode(t, got))
		}
	}
	if text := inspect(wide); len(text) > inspectBytes+10 || !strings.Contains(text, `"k": 0`) {
		t.Errorf("a wide map is %s", text)
	}
	if got := refuse(callParams{Kwargs: map[string]any{"b\xff": math.NaN(), "a": 1}}, plainly,
		within); mustEncode(t, got) != `{"role":"","method":"","args":[],"kwargs":{"a":1,"b`+"\ufffd"+
		`":"NaN"},"unsafe":"argument \"b`+"\ufffd"+`\": json: unsupported value: NaN"}` {
		t.Errorf("got %s", mustEncode(t, got))
	}
}

// sameText reports whether two JSON texts are equal or encode the same string: the escapes depend on the version of Go.
func sameText(got json.RawMessage, want string) bool {
	var a, b string
	return string(got) == want || json.Unmarshal(got, &a) == nil && json.Unmarshal([]byte(want), &b) == nil && a == b
}

func mustEncode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// FuzzInspect decodes any JSON and makes it unsafe. The text must be bounded, valid and reproducible.
func FuzzInspect(f *testing.F) {
	f.Add(`{"a":[1,"\ud800",{"b":null}]}`)
	f.Add(`[[[[[[[[1e308]]]]]]]]`)
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			v = text
		}
		unsafe := map[string]any{text: v, "f": func() {}, "n": math.NaN()}
		a, b := inspect(unsafe), inspect(unsafe)
		if a != b || len(a) > inspectBytes+10 || !utf8.ValidString(a) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}
