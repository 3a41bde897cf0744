package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Types that lead back to themselves in every position, keys that hold pointers, slices of declared types: each program
// returns what its first line says, when it is new and when it is kept.
func TestShapes(t *testing.T) {
	t.Parallel()
	shapes, err := txtar.ParseFile("../../../internal/runtime/gate/diff/testdata/corpus/shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	script, wants := rig.Script{}, map[string]any{}
	for _, f := range shapes.Files {
		first, source, _ := strings.Cut(string(f.Data), "\n")
		var want any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(first, "//want ")), &want); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		script["shapes."+f.Name], wants[f.Name] = []any{source}, want
	}
	if len(wants) < 12 {
		t.Fatalf("only %d programs", len(wants))
	}
	d := rig.Start(t, rig.NewModel(t, script))
	s := d.Session("shapes")
	for name, want := range sampled.Map(wants, 4) {
		for _, source := range []string{"generated", "persisted"} {
			got := d.Call(s, name)
			d.WantValue(got, want, source)
			if source == "generated" && got.Attempts != 1 {
				t.Errorf("%s: the program was refused: %d attempts", name, got.Attempts)
			}
		}
	}
	wantNoneLost(t, d)
}
