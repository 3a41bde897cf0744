package diff

import (
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
)

// TestDiffGoProject runs tests of the Go project natively and here, in the same proportion as TestDiffCorpus runs the
// corpus. They are the tests with constructs that rewriting changes.
func TestDiffGoProject(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	tests, err := txtar.ParseFile("testdata/goproject/tests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var entries []corpus.Entry
	for _, f := range tests.Files {
		entries = append(entries, corpus.Entry{Name: f.Name, Source: string(f.Data), Calls: []string{"[]"}})
	}
	compareEntries(t, sample(t, entries))
}
