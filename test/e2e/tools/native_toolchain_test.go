package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// With the machine's own toolchain: what is planted in the place of all that was compiled is never run, and is made
// anew.
func TestPlantedCache(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles the packages that programs import")
	}
	t.Parallel()
	d := rig.StartIn(t, rig.NewModel(t,
		rig.Script{"worker.double": {rig.Program("\tn, _ := call.Args[0].(float64)\n\treturn n * 2, nil")}}),
		[]string{rig.OwnCompiler})
	s := d.Session("worker")
	d.WantValue(d.Call(s, "double", 4), 8, "generated")
	d.Stop(syscall.SIGTERM)
	planted := 0
	if err := filepath.WalkDir(filepath.Join(d.State(), "native", "cache"),
		func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			planted++
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("planted"), 0o755))
		}); err != nil || planted < 10 {
		t.Fatalf("%d files were replaced, %v", planted, err)
	}
	d.Start()
	d.WantValue(d.Call(s, "double", 4), 8, "persisted")
	for name, data := range rig.Files(t, filepath.Join(d.State(), "native", "cache")) {
		if string(data) == "planted" {
			t.Errorf("%s stays", name)
		}
	}
}

// A toolchain that goes while the daemon runs is nobody's fault: the call ends as runner_crash, no model is asked for
// another program, the method's health stays, and what is compiled answers.
func TestToolchainGone(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "go")
	tools := filepath.Join(root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH)
	for name, text := range map[string]string{filepath.Join(root, "bin", "go"): "#!",
		filepath.Join(root, "VERSION"): runtime.Version() + "\n", filepath.Join(tools, "compile"): "",
		filepath.Join(tools, "link"): "", filepath.Join(tools, "asm"): ""} {
		rig.WriteAt(t, name, text)
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := rig.NewModel(t, rig.Script{"worker.double": {rig.Program("\treturn 1, nil")}})
	d := rig.StartIn(t, m, []string{"PATH=" + filepath.Join(root, "bin"), rig.OwnCompiler})
	if v := d.Get("/v1/version"); v["tier"] != "native" {
		t.Fatalf("nothing is compiled: %v", v["native"])
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	const want = "the Go toolchain is not the one that was there when the daemon started"
	for range 2 {
		r := d.Call(d.Session("worker"), "double")
		if o := r.Outcome; o.OK || o.ErrorType != "runner_crash" || !strings.Contains(o.ErrorMessage, want) {
			t.Errorf("got %+v", o)
		}
		if e := d.LogOf(r); e["failure_class"] != "" {
			t.Errorf("logged as %v", e["failure_class"])
		}
	}
	if n := len(m.Questions()); n != 2 { // each call forges: nothing was kept
		t.Errorf("the model was asked %d times", n)
	}
}
