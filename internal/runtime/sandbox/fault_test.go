package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func scriptPool(t testing.TB, script string, change func(*Options)) *Pool {
	return testPool(t, change, hooks{args: []string{wire.RunnerArg, "script=" + script}})
}

// TestMisbehavingRunner checks that whatever a runner sends, the call ends in a typed failure and never in a wrong
// value.
func TestMisbehavingRunner(t *testing.T) {
	short := func(o *Options) { o.Blank = 0 }
	for _, c := range []struct{ script, want string }{
		{"load.mute", "failure timeout/deadline"},
		{"load.exit", "failure runner_crash/exit"},
		{"load.panic", "failure execution/goroutine_panic"},
		{"load.garbage", "failure runner_crash/protocol"},
		{"load.half", "failure runner_crash/exit"},
		{"load.hugeframe", "failure runner_crash/protocol"},
		{"load.factsflood", "failure runner_crash/protocol"},
		{"load.factsbroken", "failure runner_crash/protocol"},
		{"run.mute", "failure timeout/deadline"},
		{"run.deaf", "failure execution/deadlock or failure timeout/deadline"},
		{"run.exit", "failure runner_crash/exit"},
		{"run.garbage", "failure runner_crash/protocol"},
		{"run.half", "failure runner_crash/exit"},
		{"run.halfmute", "failure timeout/deadline"},
		{"run.hugeframe", "failure runner_crash/protocol"},
		{"run.zeroframe", "failure runner_crash/protocol"},
		{"run.flood", "failure runner_crash/protocol"},
		{"run.unknown", `value "tolerated"`},
		{"run.wrongnonce", "failure runner_crash/protocol"},
		{"run.twice", "failure runner_crash/protocol"},
		{"run.notjson", "failure runner_crash/protocol"},
		{"run.notutf8", "failure runner_crash/protocol"},
		{"run.toodeep", "failure runner_crash/protocol"},
		{"run.bignumber", "failure runner_crash/protocol"},
		{"run.empty", "failure runner_crash/protocol"},
		{"run.askwrongid", "failure runner_crash/protocol"},
		{"run.askwrongnonce", "failure runner_crash/protocol"},
		{"run.asknotjson", "failure runner_crash/protocol"},
		{"run.askunknown", `value "denied: the host knows no format_disk"`},
		{"run.asktwice", "failure runner_crash/protocol or failure timeout/deadline"},
		{"run.ready", "failure runner_crash/protocol"},
		{"run.badchange", "failure runner_crash/protocol"},
		{"run.closepipe", "failure runner_crash/killed"},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			p := scriptPool(t, c.script, short)
			req := request("x")
			if strings.Contains(c.want, "timeout") {
				req.Timeout = 300 * time.Millisecond
			}
			got := p.Run(t.Context(), req, &fakeHost{})
			if !slices.Contains(strings.Split(c.want, " or "), said(got)) {
				t.Errorf("got %s, want %s: %+v", said(got), c.want, got.Failure)
			}
			if got.Failure != nil && len(p.warmKeys()) > 0 {
				t.Error("the runner was kept")
			}
		})
	}
}

// A second answer after the first was taken does not affect the next call: the runner is detected before it gets one.
func TestLateSecondAnswer(t *testing.T) {
	p := scriptPool(t, "run.late", nil)
	if got := said(p.Run(t.Context(), request("x"), &fakeHost{})); got != "value 1" {
		t.Fatal(got)
	}
	r := p.warmKeys()[0]
	if err := r.proc.Signal(syscall.SIGUSR1); err != nil { // now the runner may send its second answer
		t.Fatal(err)
	}
	// remove the deadline of the first answer, which is milliseconds away
	if err := r.out.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if !awaitReadable(r.out) {
		t.Fatal("the second answer does not come")
	}
	if got := said(p.Run(t.Context(), request("x", "well"), &fakeHost{})); got != `value "well"` {
		t.Error(got)
	}
	<-r.gone
}

func (p *Pool) warmKeys() []*runner {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(p.warm.all())
}

// TestSpawnFaults checks that a runner that cannot be started, or does not become ready, counts as the daemon's fault.
func TestSpawnFaults(t *testing.T) {
	for _, script := range []string{"start.mute", "start.exit", "start.garbage", "start.hugeframe", "start.half",
		"start.unconfined"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			p := scriptPool(t, script, func(o *Options) { o.Blank = 0 })
			// for runners that never become ready; the canary had the full time
			p.readyTimeout = 300 * time.Millisecond
			got := p.Run(t.Context(), request("x"), &fakeHost{})
			if said(got) != "failure runner_crash/spawn" || !got.Failure.Ours {
				t.Errorf("%s %+v", said(got), got.Failure)
			}
		})
	}
	for errno, want := range map[syscall.Errno]string{syscall.EAGAIN: "resource_exhausted",
		syscall.EMFILE: "resource_exhausted", syscall.ENOENT: "runner_crash"} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			p := testPool(t, func(o *Options) { o.Blank = 0 }, hooks{args: []string{wire.RunnerArg, "native"},
				start: func() error {
					if broken.Load() {
						return &os.PathError{Op: "fork/exec", Err: errno}
					}
					return nil
				}})
			broken.Store(true)
			got := p.Run(t.Context(), request("echo"), &fakeHost{})
			if said(got) != "failure "+want+"/spawn" || !got.Failure.Ours {
				t.Errorf("%s %+v", said(got), got.Failure)
			}
			broken.Store(false)
			if got := said(p.Run(t.Context(), request("echo"), &fakeHost{})); got != "value []" {
				t.Errorf("once processes can be started again: %s", got)
			}
		})
	}
}

