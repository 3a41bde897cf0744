package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Only its owner sees the content of a quote; others see its shape. A quote with an unknown owner shows its shape to
// everybody.
func TestQuotes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		q     Quote
		owner string
		want  string
	}{
		{"one's own", Of("ann", "content", "shape"), "ann", "content"},
		{"another's", Of("ben", "content", "shape"), "ann", "shape"},
		{"of an owner that is not known", Of("", "content", "shape"), "ann", "shape"},
		{"for nobody", Of("", "content", "shape"), "", "shape"},
		{"everybody's", Public("content"), "ann", "content"},
		{"nothing", Quote{}, "", ""},
	} {
		if got := tt.q.For(tt.owner); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	quotes := []Quote{Of("ann", "of ann", "form 1"), Of("ben", "of ben", "form 2"), Of("ben", "more of ben", ""),
		Public("of all")}
	in := Input{Owner: "ann", Kind: provider.KindRepair, Role: "r", Method: "m", FailedCode: "x",
		FailureMessage: quotes, Feedback: quotes, Evidence: []Part{{Most: 1000, Lines: quotes},
			{Most: 60, Lines: []Quote{Of("ben", strings.Repeat("b", 100), ""), Public(strings.Repeat("é", 50)),
				Public("crowded out")}}}}
	text := Program(in)[1].Content
	for part, want := range map[string]int{"of ann": 3, "form 2": 3, "of all": 3, "of ben": 0, "form 1": 0, "bbb": 0,
		"crowded out": 0, strings.Repeat("é", 29): 0, strings.Repeat("é", 28) + "…\n": 1} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q stands %d times, want %d:\n%s", part, got, want, text)
		}
	}
}

// An outline has types, sizes and the names that are declared, and no content.
func TestOutline(t *testing.T) {
	t.Parallel()
	declared := func(name string) bool { return name == "city" || name == "list" }
	for raw, want := range map[string]string{
		`"x"`: "string of 1 to 10", `""`: "empty string", `"` + strings.Repeat("é", 11) + `"`: "string of 11 to 100",
		`null`: "null", `true`: "boolean", `-1.5e3`: "number", `[]`: "empty array", `{}`: "empty object",
		`[1,2]`: "array of 1 to 10 of number",
		`{"city":"Oslo","ann@example.org":1,"x":[]}`: "{city: string of 1 to 10, 2 more}", `{"secret":1}`: "{1 more}",
		`{"list":{"list":{"list":{"list":{"list":{"list":1}}}}}}`: "{list: {list: {list: {list: {list}}}}}",
		`[[[[[[1]]]]]]`: "array of 1 to 10 of array of 1 to 10 of array of 1 to 10 of array of 1 to 10 of array of 1 to 10",
		`{"broken`:      "object",
	} {
		if got := Outline(json.RawMessage(raw), declared); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	if got := magnitude(1234); got != "1001 to 10000" {
		t.Errorf("got %q", got)
	}
}
