package gate

import (
	"fmt"
	"strings"
	"testing"
)

// A program at a bound passes, one beyond it does not.
func TestBounds(t *testing.T) {
	t.Parallel()
	const fields = "type U struct{ x int }\n"
	doubled := func(times int) string {
		var b strings.Builder
		b.WriteString("const s0 = \"14 characters.\"\n") // 16 bytes of source
		for i := range times {
			fmt.Fprintf(&b, "const s%d = s%d + s%d\n", i+1, i, i)
		}
		return b.String()
	}
	g := newGate(t)
	for _, tt := range []struct {
		name         string
		within, over string // declarations
	}{
		{"brackets", "var x = " + strings.Repeat("(", maxBrackets) + "1" + strings.Repeat(")", maxBrackets),
			"var x = " + strings.Repeat("(", maxBrackets+1) + "1" + strings.Repeat(")", maxBrackets+1)},
		{"slices of slices", "var x " + strings.Repeat("[]", maxPrefixes) + "int",
			"var x " + strings.Repeat("[]", maxPrefixes+1) + "int"},
		// with the =
		{"prefixes", "var x = " + strings.Repeat("!", maxPrefixes-1) + "true",
			"var x = " + strings.Repeat("!", maxPrefixes) + "true"},
		{"prefixes of parts", "var x = []bool{" + strings.Repeat("!true, ", maxPrefixes+1) + "}",
			"var x = " + strings.Repeat("<-", maxPrefixes) + "true"},
		// file, declaration, specification, and the 1
		{"depth", "var x = 1" + strings.Repeat("+1", maxDepth-4), "var x = 1" + strings.Repeat("+1", maxDepth-3)},
		{"constants", doubled(16), doubled(16) + "const more = s16 + \"\""},
		{"fields", fields + "type T struct { a [8191]U; b int }", fields + "type T struct { a [8191]U; b, c int }"},
		{"embedded", "type T struct { a [20000]int; b *[20000]T; c [][20000]T }",
			fields + "type V struct { a [200]U }\ntype T struct { a [200]V }"},
	} {
		if _, r := g.Check(program("", tt.within, "")); r != nil {
			t.Errorf("%s, at the bound: refused: %s", tt.name, r.Message)
		}
		if _, r := g.Check(program("", tt.over, "")); r == nil || !strings.Contains(r.Message, "nested too deeply") &&
			!strings.Contains(r.Message, "is too large") {
			t.Errorf("%s, beyond the bound: got %+v, want a refusal", tt.name, r)
		}
	}
}
