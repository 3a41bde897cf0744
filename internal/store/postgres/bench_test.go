//go:build postgres

package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// BenchmarkCommits compares this store with the disk store in one run, in turns: commits/s of warm calls by so many writers, each in a session of
// its own, on a method of each writer's own or on one that all count on. Both write through to the disk.
func BenchmarkCommits(b *testing.B) {
	cluster := pgtest.Start(b, pgtest.Options{Fsync: true})
	for _, writers := range []int{1, 8, 64} {
		for _, hot := range []bool{false, true} {
			b.Run(fmt.Sprintf("writers=%d/hot=%v", writers, hot), func(b *testing.B) {
				files, err := disk.Open(b.TempDir(), disk.DefaultOptions())
				if err != nil {
					b.Fatal(err)
				}
				defer files.Close(context.Background())
				o := DefaultOptions(cluster.CreateDatabase(b, fmt.Sprintf("bench_%d_%v_%d", writers, hot, time.Now().UnixNano())))
				tables, err := Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				defer tables.Close(context.Background())
				loads := []*load{newLoad(b, files, writers, hot), newLoad(b, tables, writers, hot)}
				for b.Loop() {
					for _, l := range loads {
						l.run(b)
					}
				}
				rates := [2]float64{loads[0].rate(), loads[1].rate()}
				b.ReportMetric(rates[0], "disk-commits/s")
				b.ReportMetric(rates[1], "postgres-commits/s")
				b.ReportMetric(rates[1]/rates[0], "of-disk")
				b.ReportMetric(float64(tables.commits.calls.Load())/float64(tables.commits.transactions.Load()), "calls/transaction")
			})
		}
	}
}

// load commits calls of so many writers to a store.
type load struct {
	n       store.Namespace
	writers int
	hot     bool
	calls   atomic.Int64
	took    time.Duration
}

func newLoad(b *testing.B, s store.Store, writers int, hot bool) *load {
	n, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		b.Fatal(err)
	}
	l := &load{n: n, writers: writers, hot: hot}
	for w := range writers {
		if err := n.CreateSession(b.Context(), agent.Session{ID: fmt.Sprint("sess_", w), Role: "calculator", CreatedAt: time.Now(), UpdatedAt: time.Now()}, nil); err != nil {
			b.Fatal(err)
		}
		c := l.call(w)
		c.Artifacts[0].Generation = storetest.NewGeneration("gen-1", "package tool // "+c.Log.Method, time.Now())
		if err := n.CommitCall(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func (l *load) call(w int) *store.CallCommit {
	c := storetest.NewCommit(fmt.Sprint("sess_", w), fmt.Sprintf("call_%08d", l.calls.Add(1)), time.Now())
	method := "add"
	if !l.hot {
		method = fmt.Sprint("add_", w)
	}
	c.Record.MethodName, c.Log.Method = method, method
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: method, At: time.Now(), Result: agent.ClassOK, SessionID: c.SessionID}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: time.Now(), Used: 1, Register: &agent.Contract{}, IfAbsent: true}}
	return c
}

// run has the writers commit for half a second.
func (l *load) run(b *testing.B) {
	var group sync.WaitGroup
	began := time.Now()
	until := began.Add(500 * time.Millisecond)
	for w := range l.writers {
		group.Go(func() {
			for time.Now().Before(until) {
				if err := l.n.CommitCall(b.Context(), l.call(w)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	l.took += time.Since(began)
}

func (l *load) rate() float64 { return float64(l.calls.Load()) / l.took.Seconds() }
