//go:build postgres

package replicas

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

// A replica is one of several daemons on a database, with a proxy before it, one for the other replicas, and one before
// its database.
type replica struct {
	*rig.Daemon
	clients, peers, database *Proxy
	clock                    func(by string)
}

// replicas are daemons that share a database with a synchronous standby.
type replicatedRun struct {
	*run
	all     []*replica
	cluster *pgtest.Cluster
	turn    int // whose fault is next
}

func startReplicas(run *run, n int) *replicatedRun {
	t := run.t
	t.Helper()
	r := &replicatedRun{run: run, cluster: pgtest.Start(t, pgtest.Options{Standby: true})}
	r.cluster.CreateDatabase(t, "chaos")
	ca := apptest.NewAuthority(t)
	for i := range n {
		dir := t.TempDir()
		cert, key := ca.Pair(t, int64(i+2)).Write(t, dir)
		listen := apptest.Address(t)
		one := &replica{clients: NewProxy(t, "tcp", ""), peers: NewProxy(t, "tcp", listen),
			database: NewProxy(t, "unix", r.cluster.Sockets()[0])}
		store := "RECURGENT_STORE=postgres://postgres@" + one.database.Address + "/chaos?sslmode=disable"
		one.Daemon, one.clock = rig.StartAheadIn(t, r.model, []string{store}, "--max-completion-tokens", "1024",
			"--advertise", one.peers.Address, "--cluster-listen", listen, "--cluster-ca", ca.Write(t, dir),
			"--cluster-cert", cert, "--cluster-key", key)
		one.turn(run, 0)
		one.clients.Target("tcp", host(t, one.Daemon))
		r.load.Journal.Keep(t, fmt.Sprintf("replica%d", i+1), one.Daemon)
		r.all = append(r.all, one)
		r.load.Addresses = append(r.load.Addresses, one.clients.Address)
	}
	return r
}

// turn puts the replica's clock by so many hours further than all are ahead.
func (one *replica) turn(r *run, by int) {
	r.ahead += by
	one.clock(fmt.Sprintf("%dh", r.ahead))
}

func (r *replicatedRun) daemons() (all []*rig.Daemon) {
	for _, one := range r.all {
		all = append(all, one.Daemon)
	}
	return all
}

// next is the replica whose turn it is, and another one.
func (r *replicatedRun) next() (one, other *replica) {
	r.turn++
	return r.all[r.turn%len(r.all)], r.all[(r.turn+1)%len(r.all)]
}

// again starts a replica that has ended.
func (r *replicatedRun) again(one *replica) {
	one.Start()
	one.clients.Target("tcp", host(r.t, one.Daemon))
}

// fullDisk has the database refuse to store calls, as one does whose disk is full, and gives it room again.
func (r *replicatedRun) fullDisk() {
	r.cluster.Exec(r.t, "chaos", `CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN RAISE EXCEPTION $$could not extend file: No space left on device$$ USING ERRCODE = $$disk_full$$; END'`,
		"CREATE TRIGGER full_disk BEFORE INSERT ON calls EXECUTE FUNCTION full_disk()")
	r.load.Failed(r.ctx, len(r.sessions))
	r.cluster.Exec(r.t, "chaos", "DROP TRIGGER full_disk ON calls")
}

// alive is how many replicas the store counts, as that one sees it; -1 where it cannot say.
func (r *replicatedRun) alive(asked *replica) int {
	reply, err := asked.Try(r.ctx, http.MethodGet, "/v1/replicas", nil, nil)
	if err != nil || reply.Status != http.StatusOK {
		return -1
	}
	list, _ := reply.Object(r.t)["data"].([]any)
	return len(list)
}

// until waits for a number of replicas that the store counts. Calls go on meanwhile.
func (r *replicatedRun) until(asked *replica, alive int) {
	r.t.Helper()
	for got := r.alive(asked); got != alive; got = r.alive(asked) {
		r.acked(3)
	}
}

// failOver kills the primary and promotes the standby, to which all are sent then; another standby is made.
func (r *replicatedRun) failOver() {
	r.cluster.Kill(r.t)
	r.promote()
}

// failOverLate kills the standby first, for so long that commits are given up which wait for it. None of them may be
// acknowledged, since the standby that is promoted has none of them.
func (r *replicatedRun) failOverLate() {
	r.cluster.KillStandby(r.t)
	r.load.Failed(r.ctx, 2*len(r.sessions))
	r.cluster.Kill(r.t)
	r.cluster.RestartStandby(r.t)
	r.promote()
}

