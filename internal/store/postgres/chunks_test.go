//go:build postgres

package postgres

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// A replica's chunk of a cap is a part of what is left. It is freed when the replica's time is over or the replica
// leaves.
func TestChunks(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, n, day := stores[0], spaces[0], agent.DayOf(time.Now())
	for _, id := range []string{"a", "b"} {
		if err := s.Join(t.Context(), store.Replica{ID: id}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	held := func(replica string) (tokens int64) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(), "SELECT coalesce(sum(tokens), -1) FROM spend_chunks WHERE replica = $1",
			replica).Scan(&tokens); err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	var ids int
	reserve := func(replica string, tokens int64) error {
		ids++
		return n.ReserveWithin(t.Context(), agent.Spend{ID: fmt.Sprint("spend_", ids), Day: day,
			Tokens: agent.Tokens{Prompt: tokens}}, replica,
			[]store.Cap{{Scope: store.ScopeNamespace, First: day, Last: day, Limit: 1000}})
	}
	for _, step := range []struct {
		replica string
		tokens  int64
		a, b    int64 // what they hold afterwards
	}{
		{"a", 100, 400, -1}, // half of it
		{"a", 100, 300, -1}, // from that
		{"b", 100, 300, 300},
		{"b", 350, 300, 0}, // its own 300, and 50 of the 100 that nobody holds
		{"a", 250, 50, 0},
		{"b", 90, -1, 0}, // takes the other's; ten are nobody's
	} {
		if err := reserve(step.replica, step.tokens); err != nil {
			t.Fatalf("%+v: %v", step, err)
		}
		if a, b := held("a"), held("b"); a != step.a || b != step.b {
			t.Errorf("%+v: they hold %d and %d", step, a, b)
		}
	}
	if err := s.Leave(t.Context(), "b"); err != nil || held("b") != -1 {
		t.Errorf("who left holds %d, %v", held("b"), err)
	}
	if err := reserve("a", 5); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE replicas SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	if err := s.sweep(t.Context()); err != nil || held("a") != -1 {
		t.Errorf("who is dead holds %d, %v", held("a"), err)
	}
}

// A chunk of a cap of all namespaces belongs to no namespace, and Verify accepts that.
func TestChunksOfAllAreWhole(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, day := stores[0], agent.DayOf(time.Now())
	if err := s.Join(t.Context(), store.Replica{ID: "a"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := spaces[0].ReserveWithin(t.Context(), agent.Spend{ID: "spend_1", Day: day,
		Tokens: agent.Tokens{Prompt: 1}}, "a",
		[]store.Cap{{Scope: store.ScopeDaemon, First: day, Last: day, Limit: 1000}}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("got %q, %v", r.Problems, err)
	}
}

// Measures reservations per second of three replicas with eight concurrent requests each, under a cap of the namespace
// and one of all namespaces: from chunks, and the way it was before chunks, with a lease and a sum for each request.
func BenchmarkReservations(b *testing.B) {
	for _, leased := range []bool{false, true} {
		b.Run(map[bool]string{false: "chunks", true: "lease"}[leased], func(b *testing.B) {
			url, day := pgtest.NewDatabase(b), agent.DayOf(time.Now())
			caps := []store.Cap{{Scope: store.ScopeNamespace, First: day, Last: day, Limit: 1 << 40},
				{Scope: store.ScopeDaemon, First: day, Last: day, Limit: 1 << 40}}
			var spaces []*Namespace
			for i := range 3 {
				s, err := Open(b.Context(), DefaultOptions(url))
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = s.Close(context.Background()) })
				if err := s.Join(b.Context(), store.Replica{ID: fmt.Sprint("rep_", i)}, time.Hour); err != nil {
					b.Fatal(err)
				}
				n, _ := s.Space(agent.DefaultNamespace)
				spaces = append(spaces, n)
			}
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for w := range 24 {
				group.Go(func() {
					n, replica := spaces[w%3], fmt.Sprint("rep_", w%3)
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						spend := agent.Spend{ID: fmt.Sprint("spend_", i), Day: day, Role: "r",
							Method: fmt.Sprint("m", i%100), Tokens: agent.Tokens{Requests: 1, Prompt: 1000}}
						if err := reserveOne(b.Context(), n, spend, replica, caps, leased); err != nil {
							b.Error(err)
						}
						if err := n.Settle(b.Context(), spend); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reservations/s")
		})
	}
}

func reserveOne(ctx context.Context, n *Namespace, s agent.Spend, replica string, caps []store.Cap, leased bool) error {
	if !leased {
		return n.ReserveWithin(ctx, s, replica, caps)
	}
	l, err := n.Lease(ctx, "spend", store.LeaseOptions{TTL: 15 * time.Second, Wait: true})
	if err != nil {
		return err
	}
	defer l.Release()
	if _, err := n.Spent(ctx, s.Day, math.MaxInt32); err != nil {
		return err
	}
	return n.Reserve(ctx, s)
}
