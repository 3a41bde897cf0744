package recordings

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A task is one of the recorded tasks: calls whose program a current model wrote, unrevised.
type task struct {
	ID          string          `json:"id"`
	Role        string          `json:"role"`
	Method      string          `json:"method"`
	Purpose     string          `json:"purpose"`
	Deliverable json.RawMessage `json:"deliverable"`
	Context     json.RawMessage `json:"context"`
	Calls       []struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
		Expect any             `json:"expect"`
	} `json:"calls"`
}

func tasks(t *testing.T) []task {
	t.Helper()
	data, err := os.ReadFile("testdata/tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []task
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Each recorded program is forged on the first call and serves all the others from the artifact, over
// HTTP, with the right values, in one session and in order; again after a restart without a forge.
func TestRecordedProgramsServe(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--provider", "replay", "--recording", rig.Absolute(t, "testdata/forge.jsonl"))
	list := tasks(t)
	if len(list) != 30 {
		t.Fatalf("%d recorded tasks, want 30", len(list))
	}
	right := 0
	for round, source := range []string{"generated", "persisted"} {
		for _, k := range list {
			contract := map[string]any{"purpose": k.Purpose}
			if string(k.Deliverable) != "null" {
				contract["deliverable"] = k.Deliverable
			}
			s, ok := d.Session(k.Role, map[string]any{"context": k.Context, "contract": contract}), true
			for i, c := range k.Calls {
				got := d.Invoke(s, map[string]any{"method": k.Method, "args": c.Args, "kwargs": c.Kwargs})
				want := "persisted"
				if i == 0 {
					want = source
				}
				if !got.Outcome.OK || !rig.Equal(c.Expect, got.Outcome.Value) || got.Program.Source != want {
					t.Errorf("%s call %d: got %s %v %s %s, want %s %v", k.ID, i+1, got.Program.Source, got.Outcome.Value, got.Outcome.ErrorType, got.Outcome.ErrorMessage, want, c.Expect)
					ok = false
				}
			}
			if ok {
				right++
			}
		}
		if round == 0 {
			t.Logf("%d of %d recorded programs serve all their calls from one forge", right, len(list))
			d.Restart()
		}
	}
}
