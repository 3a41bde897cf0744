package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The binary that scripts/build makes compiles programs with what it carries, on a machine without Go, and says so.
// The next start uses the unpacked compiler, and rejects anything else in its place.
func TestCarriedCompiler(t *testing.T) {
	if testing.Short() {
		t.Skip("long: builds the daemon and the compiled packages that it carries")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("programs are compiled for linux on amd64")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "recurgentd")
	build := exec.Command(filepath.Join(rig.Root(), "scripts", "build"), binary, "-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	source := rig.Program("\tn, _ := call.Args[0].(float64)\n\tvar b strings.Builder\n\tfor i := range int(n) {\n\t\tfmt.Fprintf(&b, \"%d \", i)\n\t}\n\treturn b.String(), nil", "fmt", "strings")
	env := []string{"PATH=", "GOROOT=", rig.OwnCompiler, rig.Binary + "=" + binary}
	d := rig.StartIn(t, rig.NewModel(t, rig.Script{"worker.double": {source}}), env)
	wantCarried := func() {
		t.Helper()
		tier, _ := d.Get("/v1/version")["native"].(map[string]any)
		if tier["state"] != "on" || tier["from"] != "carried" || tier["toolchain"] != runtime.Version() ||
			!strings.Contains(d.Output.String(), "on ("+runtime.Version()+", carried)") {
			t.Fatalf("the tier is %v", tier)
		}
	}
	wantCarried()
	s := d.Session("worker")
	builds := func() {
		t.Helper()
		r := d.Call(s, "double", 4)
		d.WantValue(r, "0 1 2 3 ", "")
		if r.Program.Tier != "native" || r.Program.BuildMs <= 0 {
			t.Errorf("it was not compiled: %+v", r.Program)
		}
	}
	builds()
	if out, errs, code := rig.RunBinary(t, binary, append(rig.Environment(d.Dir), env...),
		"doctor"); !strings.Contains(out, runtime.Version()+", which is carried") {
		t.Errorf("doctor: %d\n%s%s", code, out, errs)
	}
	tools, err := filepath.Glob(filepath.Join(d.State(), "native", "cache", "packages-*", "compile"))
	if err != nil || len(tools) != 1 {
		t.Fatalf("unpacked are %v, %v", tools, err)
	}
	was, err := os.Stat(tools[0])
	if err != nil {
		t.Fatal(err)
	}
	d.Stop(syscall.SIGTERM)
	exe, err := filepath.Glob(filepath.Join(d.State(), "native", "cache", "exe", "*"))
	if err != nil || len(exe) != 1 {
		t.Fatalf("executables are %v, %v", exe, err)
	}
	if err := os.Remove(exe[0]); err != nil { // it has to be built again
		t.Fatal(err)
	}
	d.Start()
	wantCarried()
	builds()
	if now, err := os.Stat(tools[0]); err != nil || !os.SameFile(was, now) {
		t.Errorf("the compiler was unpacked again: %v", err)
	}
}
