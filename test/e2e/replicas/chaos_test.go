package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A trouble is a fault that a test makes. It ends within do.
type trouble struct {
	name string
	// it may cost a flight: a replica that forges ends or loses its lease, or the client hangs up that it forges for
	loses bool
	do    func()
}

// A run is one of a test: daemons with a load, and what is needed to judge it.
type run struct {
	t        *testing.T
	ctx      context.Context
	load     *Load
	model    *rig.Model
	sessions []Session
	readers  map[string]*Reader
	cap      int
	faults   int
	ahead    int            // of clocks, in hours
	lost     map[string]int // by epoch: faults that may each have cost a flight
}

// newRun has a load without addresses. CHAOS_SEED decides the choices of a run, though not their times. Without it they
// are always the same: make test-long STEPS=long_chaos takes new ones.
func newRun(ctx context.Context, t *testing.T, patience time.Duration) *run {
	t.Helper()
	seed := uint64(rig.Number(t, "CHAOS_SEED", 1))
	t.Logf("CHAOS_SEED=%d", seed)
	return &run{t: t, ctx: ctx, model: newModel(t), load: &Load{Patience: patience, Seed: seed, Journal: NewJournal(t)},
		readers: map[string]*Reader{}, ahead: amidMonth(time.Now()), lost: map[string]int{}}
}

// amidMonth is how many hours clocks must be ahead so that no jump of theirs leaves the month: the cap is of one.
func amidMonth(now time.Time) (hours int) {
	const room = 24 * time.Hour
	for now = now.UTC(); now.Add(-room).Month() != now.Add(room).Month(); now = now.Add(room) {
		hours += 24
	}
	return hours
}

// begin makes n sessions of the default namespace and n/2 of the capped one, and begins to read the events of both.
func (r *run) begin(all []*rig.Daemon, n, faults int) {
	r.t.Helper()
	r.faults = rig.Number(r.t, "CHAOS_FAULTS", faults)
	r.cap = max(r.faults*cost, 6*cost) // a quarter of what the methods of all epochs would cost
	all[0].Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/"+capped, nil)
	all[0].In(capped).Policy(map[string]any{"spend": map[string]any{"month_tokens": r.cap}})
	for i := range n + n/2 {
		s := Session{Keyed: i%2 == 0}
		if i >= n {
			s.Namespace = capped
		}
		s.ID = all[i%len(all)].In(s.Namespace).Session(role)
		r.sessions = append(r.sessions, s)
		if r.readers[s.Namespace] == nil {
			r.readers[s.Namespace] = r.load.Follow(s.Namespace, r.load.Begin(r.ctx, s))
		}
	}
}

// acked waits for that many more calls.
func (r *run) acked(n int) {
	r.t.Helper()
	if !r.load.Acked(r.ctx, n) {
		r.t.Fatal("no calls are answered")
	}
}

// make makes the troubles, each once in a random order and then again, spread over the calls.
func (r *run) make(troubles []trouble) {
	r.t.Helper()
	calls := rig.Number(r.t, "CHAOS_CALLS", 500)
	working, stop := context.WithCancel(r.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.load.Run(working, r.sessions)
	}()
	random := rand.New(rand.NewPCG(r.load.Seed, 1<<34))
	var order []int
	for i := range r.faults {
		if len(order) == 0 {
			order = random.Perm(len(troubles))
		}
		what := troubles[order[0]]
		order = order[1:]
		r.acked(max(calls/r.faults-5, 1))
		r.load.NextEpoch() // methods are forged while it happens
		if what.loses {
			r.lost[strconv.Itoa(i+1)]++
			r.lost[strconv.Itoa(i)]++ // a call of the epoch before may still be under way
		}
		r.acked(5)
		began := time.Now()
		r.load.Journal.fault(what.name)
		what.do()
		r.t.Logf("fault %d: %s, %.1f s", i+1, what.name, time.Since(began).Seconds())
	}
	r.acked(calls / r.faults)
	stop()
	<-done
}

