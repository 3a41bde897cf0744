// Package wrong tests what people see of a daemon whose engine answers wrongly on this machine.
package wrong

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// TestMain has the runners of this package fail the test of their engine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Serve(func(setting string) (worker.Engine, error) {
			e, err := worker.NewEngine(setting)
			return wrong{e}, err
		}))
	}
	rig.Main(m)
}

type wrong struct{ worker.Engine }

const reason = `the program "maps" answers 2, and must answer 1`

func (wrong) SelfTest() error { return errors.New(reason) }

// doctor and serve refuse with the reason, which names the program and both answers.
func TestWrongAnswersAreReportedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	out, errs, code := rig.Run(t, rig.Environment(home), "doctor", "--json", "--listen", "127.0.0.1:0")
	var findings []struct{ Check, Result, Detail, Fix string }
	if err := json.Unmarshal([]byte(out), &findings); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	found := false
	for _, f := range findings {
		if f.Check == "sandbox" {
			found = true
			if f.Result != "fail" || !strings.Contains(f.Detail, reason) || f.Fix == "" {
				t.Errorf("got %+v", f)
			}
		}
	}
	if !found {
		t.Errorf("doctor does not report the sandbox: %s", out)
	}
	out, errs, code = rig.Run(t, rig.Environment(home), "doctor", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(out, reason) {
		t.Errorf("for people: exit code %d: %s%s", code, out, errs)
	}
	_, errs, code = rig.Run(t, rig.Environment(home), "serve", "--listen", "127.0.0.1:0")
	if code == 0 || !strings.Contains(errs, "the engine does not work") || !strings.Contains(errs, "maps") {
		t.Errorf("serve: exit code %d: %s", code, errs)
	}
}
