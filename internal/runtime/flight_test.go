package runtime

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// Calls that wait for one program share it when it looks at its arguments, and only the leader pays for it. A program
// that ignores them answers one question: then each call forges its own.
func TestSharedPrograms(t *testing.T) {
	tests := []struct {
		name     string
		facts    report.Facts
		requests int
		kept     int // of the successes that the stored artifact counts
	}{
		{"shared", report.Facts{UsesArgs: true}, 1, 3},
		{"not cacheable", report.Facts{}, 3, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				echo := func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
					return runtimetest.Value(string(q.Args[0]))
				}
				box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"echo": echo},
					Facts: map[string]report.Facts{"echo": tt.facts}}
				r, model := scripted(t, box, map[string][]string{"r.m": {"echo"}}, nil)
				model.Block = make(chan struct{})
				replies := make(chan Reply, 3)
				for i := range 3 {
					_, call := conversation(t, r, sessions.Request{Role: "r"})
					go func() { replies <- call("m", i) }()
				}
				synctest.Wait() // one asks the model, the others wait
				if n := model.Count("r.m", ""); n != 1 {
					t.Errorf("%d requests at the same time, want 1", n)
				}
				close(model.Block)
				var asked int64
				answers := map[string]bool{}
				for range 3 {
					got := <-replies
					answers[string(got.Outcome.Value)] = true
					asked += int64(got.Usage.ModelRequests)
				}
				if len(answers) != 3 || !answers["0"] || !answers["1"] || !answers["2"] {
					t.Errorf("answers %v", answers)
				}
				if n := model.Count("r.m", ""); n != tt.requests || asked != int64(tt.requests) {
					t.Errorf("%d requests, and the calls report %d, want %d", n, asked, tt.requests)
				}
				a, err := r.env.Store.Artifact(t.Context(), "r", "m")
				if err != nil {
					t.Fatal(err)
				}
				if g := a.Current(); g.SuccessCount != int64(tt.kept) || g.Cacheable != tt.facts.UsesArgs {
					t.Errorf("the stored program has %d successes, cacheable %v", g.SuccessCount, g.Cacheable)
				}
				if r.forges.UnderWay() {
					t.Error("a flight is remembered")
				}
			})
		})
	}
}

// A leader that hangs up does not end the flight for those who joined it.
func TestLeaderHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}
		r, model := scripted(t, box, map[string][]string{"r.m": {"one"}}, nil)
		model.Block = make(chan struct{})
		ids := [2]string{ids.New("call"), ids.New("call")}
		done := [2]chan CallResult{}
		for i, id := range ids {
			s, err := r.CreateSession(t.Context(), sessions.Request{Role: "r"})
			if err != nil {
				t.Fatal(err)
			}
			done[i] = make(chan CallResult, 1)
			go func() {
				res, err := r.Call(t.Context(), CallRequest{CallID: id, SessionID: s.ID, Method: "m"})
				if err != nil {
					t.Error(err)
				}
				done[i] <- res
			}()
			synctest.Wait()
		}
		if !r.CancelRunning(ids[0]) {
			t.Fatal("the leader does not run")
		}
		if res := <-done[0]; res.OK {
			t.Errorf("the leader got %s", res.Body)
		}
		close(model.Block)
		if res := <-done[1]; !res.OK {
			t.Errorf("the other got %s", res.Body)
		}
		if n := model.Count("r.m", ""); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}