// A canary that could not be started for a transient reason is retried in the same way, not with fewer layers.
func TestCanaryRetries(t *testing.T) {
	want := nativePool(t, nil).Status().Level
	failures := 2
	p := testPool(t, func(o *Options) { o.Blank = 0 }, hooks{args: []string{wire.RunnerArg, "native"},
		start: func() error {
			if failures--; failures >= 0 {
				return syscall.EAGAIN
			}
			return nil
		}})
	if got := p.Status().Level; got != want {
		t.Errorf("level %s, want %s", got, want)
	}
	dir := t.TempDir()
	for _, open := range []string{filepath.Dir(dir), dir} { // the runner has another user
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p = testPool(t, func(o *Options) { o.Blank = 0 },
		hooks{args: []string{wire.RunnerArg, "native", "dieonce=" + dir + "/died"}})
	if _, err := os.Stat(dir + "/died"); err != nil || p.Status().Level != want {
		t.Errorf("level %s after one that died, want %s: %v", p.Status().Level, want, err)
	}
}

// One failed start is made up for by the next attempt, without an effect on the call.
func TestSpawnRetries(t *testing.T) {
	var failures atomic.Int32
	p := testPool(t, func(o *Options) { o.Blank = 0 }, hooks{args: []string{wire.RunnerArg, "native"},
		start: func() error {
			if failures.Add(-1) >= 0 {
				return syscall.EAGAIN
			}
			return nil
		}})
	failures.Store(2)
	if got := said(p.Run(t.Context(), request("echo"), &fakeHost{})); got != "value []" {
		t.Error(got)
	}
}

// TestKilledFromOutside kills or stops a runner at every stage.
func TestKilledFromOutside(t *testing.T) {
	p := nativePool(t, nil)
	signalRunner := func(sig syscall.Signal) *fakeHost {
		return &fakeHost{onHistory: func(context.Context) { // the program has asked, so it is running
			p.mu.Lock()
			defer p.mu.Unlock()
			for r := range p.live {
				if r.program != "" {
					r.proc.Signal(sig)
					// Otherwise the program may get its answer, and send its own, before the signal arrives.
					awaitSignal(t, r.proc.Pid)
				}
			}
		}}
	}
	req := request("history")
	if got := said(p.Run(t.Context(), req, signalRunner(syscall.SIGKILL))); got != "failure runner_crash/killed" {
		t.Error("SIGKILL:", got)
	}
	stopped := req
	stopped.Timeout = 200 * time.Millisecond
	if got := said(p.Run(t.Context(), stopped, signalRunner(syscall.SIGSTOP))); got != "failure timeout/deadline" {
		t.Error("SIGSTOP:", got)
	}
	if got := said(p.Run(t.Context(), req, &fakeHost{})); got != "value 1" {
		t.Error("control:", got)
	}
	// Idle runners that die are replaced before they are needed.
	for _, r := range p.warmKeys() {
		r.proc.Signal(syscall.SIGKILL)
		<-r.gone
	}
	if got := said(p.Run(t.Context(), req, &fakeHost{})); got != "value 1" {
		t.Error("after the idle ones died:", got)
	}
}

func TestDeadlines(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on small deadlines of real programs")
	}
	t.Parallel()
	p := nativePool(t, nil)
	for _, source := range []string{"loop", "sleep", "compileloop"} {
		req := request(source)
		req.Timeout = 200 * time.Millisecond
		if got := said(p.Run(t.Context(), req, &fakeHost{})); got != "failure timeout/deadline" {
			t.Error(source, got)
		}
	}
	// The run clock stands still while the program waits for the host.
	req := request("nested")
	req.Timeout = 3 * time.Second
	slow := &fakeHost{onCall: func(ctx context.Context, role, method string, args []json_, kwargs json_) agent.Outcome {
		time.Sleep(req.Timeout + 100*time.Millisecond) // a slow nested call
		return agent.Outcome{Status: agent.StatusOK, Value: json_(`3`)}
	}}
	if got := p.Run(t.Context(), req, slow); got.Failure != nil {
		t.Error(said(got))
	}
}

