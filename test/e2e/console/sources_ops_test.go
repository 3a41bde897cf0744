//go:build ops

package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
}

// The sources hold what api/openapi.yaml says, by its types, and their logic its tests.
func TestOpsConsoleSources(t *testing.T) {
	tools := packages(t) + "/node_modules"
	root, err := filepath.Abs(rig.Root())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(root+"/internal/ui")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/node_modules"); err != nil { // of somebody who edits there
		t.Fatal(err)
	}
	if err := os.Symlink(tools, dir+"/node_modules"); err != nil {
		t.Fatal(err)
	}
	run(t, dir, tools+"/.bin/openapi-typescript", root+"/api/openapi.yaml", "--output", "openapi.d.ts")
	run(t, dir, tools+"/.bin/tsc")
	run(t, dir, "node", "--test", "test/")
}

// The libraries are those of the locked packages.
func TestOpsVendoredLibraries(t *testing.T) {
	packages(t)
	dir := t.TempDir()
	run(t, rig.Root(), "scripts/console-vendor", dir)
	run(t, rig.Root(), "diff", "-r", "internal/ui/web/vendor", dir)
}
