package gate

import "testing"

// Packages that refer to types of another package see the same types, whichever of them programs import first.
func TestTypesOfOneOrigin(t *testing.T) {
	t.Parallel()
	plain := program("strings", "",
		`for l := range strings.Lines("a") { _ = l }; next := strings.SplitSeq("a b", " "); _ = next`)
	whole := program("strings slices iter",
		"func first(s iter.Seq[string]) string { for x := range s { return x }; return \"\" }",
		`_ = first(strings.Lines("a")); _ = slices.Collect(strings.SplitSeq("a b", " ")); next, stop := iter.Pull(strings.Lines("a")); next(); stop()`)
	g := newGate(t)
	for i, source := range []string{plain, whole, plain, whole, plain} {
		if _, r := g.Check(source); r != nil {
			t.Errorf("%d: %v", i, r)
		}
	}
}
