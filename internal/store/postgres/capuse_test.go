//go:build postgres

package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// The tokens that a namespace has used and reserved today still count for the cap of all namespaces after it is erased,
// and no longer the next day.
func TestErasedSpendCounts(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, n, day := stores[0], spaces[0], agent.DayOf(time.Now())
	if err := s.Join(t.Context(), store.Replica{ID: "a"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	all := func(day agent.Day) []store.Cap {
		return []store.Cap{{Scope: store.ScopeDaemon, First: day, Last: day, Limit: 1000}}
	}
	used := func(day agent.Day) store.Use {
		t.Helper()
		uses, err := n.UseOf(t.Context(), all(day))
		if err != nil {
			t.Fatal(err)
		}
		return uses[0]
	}
	for round, name := range []agent.Namespace{"acme", "beta", "acme"} {
		x, err := s.Space(name)
		if err != nil {
			t.Fatal(err)
		}
		spent := agent.Spend{ID: "spend_1", Day: day, Role: "clerk", Method: "greet", Owner: "ann", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: 150, Completion: 50}}
		open := agent.Spend{ID: "spend_2", Day: day, Tokens: agent.Tokens{Prompt: 100}}
		if err := errors.Join(x.Reserve(t.Context(), spent), x.Settle(t.Context(), spent),
			x.Reserve(t.Context(), open)); err != nil {
			t.Fatal(err)
		}
		if err := s.EraseNamespace(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		if got := used(day); got != (store.Use{Used: int64(round+1) * 300}) {
			t.Errorf("after %s: %+v", name, got)
		}
	}
	reserve := func(id string, tokens int64) error {
		return n.ReserveWithin(t.Context(), agent.Spend{ID: id, Day: day, Tokens: agent.Tokens{Prompt: tokens}}, "a",
			all(day))
	}
	var full *store.CapError
	if err := reserve("spend_3", 101); !errors.As(err, &full) || full.Use.Used != 900 {
		t.Errorf("beyond what is left: %v", err)
	}
	if err := reserve("spend_4", 100); err != nil {
		t.Errorf("what is left: %v", err)
	}
	if got := used(day + 1); got != (store.Use{}) {
		t.Errorf("on the next day: %+v", got)
	}
}
