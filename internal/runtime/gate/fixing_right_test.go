package gate

import (
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Programs that are right stay as they are, whatever their contracts ask for.
func TestFixLeavesRightPrograms(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/right.txtar")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t)
	for _, f := range archive.Files {
		source := string(f.Data)
		if _, r := g.Check(source); r != nil {
			t.Errorf("%s: %v", f.Name, r)
		}
		for _, returns := range []string{"", "array", "object"} {
			if fixed := g.Fix(source, report.Terms{Returns: returns}); fixed.Text != source || len(fixed.Faults) > 0 {
				t.Errorf("%s: corrected: %v, refused: %v\n%s", f.Name, fixed.Fixes, fixed.Faults, fixed.Text)
			}
		}
	}
}
