package gate

import (
	"go/token"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/gcexportdata"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Export data refers to no generic package but iter, and refersToIter finds all that does: else a program would meet two types of one name.
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
			case !refersToIter(data):
				t.Errorf("the export data of %s refers to iter, which is not found", path)
			default:
				found++
			}
		}
	}
	if found == 0 {
		t.Error("nothing refers to iter: strings.Lines returns one of its types")
	}
}
