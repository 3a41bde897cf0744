package operator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// The number of inbox entries is sent at once and after each change by any replica. Calls alone cause no event.
func TestInboxCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		a, b := newReplica(t, s), newReplica(t, s)
		judged := a.call(t)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []string
		ended := make(chan error, 1)
		go func() {
			ended <- a.op.InboxCounts(ctx, func(e progress.Event) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, string(e.Data))
				return nil
			})
		}()
		sees := func(want string) {
			t.Helper()
			time.Sleep(3 * time.Second) // the bubble's time
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(got) != want {
				t.Errorf("got the counts %v, want %s", got, want)
			}
		}
		sees(`[{"waiting":0}]`)
		v, _, err := b.op.Judge(t.Context(), judged, operator.Judgement{Verdict: agent.VerdictRight, Actor: "cal"})
		if err != nil {
			t.Fatal(err)
		}
		sees(`[{"waiting":0} {"waiting":1}]`)
		b.call(t)
		sees(`[{"waiting":0} {"waiting":1}]`)
		if _, err := b.op.DecideExample(t.Context(), operator.ExampleDecision{Role: "r", Method: "m", ID: *v.ExampleID,
			Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		sees(`[{"waiting":0} {"waiting":1} {"waiting":0}]`)
		cancel()
		if err := <-ended; err == nil {
			t.Error("the stream ended without the context's cause")
		}
	})
}
