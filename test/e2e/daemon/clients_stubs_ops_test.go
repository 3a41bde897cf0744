//go:build ops

package daemon

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// files writes files below the directory.
func files(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Wrappers of methods whose names are hard to write compile, and call: mypy and Python, go vet and Go, tsc.
func TestOpsStubs(t *testing.T) {
	d, dir := rig.Start(t, nil), t.TempDir()
	for role, methods := range map[string]map[string]string{
		"calculator":   {"add": rig.ProgAdd},
		"Rôle \"x\" *": {"class": rig.ProgEcho, "`a` ${b} '''c''' \"\"\"": rig.ProgEcho, "*": rig.ProgEcho},
		"None": {"self": rig.ProgEcho,
			"import os; os.exit()": rig.Program("\treturn []any{call.Kwargs[\"self\"], call.Kwargs[\"def\"]}, nil")},
	} {
		d.Do(201, "PUT", "/v1/tools/"+url.PathEscape(role), map[string]any{})
		for method, code := range methods {
			d.Do(200, "PUT", "/v1/tools/"+url.PathEscape(role)+"/methods/"+url.PathEscape(method),
				map[string]any{"code": code})
		}
	}
	d.Do(201, "PUT", "/v1/tools/file", map[string]any{})
	d.Do(200, "PUT", "/v1/tools/file/methods/same", map[string]any{
		"code":    rig.Program("\treturn []any{call.Arg(1, \"unit\"), call.Arg(0, \"sheet\")}[1], nil"),
		"returns": json.RawMessage(`{"type":"object","properties":{"$file":{"type":"string"}},"required":["$file"]}`),
		"parameters": json.RawMessage(`[{"name":"sheet","type":"file","required":true},
			{"name":"unit","type":"string","schema":{"enum":["km","mi"]},"required":true}]`)})
	text := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	d.Expect(0, []string{"7 methods"}, "tools", "stubs", dir, "--python", "--typescript", "--go")
	t.Run("python", func(t *testing.T) {
		files(t, dir, map[string]string{"main.py": `import recurgent
from recurgent_tools import Calculator, File, None_

session = recurgent.session("calculator")
sheet = session.client.upload(b"a;b", session=session)
print(Calculator(session).add(2, 3), None_(session).import_os_os_exit(self_=1),
      session.client.download(File(session).same(sheet, "km")))
`})
		run(t, "", dir, "mypy", "--strict", "--cache-dir", os.DevNull, "recurgent_tools.py", "main.py")
		if out := run(t, d.URL, dir, "python3", "main.py"); out != "5 [1, None] b'a;b'\n" {
			t.Errorf("it printed %q", out)
		}
	})
	t.Run("go", func(t *testing.T) {
		module := filepath.Join(dir, "go")
		if err := os.CopyFS(module, os.DirFS(rig.Root()+"/examples/go")); err != nil {
			t.Fatal(err)
		}
		files(t, module, map[string]string{"tools/tools.go": text(dir + "/recurgent_tools.go"),
			"main.go": text("testdata/stubs/main.go"),
			"go.mod":  strings.ReplaceAll(text(module+"/go.mod"), "../../clients", rig.Root()+"/clients")})
		run(t, "", module, "go", "vet", "./...")
		id, _ := d.Send("POST", "/v1/files", []byte("a;b"), nil).Object(t)["id"].(string)
		if out := run(t, d.URL, module, "go", "run", ".", id); out != "5 "+id+"\n" {
			t.Errorf("it printed %q", out)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		out := runTypeScript(t, d.URL, map[string]string{"recurgent_tools.ts": text(dir + "/recurgent_tools.ts"),
			"main.ts": `import { Client, reference } from "recurgent";
import { Calculator, File } from "./recurgent_tools.js";
const client = new Client(), session = await client.session("calculator");
const sheet = reference(await client.upload("a;b", { session }));
const got = await client.download(await new File(session).same({ sheet, unit: "km" }));
console.log(await new Calculator(session).add({ a: 2, b: 3 }), new TextDecoder().decode(got));
`})
		if out != "5 a;b\n" {
			t.Errorf("it printed %q", out)
		}
	})
}

// tsc is the compiler of TypeScript.
func tsc() string { return rig.Root() + "/.cache/npm-typescript/node_modules/.bin/tsc" }

// runTypeScript compiles main.ts in a new project that has the client, with the settings of tsc --init, and runs it.
func runTypeScript(t *testing.T, url string, texts map[string]string) string {
	t.Helper()
	client, dir := builtTypeScript(t), t.TempDir()
	files(t, dir, texts)
	files(t, dir, map[string]string{"package.json": `{"type": "module"}`})
	if err := os.Mkdir(dir+"/node_modules", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(client, dir+"/node_modules/recurgent"); err != nil {
		t.Fatal(err)
	}
	run(t, "", dir, tsc(), "--init")
	run(t, "", dir, tsc())
	return run(t, url, dir, "node", "main.js")
}

// builtTypeScript is a directory with the client for TypeScript, built.
func builtTypeScript(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(rig.Root()+"/clients/typescript")); err != nil {
		t.Fatal(err)
	}
	run(t, "", dir, tsc(), "-p", ".")
	return dir
}

// The client for TypeScript passes its tests, and calls through its wrappers.
func TestOpsTypeScriptClient(t *testing.T) {
	dir := builtTypeScript(t)
	run(t, "", dir, "node", "--test", "test/client.test.js")
	d := withToken(t)
	out := run(t, d.URL, dir, "node", "test/daemon.js")
	want := "5 4.5\nok persisted\ncall.finished 5\nright active\nadd=ok add=ok add=ok\ncalculator\nx text/plain\n"
	if out != want {
		t.Errorf("it printed\n%swant\n%s", out, want)
	}
}
