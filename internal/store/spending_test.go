package store_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A ledger's size is bounded, whatever names clients make up, and it loses no figure of a day.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	l := store.NewLedger(store.Spent{})
	const days, names = 5, 6000
	for day := range agent.Day(days) {
		for i := range names {
			e := agent.LogEntry{Role: "r", Method: fmt.Sprint("m", i), ArtifactHit: true, OutcomeStatus: agent.StatusOK}
			e.Owner = fmt.Sprint("o", i)
			l.Call(20_000+day, &e, nil)
			l.Settle(agent.Spend{ID: "x", Day: 20_000 + day, Role: "r", Method: e.Method, Owner: "o",
				Model: fmt.Sprint("model", i), Tokens: agent.Tokens{Requests: 1, Prompt: 2}})
		}
	}
	s := l.Spent(math.MinInt32, math.MaxInt32)
	if len(s.Rows) > 10_000+days { // and the sum of each day
		t.Errorf("%d rows", len(s.Rows))
	}
	calls, tokens := map[agent.Day]int64{}, map[agent.Day]int64{}
	for _, r := range s.Rows {
		calls[r.Day] += r.Calls
		if len(r.Models) > 9 {
			t.Fatalf("%d models in a row", len(r.Models))
		}
		for _, m := range r.Models {
			tokens[r.Day] += m.Sum()
		}
	}
	for day := range agent.Day(days) {
		if d := 20_000 + day; calls[d] != names || tokens[d] != 2*names {
			t.Errorf("day %d has %d calls and %d tokens", day, calls[d], tokens[d])
		}
	}
}

// After a quarter only the daily sums are left, without names of owners.
func TestLedgerForgetsOwners(t *testing.T) {
	t.Parallel()
	l := store.NewLedger(store.Spent{})
	e := agent.LogEntry{Role: "r", Method: "m", Owner: "alice", OutcomeStatus: agent.StatusOK}
	for _, day := range []agent.Day{20_000, 20_001, 20_093} {
		l.Call(day, &e, nil)
		l.Settle(agent.Spend{ID: "x", Day: day, Role: "r", Method: "m", Owner: "alice", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: 5}})
	}
	s := l.Spent(math.MinInt32, math.MaxInt32)
	if r := s.Rows[0]; len(s.Rows) != 3 || r.Owner+r.Role+r.Method != "" || r.Calls != 1 ||
		fmt.Sprint(r.Models) != "[{m {1 5 0 0 0}}]" || s.Rows[1].Owner != "alice" {
		t.Errorf("got %+v", s.Rows)
	}
}

// Adding a warm call allocates nothing.
func TestLedgerCallAllocates(t *testing.T) {
	l := store.NewLedger(store.Spent{})
	e := agent.LogEntry{Role: "r", Method: "m", Owner: "alice", ArtifactHit: true, OutcomeStatus: agent.StatusOK}
	changes := []agent.ArtifactChange{{Role: "r", MethodName: "m"}}
	l.Call(20_000, &e, changes)
	if n := testing.AllocsPerRun(100, func() { l.Call(20_000, &e, changes) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
