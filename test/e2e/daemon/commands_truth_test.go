package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// share is a program that answers a share of its argument.
func share(percent string) string {
	return rig.Program("\tn, ok := call.Arg(0, \"gross\").(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"gross must be a number\")\n\t}\n\treturn n * " + percent + " / 100, nil")
}

var callID = regexp.MustCompile(`(?m)^call (call_\S+)$`)

// asked makes a call and returns its value and id, as a person sees them.
func askedByCommand(d *rig.Daemon, args ...string) (value, id string) {
	d.T.Helper()
	out, errs, code := d.Client(append([]string{"call"}, args...)...)
	m := callID.FindStringSubmatch(errs)
	if code != 0 || m == nil {
		d.T.Fatalf("call %q: %d, %q, %q", args, code, out, errs)
	}
	return strings.TrimSpace(out), m[1]
}

// A forged tax.net answers 600 where 700 is right. By commands alone a person says so, gets it corrected, sees what
// changed, and keeps the expectation in a file that a pipeline runs; no other call fails meanwhile.
func TestWrongAnswerIsCorrectedByCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {share("60"), share("70")}})
	d := rig.Start(t, m)
	value, wrong := askedByCommand(d, "tax", "net", "1000")
	if value != "600" {
		t.Fatalf("tax.net(1000) is %s", value)
	}
	if value, _ = askedByCommand(d, "tax", "net", "2000"); value != "1200" {
		t.Fatalf("tax.net(2000) is %s", value)
	}
	d.Expect(3, []string{"404"}, "verdict", wrong)
	d.Expect(0, []string{"tax.net (gen-1): wrong, expected 700 (70 percent, not 60)", "\nexample: ex_", ", active\n",
		"\ncorrection: adopted as gen-2 (other answers changed: 1), 1 attempt\n"},
		"wrong", wrong, "--expected", "700", "--note", "70 percent, not 60", "--wait")
	if value, _ = askedByCommand(d, "tax", "net", "1000"); value != "700" {
		t.Errorf("after the correction tax.net(1000) is %s", value)
	}
	if value, _ = askedByCommand(d, "tax", "net", "10"); value != "7" {
		t.Errorf("after the correction tax.net(10) is %s", value)
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d requests to the model, want 2", n)
	}
	if q := m.LastQuestion(); !strings.Contains(q.User, "70 percent, not 60") || q.Kind != "repair" {
		t.Errorf("the request to the model lacks what the person said: %s", q.User)
	}
	d.Expect(0, []string{"wrong, expected 700", "adopted as gen-2"}, "verdict", wrong)
	d.Expect(0, []string{"correction adopted as gen-2"}, "tools", "show", "tax", "net")
	d.Expect(0, []string{"--- gen-1", "+++ gen-2", "-\treturn n * 60 / 100, nil", "+\treturn n * 70 / 100, nil",
		"answers that changed with it:", "(2000)  1200  1400"}, "tools", "diff", "tax", "net")

	folder := filepath.Join(d.Dir, "examples")
	file := filepath.Join(folder, "nested", "net.yaml")
	page := d.Expect(0, []string{"role: tax\nmethod: net\nexamples:\n  - id: ex_",
		"    args: [1000]\n    expect: {value: 700}\n    note: 70 percent, not 60\n"}, "tools", "examples", "get",
		"tax", "net")
	rig.WriteAt(t, file, page)
	d.Expect(0, []string{"ok    tax.net(1000): 700  " + file + ":4\n1 passed, 0 failed, 0 skipped\n"}, "test", folder)

	d.Expect(1, []string{"answer           700", "600", "1 passed, 0 failed, 0 skipped",
		"0 passed, 1 failed, 0 skipped", "it does not hold 1 example"}, "tools", "try", "tax", "net", "1000",
		"--generation", "gen-1")
	d.Expect(0, []string{"it does not hold these examples: ex_"}, "tools", "rollback", "tax", "net")
	report := filepath.Join(d.Dir, "report.xml")
	d.Expect(1, []string{"FAIL  tax.net(1000): got 600, want 700 (70 percent, not 60)  " + file + ":4",
		"1 of 1 example failed"}, "test", folder, "--junit", report)
	if data, err := os.ReadFile(report); err != nil || !strings.Contains(string(data),
		`<failure message="got 600, want 700 (70 percent, not 60)"></failure>`) {
		t.Errorf("the report is %s (%v)", data, err)
	}
	d.Expect(0, nil, "tools", "rollback", "tax", "net", "--generation", "gen-2")
	d.Expect(0, []string{"the verdict is taken back"}, "verdict", wrong, "--drop")
	d.Expect(3, []string{"404"}, "verdict", wrong)
	d.Expect(0, []string{"nothing\n"}, "tools", "examples", "list", "tax", "net")
}

// Verdicts that cannot count are refused, and right answers become examples.
func TestVerdictCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {share("60"), share("50"), share("50")},
		"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	// the correction that fails is not tried again while the test runs
	d.Policy(map[string]any{"backoff": map[string]any{"base_seconds": 3600}})
	_, sum := askedByCommand(d, "calculator", "add", "2", "3")
	d.Expect(0, []string{"calculator.add (gen-1): right (as it should)", "example: ex_"}, "right", sum, "--note",
		"as it should")
	d.Expect(0, []string{"passed  (2, 3)  5"}, "tools", "examples", "run", "calculator", "add")
	d.Expect(2, []string{"cannot be used together"}, "wrong", sum, "--expected", "1", "--expected-error", "x")
	d.Expect(3, []string{"404"}, "wrong", "call_00000000000000000000000000")
	d.Expect(3, []string{"404"}, "verdict", sum+"x")

	// A correction that does not give the example is not adopted: the old program answers, and --wait says so.
	_, wrong := askedByCommand(d, "tax", "net", "1000")
	out := d.Expect(1, []string{"the correction failed; the old program still answers"}, "wrong", wrong,
		"--expected", "700", "--wait", "--output", "json")
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if c, _ := v["correction"].(map[string]any); c["state"] != "backing_off" || c["last_error"] == nil {
		t.Errorf("the correction is %v", v["correction"])
	}
	if value, _ := askedByCommand(d, "tax", "net", "1000"); value != "600" {
		t.Errorf("tax.net(1000) is %s", value)
	}
	d.Expect(0, []string{"correction backing_off, 1 attempt, next at "}, "tools", "show", "tax", "net")

	// Who wants an error says its type; a verdict that the policy leaves to a person is not waited for.
	d.Expect(0, nil, "policy", "set", "correction=manual")
	_, text := askedByCommand(d, "tax", "net", "5")
	d.Expect(0, []string{"expected the error too_small"}, "wrong", text, "--expected-error", "too_small", "--wait")
}
