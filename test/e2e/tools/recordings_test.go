package tools

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Each recorded program is forged on the first call and serves all the others from the artifact, over
// HTTP, with the right values, in one session and in order; again after a restart without a forge.
func TestRecordedProgramsServe(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--provider", "replay", "--recording", rig.Absolute(t, "testdata/forge.jsonl"))
	list := rig.Tasks(t, "testdata/recorded-tasks.json")
	if len(list) != 30 {
		t.Fatalf("%d recorded tasks, want 30", len(list))
	}
	right := 0
	for round, source := range []string{"generated", "persisted"} {
		for _, k := range sampled.Of(list, 4) {
			s, ok := d.Session(k.Role, map[string]any{"context": k.Context, "contract": k.Contract()}), true
			for i, c := range k.Calls {
				got := d.Invoke(s, map[string]any{"method": k.Method, "args": c.Args, "kwargs": c.Kwargs})
				want := "persisted"
				if i == 0 {
					want = source
				}
				if !got.Outcome.OK || !rig.Equal(c.Expect, got.Outcome.Value) || got.Program.Source != want {
					t.Errorf("%s call %d: got %s %v %s %s, want %s %v", k.ID, i+1, got.Program.Source,
						got.Outcome.Value, got.Outcome.ErrorType, got.Outcome.ErrorMessage, want, c.Expect)
					ok = false
				}
			}
			if ok {
				right++
			}
		}
		if round == 0 {
			t.Logf("%d of %d recorded programs serve all their calls from one forge", right, len(sampled.Of(list, 4)))
			d.Restart()
		}
	}
}
