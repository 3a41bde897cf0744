package tools

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The corrected text is the program: it is kept, shown, and run after a restart, and its facts say what was corrected.
// A program that a person puts in stays as it is.
func TestFixedTextIsKept(t *testing.T) {
	t.Parallel()
	const loose = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) any {\n\tn := call.Arg(0, \"n\").(int)\n\treturn n * 2\n}\n"
	m := rig.NewModel(t, rig.Script{"doubler.double": {loose}})
	d := rig.Start(t, m)
	s := d.Session("doubler")
	first := d.Call(s, "double", 21)
	d.WantValue(first, 42.0, "generated")
	got := d.Call(s, "double", 2.5)
	d.WantError(got, "invalid_input")
	if !got.Outcome.Authored || got.Outcome.ErrorMessage != "a whole number is needed, not 2.5" {
		t.Errorf("got %+v", got.Outcome)
	}
	const fixed = "package tool\n\nimport \"recurgent\"\n\nfunc run(call *recurgent.Call) any {\n\tn := recurgent.Must(call.Arg(0, \"n\"), 0).(int)\n\treturn n * 2\n}\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tvalue := run(call)\n\tif err, failed := value.(error); failed {\n\t\treturn nil, err\n\t}\n\treturn value, nil\n}\n"
	g := d.List("/v1/tools/doubler/methods/double/generations")[0]
	if g["code"] != fixed {
		t.Errorf("kept as\n%s", g["code"])
	}
	fixes := fmt.Sprint(g["facts"].(map[string]any)["fixes"])
	for _, want := range []string{"line 5: the program begins with func Run", "line 6: JSON has no int"} {
		if !strings.Contains(fixes, want) {
			t.Errorf("%q is not among %s", want, fixes)
		}
	}
	_, page := explained(d, first.CallID)
	says(t, page, "2 slips were found in what the model wrote and corrected before the check",
		`"line 6: JSON has no int: a number is converted"`)
	d.Stop(syscall.SIGTERM)
	d.Start()
	d.WantValue(d.Call(d.Session("doubler"), "double", 4), 8.0, "persisted")

	const own = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tn, ok := call.Arg(0, \"n\").(int)\n\treturn []any{n, ok}, nil\n}\n"
	if r := d.Send(http.MethodPut, "/v1/tools/doubler/methods/own", rig.MustJSON(map[string]any{"code": own}),
		nil); r.Status != http.StatusOK && r.Status != http.StatusCreated {
		t.Fatalf("%d: %s", r.Status, r.Body)
	}
	d.WantValue(d.Call(d.Session("doubler"), "own", 4), []any{0.0, false}, "persisted")
}

// A null is no answer of a program that prints, or whose author declares that it returns something else.
func TestNullIsNoAnswer(t *testing.T) {
	t.Parallel()
	printing := rig.Program("\tif len(call.Args) > 0 {\n\t\tfmt.Println(\"the answer is\", call.Args[0])\n\t\treturn nil, nil\n\t}\n\treturn 1, nil", "fmt")
	nothing := rig.Program("\tif x := call.Arg(0, \"x\"); x == \"known\" {\n\t\treturn x, nil\n\t}\n\treturn nil, nil")
	declares := func(returns string) openaitest.Reply {
		return openaitest.Reply{Code: nothing,
			Declared: map[string]any{"parameters": []any{map[string]any{"name": "x", "type": "string"}},
				"returns": map[string]any{"type": returns}}}
	}
	m := rig.NewModel(t, rig.Script{"t.prints": {printing, rig.ProgGiven}, "t.list": {declares("array"), rig.ProgGiven},
		"t.maybe": {declares("null")}, "t.free": {nothing},
		"t.never": {printing}})
	d := rig.Start(t, m)
	s := d.Session("t")
	d.WantValue(d.Call(s, "prints", 7), 7.0, "generated")
	d.WantValue(d.Call(s, "list", "a"), "a", "generated")
	d.WantValue(d.Call(s, "maybe", "a"), nil, "generated")
	d.WantValue(d.Call(s, "free", "a"), nil, "generated")
	for method, hint := range map[string]string{"prints": "Return the value: return value, nil.",
		"list": "Start a list with []string{}: a nil slice is null."} {
		if q := m.Count("t", method); q != 2 {
			t.Errorf("%s: the model was asked %d times", method, q)
		}
		found := false
		for _, q := range m.Questions() {
			found = found || q.Method == method && q.Kind == "repair" && strings.Contains(q.User, hint)
		}
		if !found {
			t.Errorf("%s: the repair does not say %q", method, hint)
		}
	}
	d.WantError(d.Call(s, "never", 7), "tool_error")
}

// A reply that fails as the one before it did uses no budget, once; the same program again is not asked for.
func TestRepeatedFaultsUseNoBudget(t *testing.T) {
	t.Parallel()
	bad := func(n int) string {
		return rig.Program(fmt.Sprintf("\t// try %d\n\treturn call.Translate(%d), nil", n, n))
	}
	fails := func(n int) string {
		return rig.Program(fmt.Sprintf("\tlist := []int{}\n\t_ = %d\n\treturn list[3], nil", n))
	}
	m := rig.NewModel(t, rig.Script{
		"t.late":  {bad(1), bad(1) + "\n// again\n", rig.ProgGiven},
		"t.same":  {bad(1)},
		"t.never": {bad(1), bad(2) + "\n", bad(2) + "\n\n", bad(2) + "\n\n\n", rig.ProgGiven},
		"t.runs":  {fails(1), fails(2), rig.ProgGiven},
		"t.other": {bad(1), rig.Program("\treturn missing, nil"), rig.ProgGiven},
	})
	d := rig.Start(t, m)
	s := d.Session("t")
	d.WantValue(d.Call(s, "late", 7), 7.0, "generated")
	d.WantValue(d.Call(s, "runs", 7), 7.0, "generated")
	for method, asked := range map[string]int{"same": 2, "never": 3, "other": 2} {
		d.WantError(d.Call(s, method, 7), "invalid_code")
		if n := m.Count("t", method); n != asked {
			t.Errorf("%s: the model was asked %d times, want %d", method, n, asked)
		}
	}
}
