package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progPlain gives errors without a type: of Bind, and one of its own.
const progPlain = "\tvar in struct {\n\t\tN int `json:\"n\"`\n\t}\n\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, err\n\t}\n\tif in.N > 5 {\n\t\treturn nil, errors.New(\"too many\")\n\t}\n\treturn in.N, nil"

// An error without a type is a failure of the program and is repaired, unless an argument is not what the program
// declares.
func TestErrorsWithoutATypeAreFailures(t *testing.T) {
	t.Parallel()
	first, fixed := declares(rig.Program(progPlain, "errors"), "n"),
		declares(rig.Program(strings.Replace(progPlain, "in.N > 5", "in.N > 50", 1), "errors"), "n")
	for _, r := range []map[string]any{first.Declared, fixed.Declared} {
		r["parameters"].([]any)[0].(map[string]any)["type"] = "integer"
	}
	m := rig.NewModel(t, rig.Script{"r.m": {first, fixed}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.WantValue(d.Call(s, "m", 1), 1.0, "generated")
	bad := d.Call(s, "m", "many")
	d.WantError(bad, "invalid_input")
	if !strings.Contains(bad.Outcome.ErrorMessage, "n is not what the method takes") ||
		bad.Outcome.Metadata["parameters"] == nil || len(m.Requests()) != 1 {
		t.Errorf("an argument of another type: %+v, %d requests", bad.Outcome, len(m.Requests()))
	}
	got := d.Call(s, "m", 7)
	d.WantValue(got, 7.0, "repaired")
	if e := d.LogOf(got); e["failure_class"] != "intrinsic" || !strings.Contains(m.LastQuestion().User, "too many") {
		t.Errorf("class %v, and the model was asked with:\n%s", e["failure_class"], m.LastQuestion().User)
	}
	last := d.Call(s, "m", 70)
	d.WantError(last, "tool_error")
	if last.Outcome.Authored {
		t.Errorf("it counts as the program's word: %+v", last.Outcome)
	}
}

// Programs of before author such errors: nothing is repaired for them.
func TestErrorsWithoutATypeOfBefore(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Program(progPlain, "errors")}})
	d := rig.Start(t, m)
	d.WantValue(d.Call(d.Session("r"), "m", 1), 1.0, "generated")
	d.Edit(func(dir string) {
		file := filepath.Join(dir, "tools", "r", "m.json")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), prompt.Version) {
			t.Fatalf("%v: %s", err, text)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), prompt.Version, "2026-11-29.v6")),
			0o600); err != nil {
			t.Fatal(err)
		}
	})
	got := d.Call(d.Session("r"), "m", 7)
	d.WantError(got, "tool_error")
	if !got.Outcome.Authored || len(m.Requests()) != 1 {
		t.Errorf("got %+v, %d requests", got.Outcome, len(m.Requests()))
	}
}
