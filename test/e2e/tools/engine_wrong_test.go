package tools

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// wrongName is the name under which the test binary is a daemon whose runners fail the test of their engine.
const wrongName = "wrong-engine"

func newWrong(setting string) (worker.Engine, error) {
	e, err := worker.NewEngine(setting)
	return wrong{e}, err
}

type wrong struct{ worker.Engine }

const wrongReason = `the program "maps" answers 2, and must answer 1`

func (wrong) SelfTest() error { return errors.New(wrongReason) }

// doctor and serve refuse with the reason, which names the program and both answers.
func TestWrongAnswersAreReportedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	binary := rig.Named(t, wrongName)
	run := func(args ...string) (stdout, stderr string, code int) {
		return rig.RunBinary(t, binary, rig.Environment(home), args...)
	}
	out, errs, code := run("doctor", "--json", "--listen", "127.0.0.1:0")
	var findings []struct{ Check, Result, Detail, Fix string }
	if err := json.Unmarshal([]byte(out), &findings); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	found := false
	for _, f := range findings {
		if f.Check == "sandbox" {
			found = true
			if f.Result != "fail" || !strings.Contains(f.Detail, wrongReason) || f.Fix == "" {
				t.Errorf("got %+v", f)
			}
		}
	}
	if !found {
		t.Errorf("doctor does not report the sandbox: %s", out)
	}
	out, errs, code = run("doctor", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(out, wrongReason) {
		t.Errorf("for people: exit code %d: %s%s", code, out, errs)
	}
	_, errs, code = run("serve", "--listen", "127.0.0.1:0")
	if code == 0 || !strings.Contains(errs, "the engine does not work") || !strings.Contains(errs, "maps") {
		t.Errorf("serve: exit code %d: %s", code, errs)
	}
}
