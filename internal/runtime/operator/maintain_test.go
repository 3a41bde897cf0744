package operator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A replica that gets the turn of maintenance back knows what the other one has done: a schedule runs once per
// interval.
func TestScheduleGoesOnAmongReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		n, err := s.Namespace(agent.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		p := agent.DefaultPolicy()
		p.Maintenance.IntervalHours = 24
		if err := n.SetPolicy(t.Context(), p, 0, nil); err != nil {
			t.Fatal(err)
		}
		a, b := newReplica(t, s), newReplica(t, s)
		began := time.Now()
		for _, turn := range []struct {
			at   time.Duration
			of   *replica
			runs int // runs of the schedule so far
		}{{0, a, 1}, {24 * time.Hour, b, 2}, {25 * time.Hour, a, 2}, {47 * time.Hour, b, 2}, {48 * time.Hour, a, 3}} {
			time.Sleep(time.Until(began.Add(turn.at)))
			next := turn.of.op.Maintain(t.Context())
			entries, err := n.Audit(t.Context(), store.AuditQuery{Limit: 10,
				Actions: []string{"maintenance.scheduled"}})
			if err != nil || len(entries) != turn.runs {
				t.Errorf("after %s: %d runs, %v, want %d", turn.at, len(entries), err, turn.runs)
			}
			if want := began.Add(time.Duration(turn.runs) * 24 * time.Hour); next.Sub(want).Abs() > time.Second {
				t.Errorf("after %s: the next run is due at %s, want %s", turn.at, next, want)
			}
		}
	})
}