// judge compares what clients saw with what daemons hold. It fails also where the faults met no load that could have
// shown anything.
func (r *run) judge(all []*rig.Daemon) []*Call {
	r.t.Helper()
	calls, problems := r.load.Calls()
	state := Read(all, r.model, r.sessions, r.lost, r.readers)
	space := state.Namespaces[capped]
	space.Asked, space.Cap = asked(r.model), r.cap
	state.Namespaces[capped] = space
	for _, p := range append(problems, Check(calls, state)...) {
		r.t.Error(p)
	}
	acked, repeated, over, repaired, methods := 0, 0, 0, 0, state.Namespaces[""].Methods
	for _, c := range calls {
		if c.Acked {
			acked++
		}
		if c.Sent > 1 {
			repeated++
		}
		if c.Error == "budget_exceeded" {
			over++
		}
	}
	for _, m := range methods {
		if len(m.Generations) > 1 {
			repaired++
		}
	}
	failed := map[string]int{}
	for _, c := range calls {
		if c.Acked && !c.OK {
			failed[c.Error]++
		}
	}
	r.t.Logf("%d faults, %d calls, %d acknowledged (failed: %v), %d in several requests, %d methods, %d of them repaired", r.faults, len(calls), acked, failed, repeated, len(methods), repaired)
	r.t.Logf("%d and %d event streams, %d events; a cap of %d tokens, %d reported (%d estimated), %d by the model's count", state.Namespaces[""].Streams, space.Streams,
		len(state.Namespaces[""].Events)+len(space.Events), r.cap, space.Usage.Tokens, space.Usage.Estimated,
		space.Asked)
	if repeated == 0 || repaired == 0 || over == 0 || len(methods) < r.faults || state.Namespaces[""].Streams < 2 {
		r.t.Error("the load was too small for the faults")
	}
	return calls
}

// One daemon on the disk store, behind a proxy: it is killed, shut down and stopped, its connections are cut, slowed,
// held and half-closed, and its clock jumps. CHAOS_CALLS, CHAOS_FAULTS and CHAOS_SEED say how much, and which.
func TestChaosOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: kills real processes at random moments")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r := newRun(ctx, t, 5*time.Second)
	d, clock := rig.StartAhead(t, r.model, "--max-completion-tokens", "1024")
	r.load.Journal.Keep(t, "daemon", d)
	p := NewProxy(t, "tcp", host(t, d))
	r.load.Addresses = []string{p.Address}
	again := func() {
		d.Start()
		p.Target("tcp", host(t, d))
	}
	turn := func(by int) func() {
		return func() { r.ahead += by; clock(fmt.Sprintf("%dh", r.ahead)) }
	}
	turn(0)()
	troubles := []trouble{
		{"kill", true, func() { d.Stop(syscall.SIGKILL); again() }},
		{"cut", true, p.Cut},
		{"stop", true, func() {
			_ = d.Cmd.Process.Signal(syscall.SIGSTOP)
			r.load.Failed(ctx, 2)
			_ = d.Cmd.Process.Signal(syscall.SIGCONT)
		}},
		{"half-close replies", true, p.HalfCloseReplies},
		{"clock ahead", false, turn(3)},
		{"half-close requests", true, p.HalfCloseRequests},
		{"slow", false, func() { p.Slow(20 * time.Millisecond); r.acked(20); p.Slow(0) }},
		{"clock back", false, turn(-1)},
		{"terminate", true, func() { d.Restart(); p.Target("tcp", host(t, d)) }},
		{"hold", true, func() { release := p.Hold(); r.load.Failed(ctx, 2); release(); p.Cut() }},
	}
	r.begin([]*rig.Daemon{d}, 4, len(troubles))
	r.make(troubles)
	r.judge([]*rig.Daemon{d})
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	if stdout, stderr, code := d.Client("store", "verify"); code != 0 {
		t.Errorf("store verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

func host(t *testing.T, d *rig.Daemon) string {
	t.Helper()
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
