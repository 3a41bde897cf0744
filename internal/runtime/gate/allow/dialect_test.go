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

// The page about libraries by task names every package that programs may import, and none that they may not.
func TestLibrariesDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../../docs/libraries.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Packages() {
		if p.Path != Host && !strings.Contains(string(data), "`"+p.Path+"`") {
			t.Errorf("docs/libraries.md does not mention %s", p.Path)
		}
	}
	for _, n := range Refused() {
		if strings.Contains(string(data), "`"+n.Name+"`") {
			t.Errorf("docs/libraries.md recommends %s, which is refused", n.Name)
		}
	}
}
