//go:build postgres

package postgres

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// BenchmarkCommits compares this store with the disk store, in turns within one run. It measures commits per second of
// warm calls. Each writer has its own session, and either its own method or one that all share. The writers are spread
// over the replicas. Both stores write through to the disk. It also reports the processor time per commit, of the
// server and of this process.
func BenchmarkCommits(b *testing.B) {
	cluster := pgtest.Start(b, pgtest.Options{Fsync: true})
	for _, replicas := range []int{1, 3} {
		for _, hot := range []bool{false, true} {
			for _, writers := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("replicas=%d/hot=%v/writers=%d", replicas, hot, writers),
					func(b *testing.B) { benchCommits(b, cluster, replicas, writers, hot) })
			}
		}
	}
}

func benchCommits(b *testing.B, cluster *pgtest.Cluster, replicas, writers int, hot bool) {
	ctx, dir := b.Context(), b.TempDir()
	o := DefaultOptions(cluster.CreateDatabase(b, fmt.Sprint("bench_", time.Now().UnixNano())))
	onDisk, inTables := &load{writers: writers, hot: hot}, &load{writers: writers, hot: hot}
	var server, process time.Duration
	var calls, transactions int64
	// only the measured store is open, so it has the process's memory and processors to itself
	for b.Loop() {
		files, err := disk.Open(dir, disk.DefaultOptions())
		if err != nil {
			b.Fatal(err)
		}
		onDisk.run(b, files)
		if err := files.Close(ctx); err != nil {
			b.Fatal(err)
		}
		var stores []store.Store
		for range replicas {
			s, err := Open(ctx, o)
			if err != nil {
				b.Fatal(err)
			}
			stores = append(stores, s)
		}
		before, own := cluster.ProcessorTime(), ownTime()
		inTables.run(b, stores...)
		server, process = server+cluster.ProcessorTime()-before, process+ownTime()-own
		for _, s := range stores {
			calls, transactions = calls+s.(*Store).commits.calls.Load(),
				transactions+s.(*Store).commits.transactions.Load()
			if err := s.Close(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	n := float64(calls)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(onDisk.rate(), "disk-commits/s")
	b.ReportMetric(inTables.rate(), "postgres-commits/s")
	b.ReportMetric(inTables.rate()/onDisk.rate(), "of-disk")
	b.ReportMetric(n/float64(transactions), "calls/transaction")
	b.ReportMetric(float64(server.Microseconds())/n, "server-µs/call")
	b.ReportMetric(float64(process.Microseconds())/n, "replica-µs/call")
}

func space(b *testing.B, s store.Store) store.Namespace {
	n, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// ownTime returns the processor time of this process.
func ownTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// load commits calls of several writers, who use the replicas of a store in turn.
type load struct {
	writers int
	hot     bool
	made    bool // the sessions and artifacts exist
	calls   atomic.Int64
	counted int64 // number of these that are included in took
	took    time.Duration
}

// make creates the sessions and the artifacts.
func (l *load) make(b *testing.B, n store.Namespace) {
	for w := range l.writers {
		if err := n.CreateSession(b.Context(), agent.Session{ID: fmt.Sprint("sess_", w), Role: "calculator",
			CreatedAt: time.Now(), UpdatedAt: time.Now()}, nil); err != nil {
			b.Fatal(err)
		}
		c := l.call(w)
		c.Artifacts[0].Generation = storetest.NewGeneration("gen-1", "package tool // "+c.Log.Method, time.Now())
		if err := n.CommitCall(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	l.made = true
}

func (l *load) call(w int) *store.CallCommit {
	c := storetest.NewCommit(fmt.Sprint("sess_", w), fmt.Sprintf("call_%08d", l.calls.Add(1)), time.Now())
	method := "add"
	if !l.hot {
		method = fmt.Sprint("add_", w)
	}
	c.Record.MethodName, c.Log.Method = method, method
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: method, At: time.Now(), Result: agent.ClassOK,
		SessionID: c.SessionID}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: time.Now(), Used: 1, Register: &agent.Contract{},
		IfAbsent: true}}
	return c
}

// run lets the writers commit for half a second.
func (l *load) run(b *testing.B, stores ...store.Store) {
	var spaces []store.Namespace
	for _, s := range stores {
		spaces = append(spaces, space(b, s))
	}
	if !l.made {
		l.make(b, spaces[0])
	}
	var group sync.WaitGroup
	before, began := l.calls.Load(), time.Now()
	until := began.Add(500 * time.Millisecond)
	for w := range l.writers {
		group.Go(func() {
			for time.Now().Before(until) {
				if err := spaces[w%len(spaces)].CommitCall(b.Context(), l.call(w)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	l.took, l.counted = l.took+time.Since(began), l.counted+l.calls.Load()-before
}

func (l *load) rate() float64 { return float64(l.counted) / l.took.Seconds() }
