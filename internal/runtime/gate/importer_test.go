package gate

import (
	"go/token"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/gcexportdata"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Export data refers to no generic package but iter: else a program would meet two types of one name.
func TestGenericPackagesInExportData(t *testing.T) {
	l, err := newLibrary()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, data := range l.data {
		read := map[string]*types.Package{}
		if _, err := gcexportdata.Read(strings.NewReader(data), token.NewFileSet(), read, allow.TruePath(path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for generic := range l.sources {
			switch {
			case read[generic] == nil:
			case generic != "iter":
				t.Errorf("the export data of %s refers to %s", path, generic)
			default:
				found++
			}
		}
	}
	if found == 0 {
		t.Error("nothing refers to iter: strings.Lines returns one of its types")
	}
}

// One gate checks programs that know iter from the export data of other packages, and from source, in any order.
func TestIterOfTwoOrigins(t *testing.T) {
	t.Parallel()
	plain := program("strings", "", `for l := range strings.Lines("a") { _ = l }; next := strings.SplitSeq("a b", " "); _ = next`)
	whole := program("strings slices iter", "func first(s iter.Seq[string]) string { for x := range s { return x }; return \"\" }",
		`_ = first(strings.Lines("a")); _ = slices.Collect(strings.SplitSeq("a b", " ")); next, stop := iter.Pull(strings.Lines("a")); next(); stop()`)
	g := newGate(t)
	for i, source := range []string{plain, whole, plain, whole, plain} {
		if _, r := g.Check(source); r != nil {
			t.Errorf("%d: %v", i, r)
		}
	}
}
