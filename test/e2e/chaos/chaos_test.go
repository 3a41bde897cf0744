package chaos

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// number is how much is asked for by a variable, or the sample that is run without it.
func number(t *testing.T, variable string, sample int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return sample
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number", variable, text)
	}
	return n
}

// newModel writes the programs of the load.
func newModel(t *testing.T) *rig.Model {
	m := rig.NewModel(t, rig.Script{role + ".inc": {rig.ProgIncrement}})
	m.Default(func(r openaitest.Request) openaitest.Reply {
		switch {
		case r.Repair:
			return openaitest.Code(rig.ProgFixes)
		case strings.HasPrefix(r.Method, "flaky"):
			return openaitest.Code(rig.ProgMayPanic)
		}
		return openaitest.Code(rig.ProgGiven)
	})
	return m
}

// A trouble is a fault that a test makes. It ends within do.
type trouble struct {
	name string
	do   func()
}

// One daemon on the disk store, behind a proxy: it is killed, shut down and stopped, its connections are cut, slowed, held and
// half-closed, and its clock jumps. CHAOS_CALLS and CHAOS_FAULTS say how much.
func TestChaosOnDisk(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	d, clock := rig.StartAhead(t, m)
	p := NewProxy(t, "tcp", host(t, d))
	load := &Load{Addresses: []string{p.Address}, Patience: 5 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	again := func() {
		d.Start()
		p.Target("tcp", host(t, d))
	}
	acked := func(n int) {
		if !load.Acked(ctx, n) {
			t.Fatal("no calls are answered")
		}
	}
	ahead := 0
	troubles := []trouble{
		{"kill", func() { d.Stop(syscall.SIGKILL); again() }},
		{"cut", p.Cut},
		{"stop", func() {
			_ = d.Cmd.Process.Signal(syscall.SIGSTOP)
			load.Failed(ctx, 2)
			_ = d.Cmd.Process.Signal(syscall.SIGCONT)
		}},
		{"half-close replies", p.HalfCloseReplies},
		{"clock ahead", func() { ahead += 3; clock(fmt.Sprintf("%dh", ahead)) }},
		{"half-close requests", p.HalfCloseRequests},
		{"slow", func() { p.Slow(20 * time.Millisecond); acked(20); p.Slow(0) }},
		{"clock back", func() { ahead--; clock(fmt.Sprintf("%dh", ahead)) }},
		{"terminate", func() { d.Restart(); p.Target("tcp", host(t, d)) }},
		{"hold", func() { release := p.Hold(); load.Failed(ctx, 2); release(); p.Cut() }},
	}
	var sessions []Session
	for i := range 4 {
		sessions = append(sessions, Session{ID: d.Session(role), Keyed: i%2 == 0})
	}
	faults := run(ctx, t, load, sessions, troubles, acked)
	calls, problems := load.Calls()
	state := Read(d, m, sessions, faults)
	for _, p := range append(problems, Check(calls, state)...) {
		t.Error(p)
	}
	report(t, calls, state, faults)
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	if stdout, stderr, code := d.Client("store", "verify"); code != 0 {
		t.Errorf("store verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// report logs how much was done, and fails where the faults met no load that could have shown anything.
func report(t *testing.T, calls []*Call, s State, faults map[string]int) {
	t.Helper()
	acked, repeated, repaired := 0, 0, 0
	for _, c := range calls {
		if c.Acked {
			acked++
		}
		if c.Sent > 1 {
			repeated++
		}
	}
	for _, m := range s.Methods {
		if len(m.Generations) > 1 {
			repaired++
		}
	}
	t.Logf("%d epochs, %d calls, %d acknowledged, %d in several requests, %d methods, %d of them repaired", len(faults), len(calls), acked, repeated, len(s.Methods), repaired)
	if repeated == 0 || repaired == 0 || len(s.Methods) < len(faults) {
		t.Error("the load was too small for the faults")
	}
}

// run makes the troubles, one after the other and again from the first, spread over the calls. It returns by epoch how many
// may have cost a flight.
func run(ctx context.Context, t *testing.T, load *Load, sessions []Session, troubles []trouble, acked func(int)) map[string]int {
	t.Helper()
	calls, n := number(t, "CHAOS_CALLS", 500), number(t, "CHAOS_FAULTS", len(troubles))
	working, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		load.Run(working, 7, sessions)
	}()
	faults := map[string]int{}
	for i := range n {
		acked(max(calls/n-5, 1))
		load.NextEpoch() // methods are forged while it happens
		faults[strconv.Itoa(i+1)]++
		faults[strconv.Itoa(i)]++ // a call of the epoch before may still be under way
		acked(5)
		what := troubles[i%len(troubles)]
		t.Logf("fault %d: %s", i+1, what.name)
		what.do()
	}
	acked(calls / n)
	stop()
	<-done
	return faults
}

func host(t *testing.T, d *rig.Daemon) string {
	t.Helper()
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
