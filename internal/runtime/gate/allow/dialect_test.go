package allow

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
)

// The document and the prompt are derived from the same list.
func TestDialectDocument(t *testing.T) {
	t.Parallel()
	const path = "../../../../docs/dialect.md"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != document() {
		t.Error("docs/dialect.md is not what Document returns; run UPDATE=1 go test ./internal/runtime/gate/allow -run DialectDocument")
	}
	if !strings.Contains(Dialect(), "slices") || !strings.Contains(Dialect(),
		"func Run(call *recurgent.Call) (any, error)") {
		t.Error(Dialect())
	}
}

// The list is sorted, as Find requires, and has one entry per package.
func TestListIsSorted(t *testing.T) {
	t.Parallel()
	if !slices.IsSortedFunc(packages, func(a, b Package) int { return cmp.Or(strings.Compare(a.Path, b.Path), 1) }) {
		t.Error("packages is not sorted by path, or has one twice")
	}
}
