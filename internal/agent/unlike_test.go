package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

var differing = []string{`1`, `1.0`, `1e0`, `-1`, `2`, `10`, `"a"`, `"\u0061"`, `"b"`, `"ä"`, `"\u00e4"`, `""`, `null`,
	`true`, `false`, `{}`, `{"a":1}`, `{ "a" : 1 }`, `{"a":2}`, `[]`, ` [ ] `,
	`[1]`, `[ 1 ]`, `[1.0]`, `[1,2]`, `[1, 2]`, `[1,3]`, `[[1],2]`, `[["a"],{"b":"]"}]`, `[["a"],{"b":"["}]`, `["a,b"]`,
	`["a","b"]`}

// Values that certainly differ are never the same input, and obvious differences are found.
func TestUnlike(t *testing.T) {
	t.Parallel()
	for _, a := range differing {
		for _, b := range differing {
			if unlike(json.RawMessage(a), json.RawMessage(b), unlikeDepth) &&
				bytes.Equal(canonical(json.RawMessage(a), sameDigits), canonical(json.RawMessage(b), sameDigits)) {
				t.Errorf("%s and %s are the same", a, b)
			}
		}
	}
	for _, pair := range [][2]string{{`1`, `2`}, {`1`, `[1]`}, {`"a"`, `"b"`}, {`[1, 2]`, `[1]`},
		{`[1,[2,3]]`, `[1,[2,4]]`}, {`[]`, `[1]`}, {`null`, `false`}} {
		if !unlike(json.RawMessage(pair[0]), json.RawMessage(pair[1]), unlikeDepth) {
			t.Errorf("%s and %s: the difference is not seen", pair[0], pair[1])
		}
	}
}

func FuzzUnlike(f *testing.F) {
	for _, a := range differing {
		f.Add(a, "[1, 2]")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if json.Valid([]byte(a)) && json.Valid([]byte(b)) && unlike(json.RawMessage(a), json.RawMessage(b),
			unlikeDepth) &&
			bytes.Equal(canonical(json.RawMessage(a), sameDigits), canonical(json.RawMessage(b), sameDigits)) {
			t.Fatalf("%s and %s are the same", a, b)
		}
	})
}

// BenchmarkSameInput compares a megabyte with an input of another shape, as each call is compared with its program's
// fixtures.
func BenchmarkSameInput(b *testing.B) {
	large := json.RawMessage("[" + strings.Repeat(`{"id": 1, "name": "row"}, `, 40_000) + "1]")
	for _, other := range []string{`1`, `[1]`, fmt.Sprintf(`[%s]`, strings.Repeat(`"x",`, 1000)+`"x"`)} {
		b.Run(other[:min(len(other), 4)], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				SameInput([]json.RawMessage{large}, nil, []json.RawMessage{json.RawMessage(other)}, nil)
			}
		})
	}
}
