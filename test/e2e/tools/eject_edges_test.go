package tools

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// put stores a program and, unless they are "", examples.
func put(d *rig.Daemon, role, method, code, examples string) {
	d.T.Helper()
	path := "/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method)
	d.Do(http.StatusOK, "PUT", path, map[string]any{"code": code})
	if examples != "" {
		d.Do(http.StatusOK, "PUT", path+"/examples", rig.ParseJSON(`{"examples":`+examples+`}`))
	}
}

// Names that are no Go identifiers, that collide, and that are quotes and directives, make a module that builds;
// secrets stay out of it, and what is not there is named.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	const role = "Rôle x"
	names := []string{"init", "INIT", "änd", "önd", "_", "a`b\"c$(x)%q\"", "go:build ignore", "x_test", "<b>|*"}
	for _, name := range names {
		put(d, role, name, rig.Program("\treturn "+string(rig.Encode(t, name))+", nil"),
			`[{"args":[],"expect":{"value":`+string(rig.Encode(t, name))+`}}]`)
	}
	put(d, role, "calls", rig.Program("\to := call.Tool(\"nobody here\").Call(\"x\")\n\treturn o.ErrorType, nil"),
		`[{"args":[],"expect":{"value":"not_ejected"}}]`)
	put(d, role, "computes", rig.Program("\tname := \"a\" + \"b\"\n\treturn call.Tool(name).Role(), nil"), "")
	put(d, role, "asks", rig.Program("\treturn call.Ask(\"what\", 1)"),
		`[{"args":[],"expect":{"value":"x"}},{"args":[1],"expect":{"schema":{"type":"string"}}}]`)
	put(d, role, "login", rig.Program("\treturn \"ok\", nil"),
		`[{"id":"ex_open","args":[{"user":"ada"}],"expect":{"value":"ok"}},{"id":"ex_secret","args":[{"password":"hunter2"}],"expect":{"value":"ok"}}]`)

	dir := filepath.Join(t.TempDir(), "names")
	d.Expect(0, []string{"ex_secret was not written as a test: it holds a masked or secret value",
		"nobody here is called and has no program", "computes the name of a role", "demands a JSON Schema"}, "tools",
		"eject", role, dir)
	out := passes(t, dir)
	if passed, skipped := count(out, "--- PASS: TestTools/"), count(out,
		"--- SKIP: TestTools/"); passed != len(names)+2 || skipped != 1 {
		t.Errorf("%d passed and %d were skipped, want %d and the one that asks a model:\n%s", passed, skipped,
			len(names)+2, out)
	}
	for path, text := range rig.Files(t, dir) {
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("%s has the secret", path)
		}
	}
	for _, name := range names[:5] {
		if v, _ := ask(t, dir, string(rig.Encode(t, map[string]any{"role": role, "method": name}))); v != name {
			t.Errorf("%q answers %v", name, v)
		}
	}
	other := rig.Start(t, nil)
	// there a model would be asked for nobody here
	other.Expect(1, []string{"1 of 13 methods refused", `answers "denied"`}, "tools", "import", dir)
	s := other.Session(role)
	for _, name := range names {
		other.WantValue(other.Call(s, name), name, "persisted")
	}
}

// A directory appears whole or not at all, and nothing that is there is touched.
func TestDirectories(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	put(d, "calculator", "add", rig.ProgAdd, "")
	put(d, "bad", "main", strings.Replace(rig.ProgAdd, "package tool", "package main", 1), "")
	parent := t.TempDir()
	full, empty, file := filepath.Join(parent, "full"), filepath.Join(parent, "empty"), filepath.Join(parent, "file")
	rig.WriteAt(t, filepath.Join(full, "mine.txt"), "mine")
	rig.WriteAt(t, file, "mine")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Expect(2, []string{"is not empty"}, "tools", "eject", "calculator", full)
	d.Expect(2, []string{"is not a directory"}, "tools", "eject", "calculator", file)
	d.Expect(1, []string{"nobody has no program to write"}, "tools", "eject", "nobody", filepath.Join(parent, "none"))
	d.Expect(3, []string{"404"}, "tools", "eject", "calculator", "nothing", filepath.Join(parent, "none"))
	d.Expect(2, []string{"package is called main"}, "tools", "eject", "bad", filepath.Join(parent, "none"))
	d.Expect(0, []string{"written to"}, "tools", "eject", "calculator", "add", empty)
	d.Do(http.StatusOK, "POST", "/v1/tools/calculator/methods/add/quarantine", map[string]any{})
	d.Expect(1, []string{"is quarantined"}, "tools", "eject", "calculator", "add", filepath.Join(parent, "none"))
	d.Expect(1, []string{"is quarantined"}, "tools", "eject", "calculator", filepath.Join(parent, "none"))
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 3 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if got := rig.Files(t, full); len(got) != 1 || string(got[filepath.Join(full, "mine.txt")]) != "mine" {
		t.Errorf("the full directory has %v", got)
	}
}

