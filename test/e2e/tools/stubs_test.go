package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A role whose program a person put in is listed before anybody calls it, as its methods are, and until the program is
// gone.
func TestRolesOfPutProgramsAreListed(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	put(d, "text tools", "title", rig.ProgGiven, "")
	listed := func() string {
		return string(rig.MustJSON(d.List("/v1/tools"))) + string(d.Do(http.StatusOK, http.MethodGet,
			"/v1/tools?format=mcp", nil).Body) + d.Expect(0, nil, "tools", "list")
	}
	if got := listed(); strings.Count(got, `"role":"text tools"`) != 1 || !strings.Contains(got, "text_tools__title") ||
		!strings.Contains(got, "\ntext tools ") {
		t.Errorf("listed are %s", got)
	}
	if got := d.Get("/v1/tools/text%20tools"); got["role"] != "text tools" || got["revision"] != 0.0 ||
		got["by_use"] != true || got["health"].(object)["methods"] != 1.0 {
		t.Errorf("the tool is %v", got)
	}
	d.WantValue(d.Call(d.Session("text tools"), "title", "a"), "a", "persisted")
	if got := d.Get("/v1/tools/text%20tools"); got["revision"] != 1.0 || got["usage_count"] != 1.0 {
		t.Errorf("after a call: %v", got)
	}
	put(d, "other tools", "title", rig.ProgGiven, "")
	d.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("other tools", "title"), nil)
	if got := listed(); strings.Contains(got, "other tools") {
		t.Errorf("after it is deleted there are %s", got)
	}
	if r := d.Send(http.MethodGet, "/v1/tools/other%20tools", nil, nil); r.Status != http.StatusNotFound {
		t.Errorf("a role without a program: %d", r.Status)
	}
}

// Wrappers have the interfaces that the daemon knows, of all roles or of one, and the same bytes each time.
func TestStubsOfTools(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	d.Do(http.StatusCreated, "PUT", "/v1/tools/calculator", map[string]any{}) // nobody registers the other one
	put(d, "calculator", "add", rig.ProgAdd, "")
	put(d, "text tools", "to * \"title\" case", rig.Program("\treturn call.Args[0], nil"), "")
	dir := filepath.Join(t.TempDir(), "tools")
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	d.Expect(0, []string{"recurgent_tools.go", "recurgent_tools.py", "recurgent_tools.ts", "2 methods"}, "tools",
		"stubs", dir, "--python", "--typescript", "--go")
	first := map[string]string{}
	for name, parts := range map[string][]string{
		"recurgent_tools.py": {"class Calculator:", "def add(self, a: ", "class TextTools:", `["to * \"title\" case"]`},
		"recurgent_tools.ts": {"export class Calculator", `async add(args: { "a"`, "text tools.to * \"title\" case",
			`call("to * \"title\" case", [], `},
		"recurgent_tools.go": {"func NewCalculator(",
			"func (r Calculator) Add(ctx context.Context, args CalculatorAddArgs)", "func (r TextTools) ToTitleCase("},
	} {
		first[name] = read(name)
		for _, p := range parts {
			if !strings.Contains(first[name], p) {
				t.Errorf("%s lacks %q:\n%s", name, p, first[name])
			}
		}
	}
	d.Expect(0, nil, "tools", "stubs", dir, "--python", "--typescript", "--go")
	for name, want := range first {
		if got := read(name); got != want {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
	d.Expect(0, []string{"1 methods"}, "tools", "stubs", "calculator", dir, "--python")
	if got := read("recurgent_tools.py"); strings.Contains(got, "TextTools") {
		t.Errorf("the wrappers of one role have another one:\n%s", got)
	}
	d.Expect(2, []string{"--python, --typescript, --go"}, "tools", "stubs", dir)
	d.Expect(1, []string{"nobody"}, "tools", "stubs", "nobody", dir, "--go")
}