func (r *replicatedRun) promote() {
	r.cluster.Promote(r.t)
	for _, one := range r.all {
		one.database.Target("unix", r.cluster.Sockets()[0])
		one.database.Cut()
	}
	r.cluster.AddStandby(r.t)
}

// stopped stops the replica until it counts as dead, in one of the ways that it cannot notice, and waits until it has
// come back.
func (r *replicatedRun) away(stop func(one *replica) (goOn func())) {
	one, other := r.next()
	r.until(other, len(r.all)) // an earlier fault may have left one more, or one fewer
	rejoined := strings.Count(one.Output.String(), rejoins)
	goOn := stop(one)
	r.until(other, len(r.all)-1)
	goOn()
	r.until(other, len(r.all))
	if strings.Count(one.Output.String(), rejoins) == rejoined {
		r.t.Error("a replica that counted as dead has not noticed")
	}
}

// rejoins is logged by a replica that finds itself counted as dead.
const rejoins = "the replica's time in the store was over"

func (r *replicatedRun) troubles() []trouble {
	one := func(do func(one *replica)) func() {
		return func() { one, _ := r.next(); do(one) }
	}
	slowly := func(p *Proxy) { p.Slow(20 * time.Millisecond); r.acked(30); p.Slow(0) }
	return []trouble{
		{"kill a replica", true, one(func(one *replica) { one.Stop(syscall.SIGKILL); r.again(one) })},
		{"terminate a replica", true, one(func(one *replica) {
			if code := one.Stop(syscall.SIGTERM); code != 0 {
				r.t.Errorf("SIGTERM: exit code %d", code)
			}
			r.again(one)
		})},
		{"stop a replica until it counts as dead", true, func() {
			r.away(func(one *replica) func() {
				_ = one.Cmd.Process.Signal(syscall.SIGSTOP)
				return func() { _ = one.Cmd.Process.Signal(syscall.SIGCONT) }
			})
		}},
		{"hold a replica's database until it counts as dead", true,
			func() { r.away(func(one *replica) func() { return one.database.Hold() }) }},
		{"kill the primary and promote the standby", true, r.failOver},
		{"kill the standby, then the primary, and promote the standby", true, r.failOverLate},
		{"kill the standby", true, func() { r.cluster.KillStandby(r.t); r.cluster.RestartStandby(r.t) }},
		{"fill the database's disk", true, r.fullDisk},
		{"cut a replica's database", false, one(func(one *replica) { one.database.Cut() })},
		{"half-close requests to the database", false, one(func(one *replica) { one.database.HalfCloseRequests() })},
		{"slow a replica's database", false, one(func(one *replica) { slowly(one.database) })},
		{"cut clients", true, one(func(one *replica) { one.clients.Cut() })},
		{"half-close replies", true, one(func(one *replica) { one.clients.HalfCloseReplies() })},
		{"cut a replica from the others", true, one(func(one *replica) { one.peers.Cut() })},
		{"half-close what replicas send each other", true, one(func(one *replica) { one.peers.HalfCloseRequests() })},
		{"slow what replicas send each other", false, one(func(one *replica) { slowly(one.peers) })},
		{"hold what replicas send each other", true, one(func(one *replica) {
			release := one.peers.Hold()
			r.load.Settled(r.ctx, 3, 150) // it may have no session that others are asked for
			release()
		})},
		{"a clock jumps ahead", false, one(func(one *replica) { one.turn(r.run, 2) })},
		{"a clock jumps back", false, one(func(one *replica) { one.turn(r.run, -1) })},
	}
}

// Three replicas on PostgreSQL: they are killed, stopped and cut off, from their database and from each other, the
// database fails over, connections are cut, slowed, held and half-closed, and clocks jump. CHAOS_CALLS, CHAOS_FAULTS
// and CHAOS_SEED say how much, and which.
func TestChaosReplicas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	r := startReplicas(newRun(ctx, t, 10*time.Second), 3)
	troubles := r.troubles()
	r.begin(r.daemons(), 8, 12) // fewer than there are kinds, which take minutes together
	r.make(troubles)
	by := map[string]int{}
	for _, c := range r.judge(r.daemons()) {
		if c.Acked {
			by[c.Replica]++
		}
	}
	if len(by) < 3 || by[""] > 0 {
		t.Errorf("calls by replica: %v", by)
	}
	fenced := 0
	for _, one := range r.all {
		fenced += strings.Count(one.Output.String(), `"code":"session_moved"`)
	}
	t.Logf("%d requests were refused since their session had moved", fenced)
}
