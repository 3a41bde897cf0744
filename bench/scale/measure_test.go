//go:build postgres

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// BenchmarkCommit commits warm calls of one or three replicas, with 1, 8 and 64 writers each, to a primary with a
// synchronous standby, both of which sync. It reports calls per second, calls per transaction, and processor time: of
// the primary per call and per transaction, of the replicas per call. Writers count on tools of their own, or all on
// one.
func BenchmarkCommit(b *testing.B) {
	c := pgtest.Start(b, pgtest.Options{Standby: true, Fsync: true})
	for i, tools := range []string{"apart", "one"} {
		for j, shape := range [][2]int{{1, 1}, {1, 8}, {1, 64}, {3, 8}, {3, 64}} {
			b.Run(fmt.Sprintf("tools=%s/replicas=%d/writers=%d", tools, shape[0], shape[1]), func(b *testing.B) {
				name := fmt.Sprintf("bench%d%d%d", i, j, b.N)
				benchCommit(b, c, c.CreateDatabase(b, name), shape[0], shape[1], tools == "one")
			})
		}
	}
}

// ownTime returns the processor time of this process, which contains the replicas.
func ownTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchCommit(b *testing.B, c *pgtest.Cluster, url string, replicas, writers int, one bool) {
	ctx := context.Background()
	var spaces []*postgres.Namespace
	for range replicas {
		s, err := postgres.Open(ctx, postgres.DefaultOptions(url))
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = s.Close(ctx) }()
		space, err := s.Space("default")
		if err != nil {
			b.Fatal(err)
		}
		spaces = append(spaces, space)
	}
	call := func(session, id string) *store.CallCommit {
		role, at := session, time.Now()
		if one {
			role = "calculator"
		}
		c := storetest.NewCommit(session, id, at)
		c.Record.Role, c.Log.Role = role, role
		c.Artifacts = []agent.ArtifactChange{{Role: role, MethodName: "add", At: at, Result: agent.ClassOK,
			SessionID: session}}
		c.Tools = []store.ToolChange{{Role: role, At: at, Used: 1, Register: &agent.Contract{}, IfAbsent: true}}
		return c
	}
	var sessions []string
	for i := range replicas * writers {
		id := fmt.Sprintf("sess_w%03d", i)
		first := call(id, "call_first"+id)
		if i == 0 || !one {
			first.Artifacts[0].Generation = storetest.NewGeneration("gen-1", "package tool", time.Now())
		}
		if err := spaces[0].CreateSession(ctx, agent.Session{ID: id, Role: first.Log.Role, CreatedAt: time.Now()},
			nil); err != nil {
			b.Fatal(err)
		}
		if err := spaces[0].CommitCall(ctx, first); err != nil {
			b.Fatal(err)
		}
		sessions = append(sessions, id)
	}
	transactions := func() int {
		n, err := strconv.Atoi(c.Exec(b, "postgres", "SELECT pg_current_xact_id()"))
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	before, processor, own := transactions(), c.ProcessorTime(), ownTime()
	var n atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for i, id := range sessions {
		all.Go(func() {
			for k := n.Add(1); k <= int64(b.N); k = n.Add(1) {
				if err := spaces[i%replicas].CommitCall(ctx, call(id, fmt.Sprintf("call_%026d", k))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	calls, used := float64(b.N), (c.ProcessorTime()-processor).Seconds()*1000
	tx := float64(transactions() - before - 1)
	b.ReportMetric((ownTime()-own).Seconds()*1000/calls, "replica-ms/call")
	b.ReportMetric(calls/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(calls/tx, "calls/tx")
	b.ReportMetric(used/calls, "db-ms/call")
	b.ReportMetric(used/tx, "db-ms/tx")
}
