package spend_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A fullStore is a store that cannot record what requests cost while full is set.
type fullStore struct {
	store.Store
	full    bool
	applies bool // it applies what it cannot make durable
}

func (s *fullStore) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := s.Store.Namespace(name)
	return &fullNamespace{n, s}, err
}

type fullNamespace struct {
	store.Namespace
	of *fullStore
}

func (n *fullNamespace) Settle(ctx context.Context, s agent.Spend) error {
	if !n.of.full || n.of.applies {
		if err := n.Namespace.Settle(ctx, s); err != nil {
			return err
		}
	}
	if n.of.full {
		return fmt.Errorf("%w: the disk is full", store.ErrReadOnly)
	}
	return nil
}

// What a request cost while the store could not record it is reported at once, recorded later, and counts once. After
// a crash before that, it counts as its reservation.
func TestRefusedCosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		applies, crash bool
		want           int64 // tokens after the restart
	}{{false, false, 60}, {true, false, 60}, {false, true, 700}} {
		r := newRig(t, agent.SpendPolicy{DayTokens: 1000})
		full := &fullStore{Store: r.store, applies: tt.applies}
		var err error
		if r.ledger, err = spend.New(r.ctx, spend.Options{Store: full, Now: r.clock, Logger: zerolog.New(&r.log)},
			"default"); err != nil {
			t.Fatal(err)
		}
		reported := func() int64 {
			t.Helper()
			report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: spend.ByRole})
			if err != nil || len(report.Data) != 1 || report.Data[0].ModelRequests != 1 {
				t.Fatalf("%+v: got %+v, %v; want one request", tt, report.Data, err)
			}
			return report.Data[0].PromptTokens + report.Data[0].CompletionTokens
		}
		settle, err := r.charge("a", "alice", 700)
		if err != nil {
			t.Fatal(err)
		}
		full.full = true
		settle(bill(60))
		for range 2 {
			if l := r.limit("namespace", "day"); reported() != 60 || l.Used != 60 || l.Reserved != 0 {
				t.Errorf("%+v, while the store is full: %d tokens are reported, and %+v", tt, reported(), l)
			}
			r.ledger.Record(r.ctx)
		}
		full.full = false
		if !tt.crash {
			r.ledger.Record(r.ctx)
			r.ledger.Record(r.ctx)
			if reported() != 60 || strings.Count(r.log.String(), "is recorded now") != 1 {
				t.Errorf("%+v: once it is recorded, %d tokens are reported: %s", tt, reported(), r.log.String())
			}
		}
		for range 2 {
			r.restart()
			if got := reported(); got != tt.want {
				t.Errorf("%+v: after a restart %d tokens are reported, want %d", tt, got, tt.want)
			}
		}
	}
}