func TestCancellation(t *testing.T) {
	p := nativePool(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	h := &fakeHost{onCall: func(ctx context.Context, role, method string, args []json_, kwargs json_) agent.Outcome {
		cancel(gone)
		<-ctx.Done()
		return agent.Failed(agent.ErrCanceled, "gone")
	}}
	got := p.Run(ctx, request("nested"), h)
	if said(got) != "failure canceled/canceled" || !got.Failure.Ours || !got.Failure.Waiting ||
		!strings.Contains(got.Failure.Message, gone.Error()) {
		t.Errorf("%s %+v", said(got), got.Failure)
	}
	ctx2, cancel2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel2()
	if got := p.Run(ctx2, request("loop"), h); said(got) != "failure timeout/deadline" || !got.Failure.Ours {
		t.Errorf("%s %+v", said(got), got.Failure)
	}
	if got := p.Run(ctx2, request("echo"), h); said(got) != "failure timeout/deadline" {
		t.Errorf("%s", said(got))
	}
}

// A call that ends before its program was admitted was waiting, whatever it asks for.
func TestEndedBeforeAdmission(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.Runners, o.Waiting = 1, 1 })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	req := request("echo")
	req.Depth = 1
	for p.admission.enter(ended, &req) == nil { // until it is full
		defer p.admission.leave(&req)
	}
	_, load := p.Load(ended, req.Program, req.Owner)
	_, _, _, fix := p.Fix(ended, req.Program.Source, report.Terms{}, req.Owner)
	for name, f := range map[string]*Failure{"run": p.Run(ended, req, &fakeHost{}).Failure, "load": load, "fix": fix} {
		if f == nil || f.Type != agent.ErrCanceled || !f.Ours || !f.Waiting {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// Programs that all wait for nested calls do not deadlock.
func TestNestedCallsDoNotDeadlock(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.Runners = 1; o.Waiting = 4 })
	var nest func(depth int) *fakeHost
	nest = func(depth int) *fakeHost {
		return &fakeHost{onCall: func(ctx context.Context, role, method string, args []json_,
			kwargs json_) agent.Outcome {
			if depth == 4 {
				return agent.Outcome{Status: agent.StatusOK, Value: json_(`"bottom"`)}
			}
			req := request("nested")
			req.Depth = depth + 1
			r := p.Run(ctx, req, nest(depth+1))
			if r.Failure != nil {
				return agent.Failed(r.Failure.Type, r.Failure.Message)
			}
			return agent.Outcome{Status: agent.StatusOK, Value: r.Value}
		}}
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if got := p.Run(t.Context(), request("nested"),
				nest(0)); got.Failure != nil || !strings.Contains(string(got.Value), "bottom") {
				t.Error(said(got))
			}
		})
	}
	wg.Wait()
}

// Repeated opening and closing leaves no goroutine, descriptor or process.
func TestCloseLeavesNothing(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0
		}
		return len(entries)
	}
	var goroutines, files int
	for i := range 6 {
		p := nativePool(t, nil)
		for _, source := range []string{"echo", "panic", "exit"} {
			p.Run(t.Context(), request(source), &fakeHost{})
		}
		p.Close()
		p.Close()
		if len(p.live) != 0 {
			t.Errorf("%d processes are left", len(p.live))
		}
		if i == 1 { // the first round allocates what the runtime keeps
			goroutines, files = goruntime.NumGoroutine(), descriptors()
		}
	}
	g, f := goruntime.NumGoroutine(), descriptors()
	for end := time.Now().Add(time.Minute); (g > goroutines || f > files) &&
		time.Now().Before(end); g, f = goruntime.NumGoroutine(), descriptors() {
		goruntime.Gosched() // a goroutine that has reported its end may still be ending
	}
	if g > goroutines || f > files {
		t.Errorf("goroutines %d, then %d; descriptors %d, then %d", goroutines, g, files, f)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	p := nativePool(t, nil)
	started := make(chan struct{})
	done := make(chan Result, 1)
	go func() {
		done <- p.Run(context.Background(), request("nested"),
			&fakeHost{onCall: func(ctx context.Context, role, method string, args []json_, kwargs json_) agent.Outcome {
				close(started)
				return agent.Outcome{Status: agent.StatusOK, Value: json_("1")}
			}})
	}()
	<-started
	loop := make(chan Result, 1)
	go func() { loop <- p.Run(context.Background(), request("loop"), &fakeHost{}) }()
	for p.Stats().Busy < 1 {
		goruntime.Gosched()
	}
	p.Close()
	<-done
	if got := <-loop; said(got) != "failure canceled/canceled" || !got.Failure.Ours {
		t.Errorf("%s %+v", said(got), got.Failure)
	}
	if got := p.Run(context.Background(), request("echo"), &fakeHost{}); said(got) != "failure canceled/canceled" {
		t.Error("after Close:", said(got))
	}
	if s := p.Stats(); s.Idle+s.Warm+s.Busy != 0 {
		t.Errorf("%+v", s)
	}
}
