//go:build !scripted

package runtime

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spins is the body of a program that never ends when it is asked to.
const spins = "\tif call.Arg(0, \"x\") == \"spin\" {\n\t\tfor {\n\t\t}\n\t}\n\treturn 1, nil"

// A call that a client, a cancellation or a shutdown interrupts leaves one record and counts against no program. A
// model that is asked is interrupted as well, except by a client.
func TestInterruptedIsNotFailed(t *testing.T) {
	cuts := map[string]func(r *Runtime, hangUp context.CancelFunc, callID string){
		"client gone": func(_ *Runtime, hangUp context.CancelFunc, _ string) { hangUp() },
		"canceled":    func(r *Runtime, _ context.CancelFunc, id string) { _ = r.CancelRunning(id) },
		"shutdown": func(r *Runtime, _ context.CancelFunc, _ string) {
			over, stop := context.WithCancel(context.Background())
			stop()
			_ = r.Stop(over)
		},
	}
	for name, cut := range cuts {
		for _, arg := range []string{"spin", "forge"} {
			if name == "client gone" && arg == "forge" {
				continue // the call goes on: TestForgeOutlivesItsClient
			}
			t.Run(name+" during "+arg, func(t *testing.T) {
				r, model := newRuntime(t, map[string][]string{"r.m": {run(spins)}, "r.new": {run(spins)}})
				id, call := conversation(t, r, sessions.Request{Role: "r"})
				call("m", "fine")
				before, _ := r.env.Store.Artifact(t.Context(), "r", "m")
				q := CallRequest{SessionID: id, CallID: ids.New("call"), Method: "m",
					Args: []json.RawMessage{json.RawMessage(`"spin"`)}}
				if arg == "forge" {
					model.Block = make(chan struct{})
					q.Method = "new"
				}
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				done := make(chan CallResult, 1)
				go func() {
					res, err := r.Call(ctx, q)
					if err != nil {
						t.Error(err)
					}
					done <- res
				}()
				for {
					if _, running := r.Running(q.CallID); running {
						break
					}
				}
				cut(r, hangUp, q.CallID)
				var reply Reply
				if err := json.Unmarshal((<-done).Body, &reply); err != nil {
					t.Fatal(err)
				}
				if reply.Outcome.ErrorType != agent.ErrCanceled {
					t.Errorf("ended in %+v", reply.Outcome)
				}
				page, err := r.History(t.Context(), id, store.HistoryQuery{})
				if err != nil || page.Size != 2 {
					t.Errorf("%d records (%v), want 2", page.Size, err)
				}
				after, _ := r.env.Store.Artifact(t.Context(), "r", "m")
				if after.FailureCount != 0 || after.SuccessCount != before.SuccessCount ||
					after.RepairCountSinceRegen != 0 {
					t.Errorf("counters moved: %d failures, %d successes, %d repairs", after.FailureCount,
						after.SuccessCount, after.RepairCountSinceRegen)
				}
			})
		}
	}
}
