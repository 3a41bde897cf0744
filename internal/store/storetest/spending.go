package storetest

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spent reserves and settles a request.
func (r *rig) spent(n store.Namespace, s agent.Spend) {
	r.Helper()
	r.ok(n.Reserve(r.ctx, s))
	r.ok(n.Settle(r.ctx, s))
}

// settles checks that a request counts exactly once and at its first settled cost, however often it is settled or
// forfeited, also at once. One without a reservation does not count.
func settles(t *testing.T, r *rig) {
	day := agent.DayOf(r.clock.now())
	spend := func(id string, prompt int64) agent.Spend {
		return agent.Spend{ID: id, Day: day, Role: "calculator", Method: "add", Owner: "alice", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: prompt}}
	}
	r.ok(r.s.Settle(r.ctx, spend("spend_of_nobody", 7)))
	r.spent(r.s, spend("spend_free", 0))
	r.ok(r.s.Settle(r.ctx, spend("spend_free", 0)))
	for round := range 20 {
		id := fmt.Sprint("spend_", round)
		r.ok(r.s.Reserve(r.ctx, spend(id, 1000)))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if err := r.s.Settle(r.ctx, spend(id, 10)); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		group.Wait()
		r.ok(r.s.Forfeit(r.ctx, id))
	}
	r.everyWay(func() {
		r.ok(r.s.Settle(r.ctx, spend("spend_3", 10)))
		got, err := r.s.Spent(r.ctx, day, day)
		r.ok(err)
		if want := "[{m {21 200 0 0 0}}]"; len(got.Open) != 0 || len(got.Rows) != 1 ||
			fmt.Sprint(got.Rows[0].Models) != want {
			t.Errorf("got %+v, want nothing open and one row with %s", got, want)
		}
	})
}

// forfeits checks that an abandoned reservation found by several handles at once counts exactly once and in full. A
// settled one does not count.
func forfeits(t *testing.T, r *rig) {
	const handles, rounds = 4, 20
	day := agent.DayOf(r.clock.now())
	all := []store.Namespace{r.s}
	for len(all) < handles {
		s := r.store
		if r.h.Another != nil {
			s = r.h.Another(t, r.store)
		}
		n, err := s.Namespace(agent.DefaultNamespace)
		r.ok(err)
		all = append(all, n)
	}
	spend := func(id string) agent.Spend {
		return agent.Spend{ID: id, Day: day, Role: "calculator", Method: "add", Owner: "alice", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: 70, Completion: 30, Estimated: 100}}
	}
	r.ok(r.s.Reserve(r.ctx, spend("spend_settled")))
	r.ok(r.s.Settle(r.ctx, agent.Spend{ID: "spend_settled"}))
	for round := range rounds {
		id := fmt.Sprint("spend_", round)
		r.ok(r.s.Reserve(r.ctx, spend(id)))
		var group sync.WaitGroup
		for _, n := range all {
			group.Go(func() {
				if err := n.Forfeit(r.ctx, id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		group.Wait()
	}
	r.ok(r.s.Forfeit(r.ctx, "spend_settled"))
	r.ok(r.s.Forfeit(r.ctx, "spend_of_nobody"))
	r.everyWay(func() {
		got, err := r.s.Spent(r.ctx, day, day)
		r.ok(err)
		if want := "[{m {20 1400 0 600 2000}}]"; len(got.Open) != 0 || len(got.Rows) != 1 ||
			fmt.Sprint(got.Rows[0].Models) != want {
			t.Errorf("got %+v, want nothing open and one row with %s", got, want)
		}
	})
}

// spending checks that reservations persist until they are settled, and that calls and requests are aggregated by day,
// method and owner within a namespace.
func spending(t *testing.T, r *rig) {
	day := agent.DayOf(r.clock.now())
	spend := func(id string, prompt, completion int64) agent.Spend {
		return agent.Spend{ID: id, Day: day, Role: "calculator", Method: "add", Owner: "alice", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: prompt, Completion: completion}}
	}
	for i := range 3 {
		r.ok(r.s.Reserve(r.ctx, spend(fmt.Sprint("spend_", i), 1000, 500)))
	}
	r.ok(r.s.Settle(r.ctx, spend("spend_0", 10, 5)))
	r.ok(r.s.Settle(r.ctx, agent.Spend{ID: "spend_1"})) // the request was never sent
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: "sess_of_alice", Owner: "alice"}, nil))
	cold := NewCommit("sess_of_alice", "call_1", r.clock.now())
	cold.Log.ArtifactHit, cold.Log.Owner = false, "alice"
	r.ok(r.s.CommitCall(r.ctx, cold))
	warm := NewCommit("sess_of_alice", "call_2", r.clock.now())
	warm.Log.ArtifactHit, warm.Log.OutcomeStatus, warm.Log.Owner = true, agent.StatusOK, "alice"
	r.ok(r.s.CommitCall(r.ctx, warm))
	r.ok(r.s.CommitCall(r.ctx,
		&store.CallCommit{Log: agent.LogEntry{Owner: "bob", CallID: "call_3", Method: "predict",
			OutcomeStatus: agent.StatusOK}}))
	r.everyWay(func() {
		got, err := r.s.Spent(r.ctx, day, day)
		r.ok(err)
		if len(got.Open) != 1 || got.Open[0] != spend("spend_2", 1000, 500) {
			t.Errorf("open: %+v", got.Open)
		}
		figures := map[string]string{}
		for _, row := range got.Rows {
			figures[row.Method+" of "+row.Owner] = fmt.Sprint(row.Calls, row.Warm, row.Models)
		}
		want := map[string]string{"add of alice": "2 1 [{m {1 10 0 5 0}}]", "predict of bob": "1 0 []"}
		if fmt.Sprint(figures) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", figures, want)
		}
		if before, err := r.s.Spent(r.ctx, math.MinInt32, day-1); err != nil || len(before.Rows) != 0 {
			t.Errorf("the days before have %v, %v", before.Rows, err)
		}
		other, err := r.store.Namespace("acme")
		r.ok(err)
		if s, err := other.Spent(r.ctx, 0, math.MaxInt32); err != nil || len(s.Rows)+len(s.Open)+len(s.Forges) != 0 {
			t.Errorf("another namespace has %+v, %v", s, err)
		}
	})
	r.ok(r.s.DeleteSession(r.ctx, "sess_of_alice", nil))
	r.clock.advance(24 * time.Hour)
	r.ok(r.s.CommitCall(r.ctx,
		&store.CallCommit{Log: agent.LogEntry{Owner: "bob", CallID: "call_4", Method: "predict",
			OutcomeStatus: agent.StatusOK}}))
	r.everyWay(func() {
		if got, err := r.s.Spent(r.ctx, day+1, day+1); err != nil || len(got.Rows) != 1 || got.Rows[0].Calls != 1 {
			t.Errorf("the next day: %+v, %v", got, err)
		}
		if got, err := r.s.Spent(r.ctx, day, day); err != nil || len(got.Rows) != 2 {
			t.Errorf("the figures of an erased session's calls: %+v, %v", got, err)
		}
	})
}
