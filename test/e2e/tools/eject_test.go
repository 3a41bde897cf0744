package tools

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// goCommand runs the go command in a module, without network and without what is known of this project.
func goCommand(t *testing.T, dir, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local",
		"GO111MODULE=on")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// passes checks that a module builds, vets and tests. It returns what the tests printed.
func passes(t *testing.T, dir string) string {
	t.Helper()
	if out, err := goCommand(t, dir, "", "vet", "./..."); err != nil {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
	out, err := goCommand(t, dir, "", "test", "-count=1", "-v", "./...")
	if err != nil {
		t.Fatalf("go test: %v\n%s", err, out)
	}
	return out
}

// ask calls main of a module and returns the value.
func ask(t *testing.T, dir, call string) (value any, outcome map[string]any) {
	t.Helper()
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(call)
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	out, _ := cmd.Output() // a call that ends in an error has another status
	if err := json.Unmarshal(out, &outcome); err != nil {
		t.Fatalf("%s: %v: %s", call, err, out)
	}
	return outcome["value"], outcome
}

func count(text, part string) int { return strings.Count(text, part) }

var progKwargs = rig.Program(
	"\tf, ok := call.Kwargs[\"f\"].(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"f is missing\")\n\t}\n\treturn (f - 32) * 5 / 9, nil")

const page = "<table><tr><th>Name<th>Price<tr><td>Fig<td>2.50</table>"

var progPrices = rig.Program(
	"\tdoc, err := html.Parse(call.Arg(0, \"page\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tout := map[string]string{}\n\tfor _, row := range doc.Records() {\n\t\tout[row[\"Name\"]] = row[\"Price\"]\n\t}\n\treturn out, nil", "recurgent/html")

// Programs that compute, delegate, keep memory, fetch and read keywords are tested and called as plain Go, and answer
// the same in another daemon, which has no model.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "desk.sum": {rig.ProgDelegates},
		"desk.count": {rig.ProgIncrement}, "desk.items": {rig.ProgFetches},
		"desk.celsius": {progKwargs}, "desk.prices": {progPrices}})
	d := rig.Start(t, m, "--fetch-allow", source.Host())
	s := d.Session("desk")
	d.Do(200, "PUT", "/v1/tools/desk/methods/closed", map[string]any{"code": rig.ProgFails})
	d.Do(200, "PUT", "/v1/tools/desk/methods/closed/examples",
		rig.ParseJSON(`{"examples":[{"args":[],"expect":{"error_type":"not_today"}}]}`))
	d.WantValue(d.Call(s, "sum"), 5, "")
	d.WantValue(d.Call(s, "count", 2), 2, "")
	d.WantValue(d.Call(s, "count", 3), 5, "")
	d.WantValue(d.Call(s, "items", source.URL), []any{"a", "b"}, "")
	d.WantValue(d.CallWith(s, "celsius", map[string]any{"f": 212}), 100, "")
	d.WantValue(d.Call(s, "prices", page), map[string]any{"Fig": "2.50"}, "")
	d.WantError(d.Call(s, "closed"), "not_today")
	source.Close() // nothing below may fetch

	dir := filepath.Join(t.TempDir(), "new", "desk")
	d.Expect(0, []string{"calculator", "desk", "written to"}, "tools", "eject", "desk", dir)
	out := passes(t, dir)
	if passed := count(out, "--- PASS: TestTools/"); passed < 7 || count(out, "--- SKIP") != 0 {
		t.Errorf("%d cases passed, want at least one for each program:\n%s", passed, out)
	}
	if v, _ := ask(t, dir, `{"role":"desk","method":"sum"}`); v != 5.0 {
		t.Errorf("sum is %v", v)
	}
	if v, _ := ask(t, dir, string(rig.MustJSON(map[string]any{"method": "prices",
		"args": []any{page}}))); !rig.Equal(map[string]any{"Fig": "2.50"}, v) {
		t.Errorf("prices is %v", v)
	}
	// by position, though the program reads the name
	if v, _ := ask(t, dir, `{"method":"celsius","args":[212]}`); v != 100.0 {
		t.Errorf("celsius is %v", v)
	}
	v, outcome := ask(t, dir, `{"method":"count","args":[4],"context":{"value":5}}`)
	if v != 9.0 || !rig.Equal(map[string]any{"value": 9}, outcome["context"]) {
		t.Errorf("count is %v", outcome)
	}
	if _, o := ask(t, dir, `{"method":"closed"}`); o["error_type"] != "not_today" {
		t.Errorf("closed is %v", o)
	}

	other := rig.Start(t, nil)
	other.Expect(0, []string{"imported"}, "tools", "import", dir, "--reason", "reviewed")
	s = other.Session("desk")
	other.WantValue(other.Call(s, "sum"), 5, "persisted")
	other.WantValue(other.Call(s, "count", 2), 2, "persisted")
	other.WantValue(other.Call(s, "celsius", 212), 100, "persisted")
	other.WantError(other.Call(s, "closed"), "not_today")
	if examples := other.Get("/v1/tools/desk/methods/closed/examples")["examples"].([]any); len(examples) != 1 {
		t.Errorf("the examples are %v", examples)
	}
	other.Expect(0, []string{"unchanged"}, "tools", "import", dir)
	other.Expect(0, []string{"written to"}, "tools", "eject", "desk", filepath.Join(t.TempDir(), "again"))
}
