package runtime

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// A call that ends while all places for its owner's long work are taken is stored once a place is free: its answer is
// not lost.
func TestALongAnswerWaitsAndIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heavy := fair.NewHeavy[agent.Owner](1, 1000)
		owner := agent.Owner{Namespace: agent.DefaultNamespace, Name: "ann"}
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"long": runtimetest.Returns(`"` +
			strings.Repeat("a", 5000) + `"`)}}
		r, _ := scripted(t, box, map[string][]string{"r.long": {"long"}},
			func(o *env.Options) { o.Heavy, o.Namespace = heavy, agent.DefaultNamespace })
		s, err := r.CreateSession(t.Context(), sessions.Request{Role: "r", Owner: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if first, err := r.Call(t.Context(), CallRequest{SessionID: s.ID, Method: "long",
			Owner: "ann"}); err != nil || !first.OK {
			t.Fatalf("the first call: %s, %v", first.Body, err)
		}
		if err := heavy.Enter(t.Context(), owner, 1000); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan CallResult, 1)
		go func() {
			got, err := r.Call(ctx, CallRequest{SessionID: s.ID, Method: "long", Owner: "ann"})
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(done) > 0 {
			t.Errorf("it did not wait for its place: %.300s", (<-done).Body)
			return
		}
		heavy.Leave(owner, 1000)
		got := <-done
		if kept, err := r.env.Store.Call(t.Context(), got.CallID); err != nil || kept.Log.OutcomeStatus == "" {
			t.Errorf("the call is not stored: %+v, %v", kept.Log, err)
		}
		if err := heavy.Enter(t.Context(), owner, 1000); err != nil {
			t.Error(err)
		}
	})
}
