//go:build postgres

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A replica is one of several daemons on a database, with a proxy before it and one before its database.
type replica struct {
	*rig.Daemon
	clients, database *Proxy
	clock             func(by string)
}

// replicas are daemons that share a database with a synchronous standby.
type replicas struct {
	t       *testing.T
	all     []*replica
	cluster *pgtest.Cluster
	load    *Load
	ctx     context.Context
	turn    int // whose fault is next
}

func startReplicas(ctx context.Context, t *testing.T, m *rig.Model, n int) *replicas {
	t.Helper()
	r := &replicas{t: t, ctx: ctx, cluster: pgtest.Start(t, pgtest.Options{Standby: true}), load: &Load{Patience: 10 * time.Second}}
	r.cluster.CreateDatabase(t, "chaos")
	authority, dir := apptest.NewAuthority(t), t.TempDir()
	ca := authority.Write(t, dir)
	for i := range n {
		cert, key := authority.Pair(t, int64(i+2)).Write(t, t.TempDir())
		database := NewProxy(t, "unix", r.cluster.Sockets()[0])
		store := "RECURGENT_STORE=postgres://postgres@" + database.Address + "/chaos?sslmode=disable"
		d, clock := rig.StartAheadIn(t, m, []string{store}, "--advertise", "127.0.0.1:0", "--cluster-ca", ca, "--cluster-cert", cert, "--cluster-key", key)
		one := &replica{Daemon: d, database: database, clock: clock, clients: NewProxy(t, "tcp", host(t, d))}
		r.all = append(r.all, one)
		r.load.Addresses = append(r.load.Addresses, one.clients.Address)
	}
	return r
}

// next is the replica whose turn it is, and another one.
func (r *replicas) next() (one, other *replica) {
	r.turn++
	return r.all[r.turn%len(r.all)], r.all[(r.turn+1)%len(r.all)]
}

// again starts a replica that has ended.
func (r *replicas) again(one *replica) {
	one.Start()
	one.clients.Target("tcp", host(r.t, one.Daemon))
}

func (r *replicas) acked(n int) {
	r.t.Helper()
	if !r.load.Acked(r.ctx, n) {
		r.t.Fatal("no calls are answered")
	}
}

// alive is how many replicas the store counts, as that one sees it; -1 where it cannot say.
func (r *replicas) alive(asked *replica) int {
	reply, err := asked.Try(r.ctx, http.MethodGet, "/v1/replicas", nil, nil)
	if err != nil || reply.Status != http.StatusOK {
		return -1
	}
	list, _ := reply.Object(r.t)["data"].([]any)
	return len(list)
}

// until waits for a number of replicas that the store counts. Calls go on meanwhile.
func (r *replicas) until(asked *replica, alive int) {
	r.t.Helper()
	for got := r.alive(asked); got != alive; got = r.alive(asked) {
		r.acked(3)
	}
}

// failOver kills the primary and promotes the standby, to which all are sent then; another standby is made.
func (r *replicas) failOver() {
	r.cluster.Kill(r.t)
	r.cluster.Promote(r.t)
	for _, one := range r.all {
		one.database.Target("unix", r.cluster.Sockets()[0])
		one.database.Cut()
	}
	r.cluster.AddStandby(r.t)
}

func (r *replicas) troubles() []trouble {
	hours := 0
	return []trouble{
		{"kill a replica", func() { one, _ := r.next(); one.Stop(syscall.SIGKILL); r.again(one) }},
		{"cut clients", func() { one, _ := r.next(); one.clients.Cut() }},
		{"kill the primary and promote the standby", r.failOver},
		{"stop a replica until it counts as dead", func() {
			one, other := r.next()
			_ = one.Cmd.Process.Signal(syscall.SIGSTOP)
			r.until(other, len(r.all)-1)
			_ = one.Cmd.Process.Signal(syscall.SIGCONT)
			r.until(other, len(r.all))
		}},
		{"cut a replica's database", func() { one, _ := r.next(); one.database.Cut() }},
		{"a clock jumps ahead", func() { one, _ := r.next(); hours += 2; one.clock(fmt.Sprintf("%dh", hours)) }},
		{"half-close replies", func() { one, _ := r.next(); one.clients.HalfCloseReplies() }},
		{"slow a replica's database", func() {
			one, _ := r.next()
			one.database.Slow(20 * time.Millisecond)
			r.acked(30)
			one.database.Slow(0)
		}},
		{"terminate a replica", func() {
			one, _ := r.next()
			if code := one.Stop(syscall.SIGTERM); code != 0 {
				r.t.Errorf("SIGTERM: exit code %d", code)
			}
			r.again(one)
		}},
		{"half-close requests to the database", func() { one, _ := r.next(); one.database.HalfCloseRequests() }},
		{"hold a replica's database until it counts as dead", func() {
			one, other := r.next()
			release := one.database.Hold()
			r.until(other, len(r.all)-1)
			release()
			r.until(other, len(r.all))
		}},
		{"a clock jumps back", func() { one, _ := r.next(); hours--; one.clock(fmt.Sprintf("%dh", hours)) }},
	}
}

// Three replicas on PostgreSQL: they are killed, stopped and cut off, their database fails over, connections are cut, slowed,
// held and half-closed, and clocks jump. CHAOS_CALLS and CHAOS_FAULTS say how much.
func TestChaosReplicas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	m := newModel(t)
	r := startReplicas(ctx, t, m, 3)
	var sessions []Session
	for i := range 6 {
		sessions = append(sessions, Session{ID: r.all[i%3].Session(role), Keyed: i%2 == 0})
	}
	faults := run(ctx, t, r.load, sessions, r.troubles(), r.acked)
	calls, problems := r.load.Calls()
	state := Read(r.all[0].Daemon, m, sessions, faults)
	for _, p := range append(problems, Check(calls, state)...) {
		t.Error(p)
	}
	report(t, calls, state, faults)
	by := map[string]int{}
	for _, c := range calls {
		if c.Acked {
			by[c.Replica]++
		}
	}
	if len(by) < 3 || strings.Contains(fmt.Sprint(by), "map[:") {
		t.Errorf("replicas by calls: %v", by)
	}
}
