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

	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// With the machine's own toolchain: a program that computes, ranges over a map and reads clock and randomness is compiled and proved, answers natively, and goes on to
// do so after a restart.
func TestRealToolchain(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles the standard library")
	}
	t.Parallel()
	if _, err := native.Find(native.SettingAuto, ""); err != nil {
		t.Fatalf("tests run with a toolchain: %v", err)
	}
	source := rig.Program("\tn, _ := call.Args[0].(float64)\n\tseen := map[int]int{}\n\tsum := 0\n\tfor i := range int(n) * 1000 {\n\t\tseen[i%7] += i\n\t\tsum ^= i * 31\n\t}\n"+
		"\torder := \"\"\n\tfor k := range seen {\n\t\torder += fmt.Sprint(k)\n\t}\n\tif time.Now().IsZero() || rand.IntN(10) > 9 {\n\t\treturn nil, errors.New(\"no clock\")\n\t}\n"+
		"\treturn fmt.Sprint(sum, order), nil", "errors", "fmt", "math/rand/v2", "time")
	d := rig.StartIn(t, rig.NewModel(t, rig.Script{"worker.double": {source}}), []string{"RECURGENT_NATIVE=auto"}, "--policy", "native.min_calls=2 native.min_cpu_ms=0")
	if v := d.Get("/v1/version"); v["tier"] != "native" {
		t.Fatalf("the tier is off: %v", v["native"])
	}
	s := d.Session("worker")
	want := d.Call(s, "double", 4).Outcome.Value
	isNative := func() bool {
		r := d.Call(s, "double", 4)
		d.WantValue(r, want, "")
		if got, why := state(d); got == "off" {
			t.Fatalf("the program is off: %s", why)
		}
		return r.Program.Tier == "native"
	}
	rig.UntilWithin(t, 8*rig.Patience, "program answers natively", isNative) // the first build compiles the standard library
	d.Restart()
	rig.Until(t, "program answers natively after a restart", isNative)

	d.Stop(syscall.SIGTERM)
	planted := 0
	if err := filepath.WalkDir(filepath.Join(d.State(), "native", "cache"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		planted++
		return errors.Join(os.Remove(path), os.WriteFile(path, []byte("planted"), 0o755))
	}); err != nil || planted < 10 {
		t.Fatalf("%d files were replaced, %v", planted, err)
	}
	d.Start()
	rig.UntilWithin(t, 8*rig.Patience, "program answers natively after everything compiled was replaced", isNative)
	for name, data := range rig.Files(t, filepath.Join(d.State(), "native", "cache")) {
		if string(data) == "planted" {
			t.Errorf("%s stays", name)
		}
	}
}

// A toolchain that goes while the daemon runs costs no call: the program stays on the engine, and log and view say why.
func TestToolchainGone(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "go")
	tools := filepath.Join(root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(root, "VERSION"): runtime.Version() + "\n", filepath.Join(tools, "compile"): "", filepath.Join(tools, "link"): "", filepath.Join(tools, "asm"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d := rig.StartIn(t, rig.NewModel(t, rig.Script{"worker.double": {program("same")}}), []string{"RECURGENT_NATIVE=" + root}, "--policy", "native.min_calls=2 native.min_cpu_ms=0")
	if v := d.Get("/v1/version"); v["tier"] != "native" {
		t.Fatalf("the tier is off: %v", v["native"])
	}
	s := d.Session("worker")
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	callUntil(d, s, "off")
	const want = "the Go toolchain is not the one that was there when the daemon started"
	if _, why := state(d); !strings.Contains(why, want) {
		t.Errorf("why: %s", why)
	}
	rig.Until(t, "the log says so", func() bool {
		out := d.Output.String()
		return strings.Contains(out, "a program stays on the engine") && strings.Contains(out, want)
	})
	wantTier(d, d.Call(s, "double", 5), 10, "engine")
}