// A method comes whole or not at all: the gate, the examples and what is there already refuse it, and the others come.
func TestImportRefusals(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	d.Do(http.StatusCreated, "PUT", "/v1/tools/desk",
		rig.ParseJSON(`{"purpose":"sums","deliverable":{"type":"number"}}`))
	put(d, "desk", "add", rig.ProgAdd, `[{"args":[2,3],"expect":{"value":5}}]`)
	put(d, "desk", "gate", rig.ProgAdd, "")
	put(d, "desk", "held", rig.ProgAdd, `[{"args":[2,3],"expect":{"value":5}}]`)
	dir := filepath.Join(t.TempDir(), "desk")
	d.Expect(0, nil, "tools", "eject", "desk", dir)
	editFile(t, filepath.Join(dir, "tools", "desk_gate", "program.go"), "import (", "import (\n\t\"os/exec\"")
	editFile(t, filepath.Join(dir, "tools", "desk_held", "examples.json"), "\"value\": 5", "\"value\": 6")

	other := rig.Start(t, nil)
	other.Expect(1, []string{"imported", `"os/exec"`, "it does not hold 1 example of 1", "answers 5",
		"2 of 3 methods refused"}, "tools", "import", dir)
	for method, status := range map[string]int{"add": 200, "gate": 404, "held": 404} {
		if r := other.Send("GET", "/v1/tools/desk/methods/"+method, nil, nil); r.Status != status {
			t.Errorf("%s: %d, want %d", method, r.Status, status)
		}
	}
	s := other.Session("desk")
	other.WantValue(other.Call(s, "add", 2, 3), 5, "persisted") // no new program for the contract that came along
	if tool := other.Get("/v1/tools/desk"); tool["purpose"] != "sums" {
		t.Errorf("the contract is %v", tool)
	}

	editFile(t, filepath.Join(dir, "tools", "desk_add", "program.go"), "return a + b, nil", "return b + a, nil")
	other.Expect(1, []string{"--replace replaces it"}, "tools", "import", dir)
	other.Expect(1, []string{"replaced", "2 of 3 methods refused"}, "tools", "import", dir, "--replace", "--reason",
		"reviewed")
	if code := other.Artifact("desk", "add")["code"].(string); !strings.Contains(code, "b + a") {
		t.Errorf("the program is %s", code)
	}
	other.WantValue(other.Call(s, "add", 2, 3), 5, "persisted")

	// What a program calls may come after it.
	put(d, "calculator", "add", rig.ProgAdd, "")
	put(d, "a desk", "sum", rig.ProgDelegates, `[{"args":[],"expect":{"value":5}}]`)
	sum := filepath.Join(t.TempDir(), "sum")
	d.Expect(0, []string{"calculator"}, "tools", "eject", "a desk", "sum", sum)
	if out := other.Expect(0, nil, "tools", "import", sum); count(out, "imported") != 2 {
		t.Errorf("it prints\n%s", out)
	}

	bad := t.TempDir()
	other.Expect(2, []string{"recurgentd tools eject has written"}, "tools", "import", bad)
	other.Expect(2, []string{"no such file"}, "tools", "import", filepath.Join(bad, "none"))
	rig.WriteAt(t, filepath.Join(bad, "eject.json"),
		`{"format":1,"methods":[{"role":"r","method":"m","dir":"../desk"}]}`)
	other.Expect(2, []string{"not below the module"}, "tools", "import", bad)
	rig.WriteAt(t, filepath.Join(bad, "eject.json"), `{"format":1,"methods":[{"role":"r","method":"m","dir":"x"}]}`)
	if err := os.Symlink(filepath.Join(dir, "tools", "desk_add"), filepath.Join(bad, "x")); err != nil {
		t.Fatal(err)
	}
	other.Expect(2, []string{"escapes"}, "tools", "import", bad)
	rig.WriteAt(t, filepath.Join(bad, "eject.json"), `{"format":9}`)
	other.Expect(2, []string{"its format is 9"}, "tools", "import", bad)
	other.Expect(3, []string{"cannot reach"}, "tools", "import", dir, "--url", "http://127.0.0.1:1")
}

func editFile(t *testing.T, path, old, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, text, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A program that was changed by hand fails the tests of its module: recorded answers are compared, and what it fetches
// beyond the recording is named. Headers of fetches are not written.
func TestChangedPrograms(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, rig.ItemsBody)
	fetches := strings.Replace(rig.ProgFetches, "call.Fetch(call.Arg(0, \"url\").(string))",
		"call.FetchWith(recurgent.Request{URL: call.Arg(0, \"url\").(string), Header: map[string]string{\"X-Mine\": \"a-very-secret-word\"[:6]}})", 1)
	d := rig.Start(t, rig.NewModel(t, rig.Script{"desk.items": {fetches},
		"desk.now": {rig.Program("\treturn time.Now().Year() > 2000, nil", "time")}}), "--fetch-allow", source.Host())
	s := d.Session("desk")
	d.WantValue(d.Call(s, "items", source.URL), []any{"a", "b"}, "")
	d.WantValue(d.Call(s, "now"), true, "")
	dir := filepath.Join(t.TempDir(), "desk")
	out := d.Expect(0, nil, "tools", "eject", "desk", dir, "--output", "json")
	var report struct {
		LeftOut []map[string]string `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.LeftOut) != 1 ||
		report.LeftOut[0]["reason"] != "it reads the clock" {
		t.Errorf("left out is %v, %v", report, err)
	}
	passes(t, dir)
	recorded := filepath.Join(dir, "tools", "desk_items", "recorded.json")
	if data, err := os.ReadFile(recorded); err != nil || strings.Contains(string(data), "X-Mine") ||
		!strings.Contains(string(data), source.URL) {
		t.Errorf("%v: %s", err, data)
	}
	editFile(t, filepath.Join(dir, "tools", "desk_items", "program.go"), "return v.Items, nil",
		"return v.Items[1:], nil")
	if out, err := goCommand(t, dir, "", "test", "./tools"); err == nil ||
		!strings.Contains(out, `got ["b"], want ["a","b"]`) {
		t.Errorf("%v: %s", err, out)
	}
	editFile(t, filepath.Join(dir, "tools", "desk_items", "program.go"), "URL: call",
		"URL: \"http://127.0.0.1:1/\" + call")
	if out, err := goCommand(t, dir, "", "test", "./tools"); err == nil ||
		!strings.Contains(out, "which the recorded call did not") {
		t.Errorf("%v: %s", err, out)
	}
}
