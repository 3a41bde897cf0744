package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Wrappers have the interfaces that the daemon knows, of all roles or of one, and the same bytes each time.
func TestStubsOfTools(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	for _, role := range []string{"calculator", "text%20tools"} {
		d.Do(http.StatusCreated, "PUT", "/v1/tools/"+role, map[string]any{})
	}
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
	d.Expect(0, []string{"recurgent_tools.go", "recurgent_tools.py", "recurgent_tools.ts", "2 methods"}, "tools", "stubs", dir, "--python", "--typescript", "--go")
	first := map[string]string{}
	for name, parts := range map[string][]string{
		"recurgent_tools.py": {"class Calculator:", "def add(self, a: ", "class TextTools:", `["to * \"title\" case"]`},
		"recurgent_tools.ts": {"export class Calculator", `async add(args: { "a"`, "text tools.to * \"title\" case", `call("to * \"title\" case", [], `},
		"recurgent_tools.go": {"func NewCalculator(", "func (r Calculator) Add(ctx context.Context, args CalculatorAddArgs)", "func (r TextTools) ToTitleCase("},
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
