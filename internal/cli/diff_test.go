package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestDiffLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""}, {"a b", "a b", " a| b"}, {"", "a", "+a"}, {"a", "", "-a"}, {"a b c", "a c", " a|-b| c"},
		{"a c", "a b c d", " a|+b| c|+d"},
		{"a b", "c d", "-a|-b|+c|+d"}, {"x a y", "a y z", "-x| a| y|+z"},
	} {
		if got := strings.Join(diffLines(strings.Fields(c.a), strings.Fields(c.b)), "|"); got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.a, c.b, got, c.want)
		}
	}
	long := slices.Repeat([]string{"x"}, 2001)
	if got := diffLines(long, long[:1]); len(got) != 2002 || got[0] != "-x" || got[2001] != "+x" {
		t.Errorf("too long to compare: %d lines", len(got))
	}
}
