package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// limitPrograms returns programs that exhaust a runner's limits by means beyond the language.
func limitPrograms() map[string]func(*recurgent.Call) (any, error) {
	return map[string]func(*recurgent.Call) (any, error){
		// hold keeps N MiB that the Go runtime does not know of.
		"hold": func(c *recurgent.Call) (any, error) {
			b, err := unix.Mmap(-1, 0, int(c.Args[0].(float64))<<20, unix.PROT_READ|unix.PROT_WRITE,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			return "held", err
		},
		"fill": fill,
		// deepen touches N MiB below the beginning of the main thread's stack.
		"deepen": func(c *recurgent.Call) (any, error) {
			debug.SetPanicOnFault(true)
			top := unsafe.Pointer(unsafe.StringData(os.Args[0])) // the kernel puts the arguments there
			for at := 4096; at < int(c.Args[0].(float64)*(1<<20)); at += 4096 {
				*(*byte)(unsafe.Add(top, -at)) = 1
			}
			return "touched", nil
		},
		// threads creates N threads at once through the Go runtime.
		"threads": func(c *recurgent.Call) (any, error) {
			threads.Reserve(int(c.Args[0].(float64)))
			return "made", nil
		},
	}
}

// A runner that holds much memory between calls is not kept, however the memory was allocated (P4).
func TestBloatedRunnerIsNotKept(t *testing.T) {
	if wire.RaceBuild {
		return // no data limit
	}
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
	for _, c := range []struct {
		mib  int
		kept bool
	}{{8, true}, {int(p.opts.IdleMemory()>>20) + 1, false}} {
		if got := said(p.Run(t.Context(), request("hold", c.mib), &fakeHost{})); got != `value "held"` {
			t.Fatalf("%d MiB: %s", c.mib, got)
		}
		if kept := len(p.warmKeys()) > 0; kept != c.kept {
			t.Errorf("%d MiB: kept %t, want %t", c.mib, kept, c.kept)
		}
	}
	p.Close()
	if got := p.Stats().Killed["memory"]; got != 1 {
		t.Errorf("%d runners were ended for their memory, want 1", got)
	}
}

// Garbage does not exhaust a program's memory, even if many programs share few processors.
func TestGarbageIsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	source := program("var kept [][]byte\n\tfor range 60 {\n\t\tkept = append(kept, make([]byte, 1<<20))\n\t}\n\tn := 0\n\tfor range 60_000 {\n\t\tb := make([]byte, 8<<10)\n\t\tn += len(b)\n\t}\n\treturn n + len(kept), nil")
	const programs = 8
	p := compilePool(t, func(o *Options) { o.Blank, o.Runners, o.Waiting = 0, programs, programs })
	var all sync.WaitGroup
	for i := range programs {
		all.Go(func() {
			req := request(source)
			req.Owner, req.Timeout = agent.Owner{Name: fmt.Sprint("owner", i)}, time.Minute
			if got := said(p.Run(t.Context(), req, &fakeHost{})); got != "value 491520060" {
				t.Error(got)
			}
		})
	}
	all.Wait()
}

// The main thread's stack grows by itself and does not count as data. It has its own limit, independent of the
// daemon's.
func TestStackIsBounded(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &was); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: was.Max, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
	if got := said(p.Run(t.Context(), request("deepen", 0.5), &fakeHost{})); got != `value "touched"` {
		t.Errorf("half a MiB: %s", got)
	}
	if got := said(p.Run(t.Context(), request("deepen", 512), &fakeHost{})); !strings.HasPrefix(got, "failure ") {
		t.Errorf("512 MiB, twice what a runner may have: %s", got)
	}
}

// Growth of an idle runner is detected, too.
func TestBloatedIdleRunnerIsEnded(t *testing.T) {
	if wire.RaceBuild {
		return
	}
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
	if got := said(p.Run(t.Context(), request("hold", 40), &fakeHost{})); got != `value "held"` {
		t.Fatal(got)
	}
	r := p.warmKeys()[0]
	p.opts.Memory = 16 << 20 // as if it had grown beyond the bound
	p.tidyOnce(r.idleSince)
	<-r.gone
	if got := p.Stats().Killed["memory"]; got != 1 {
		t.Errorf("killed: %v", p.Stats().Killed)
	}
}

// Memory that counts against no limit cannot be allocated, and hard limits bound all other memory.
func TestUncountedMemory(t *testing.T) {
	p := nativePool(t, nil)
	for _, probe := range []string{"mem: shared mapping", "mem: validated shared mapping", "mem: mapping that grows",
		"mem: mapping of huge pages", "mem: locked mapping",
		"mem: mapping of a file", "mem: move a mapping", "mem: lock", "mem: lock all", "mem: attach shared",
		"proc: thread", "proc: thread by the newer call"} {
		if got := p.Status().Probes[probe]; !strings.HasPrefix(got, "denied") {
			t.Errorf("%s: %q", probe, got)
		}
	}
	for _, probe := range []string{"mem: beyond the limit", "mem: beyond the address space"} {
		if got := p.Status().Probes[probe]; !wire.RaceBuild && !strings.HasPrefix(got, "denied") {
			t.Errorf("%s: %q", probe, got)
		}
	}
}

// When memory runs out, the kernel kills a runner before the daemon.
func TestRunnersAreOfferedToOOM(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
	p.Run(t.Context(), request("echo"), &fakeHost{})
	score := func(of string) (n int) {
		text, err := os.ReadFile("/proc/" + of + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(string(text), &n)
		return n
	}
	want := min(score("self")+oomBonus, 1000)
	if got := score(fmt.Sprint(p.warmKeys()[0].proc.Pid)); got != want {
		t.Errorf("oom_score_adj %d, want %d", got, want)
	}
	if got, want := p.Status().Layers["oom_score_adj"], fmt.Sprintf("on (%d)", want); got != want {
		t.Errorf("the status says %q, want %q", got, want)
	}
}

// A runner has all its threads before it reads a program.
func TestThreadsAreBounded(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
	if got := said(p.Run(t.Context(), request("threads", threads.Runner-2), &fakeHost{})); got != `value "made"` {
		t.Errorf("as many as were made before: %s", got)
	}
	if got := said(p.Run(t.Context(), request("threads", 100),
		&fakeHost{})); got != "failure resource_exhausted/threads" {
		t.Errorf("a hundred: %s", got)
	}
	if got := said(p.Run(t.Context(), request("echo", 1), &fakeHost{})); got != "value [1]" {
		t.Error(got)
	}
}

// countTasks returns the number of threads of a process.
func countTasks(t testing.TB, pid int) int {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(threads)
}

// A warm runner has no more than RunnerTasks threads.
func TestRunnerTasks(t *testing.T) {
	p := compilePool(t, func(o *Options) { o.Blank = 0 })
	for range 50 {
		p.Run(t.Context(), request(program(
			"s := []any{}; for i := range 20000 { s = append(s, i) }; call.Tools(); return len(s), nil")), &fakeHost{})
	}
	got := countTasks(t, p.warmKeys()[0].proc.Pid)
	t.Logf("%d threads", got)
	if got > RunnerTasks || got < 8 {
		t.Errorf("a runner has %d threads, want %d to %d", got, 8, RunnerTasks)
	}
}

// If the system allows few processes, clients' calls wait for theirs, warm runners make way, and a nested call that
// finds none is refused with a transient failure.
func TestFewProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	const most = 4
	room := func() (int, string) { return daemonTasks() + most*RunnerTasks + RunnerTasks - 1, "a test" }
	p := testPool(t, func(o *Options) { o.Blank, o.Runners, o.Waiting = 1, 8, 64 },
		hooks{args: []string{wire.RunnerArg, "native"}, room: room})
	var peak atomic.Int64
	var work sync.WaitGroup
	for i := range 24 {
		work.Go(func() {
			req := request("tools")
			req.Program.Checksum, req.Owner = fmt.Sprint("sha256:", i), agent.Owner{Name: fmt.Sprint("owner", i%5)}
			got := p.Run(t.Context(), req, &fakeHost{})
			if got.Failure != nil {
				t.Errorf("call %d: %s: %s", i, said(got), got.Failure.Message)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			peak.Store(max(peak.Load(), int64(len(p.live)+p.starting)))
		})
	}
	work.Wait()
	if peak.Load() > most {
		t.Errorf("%d processes at once, want %d at most", peak.Load(), most)
	}
	if p.Stats().Killed["evicted"] == 0 {
		t.Error("no warm runner made way")
	}

	depth := 0
	var nest func(ctx context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage) agent.Outcome
	nest = func(ctx context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage) agent.Outcome {
		depth++
		req := request("nested")
		req.Depth, req.Program.Checksum = depth, fmt.Sprint("sha256:depth", depth)
		got := p.Run(ctx, req, &fakeHost{onCall: nest})
		if got.Failure != nil {
			if said(got) != "failure resource_exhausted/spawn" || !got.Failure.Ours {
				t.Errorf("depth %d: %s %s", depth, said(got), got.Failure.Message)
			}
			return agent.Failed(got.Failure.Type, got.Failure.Message)
		}
		return agent.Outcome{Status: agent.StatusOK, Value: got.Value}
	}
	if got := p.Run(t.Context(), request("nested"), &fakeHost{onCall: nest}); got.Failure != nil || depth != most {
		t.Errorf("%s after %d nested calls, want a value after %d, of which the last is refused", said(got), depth,
			most)
	}
	if got := said(p.Run(t.Context(), request("echo"), &fakeHost{})); got != "value []" {
		t.Errorf("afterwards: %s", got)
	}
}

// A daemon without room for two runners reports what limits it.
func TestTooFewProcesses(t *testing.T) {
	o := DefaultOptions()
	room := func() (int, string) { return 40, "pids.max is 100, of which 60 are taken" }
	p, err := newPool(o, hooks{args: []string{wire.RunnerArg, "native"}, room: room})
	if err == nil {
		p.Close()
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "room for 40 threads") || !strings.Contains(err.Error(), "pids.max is 100") {
		t.Error(err)
	}
}

// The status names a limit only if it leaves less than the pool can use. Otherwise it is the same at every start.
func TestRoomInStatus(t *testing.T) {
	for _, c := range []struct {
		left int
		want string
	}{
		{daemonTasks() + 10*RunnerTasks, "on (room for all runners)"},
		{daemonTasks() + 10*RunnerTasks + 5, "on (room for all runners)"},
		{daemonTasks() + 10*RunnerTasks - 1, "on (at most 9 runners: pids.max is 100)"},
	} {
		_, got, err := mostRunners(10, func() (int, string) { return c.left, "pids.max is 100" })
		if err != nil || got != c.want {
			t.Errorf("%d left: %q, %v; want %q", c.left, got, err, c.want)
		}
	}
	if _, got, err := mostRunners(10, func() (int, string) {
		return 0,
			""
	}); err != nil || got != "on (room for all runners)" {
		t.Errorf("no limit: %q, %v", got, err)
	}
	files, _ := fileLimit()
	want := fmt.Sprintf("on (at most %d runners: the limit of open files (RLIMIT_NOFILE) is %d)", files/2/runnerFiles,
		files)
	if _, got, err := mostRunners(files, func() (int, string) { return 0, "" }); err != nil || got != want {
		t.Errorf("no limit of tasks: %q, %v; want %q", got, err, want)
	}
}

func TestTaskGroups(t *testing.T) {
	for _, c := range []struct {
		name, groups string
		want         []string
	}{
		{"version 2", "0::/system.slice/recurgentd.service\n",
			[]string{"/sys/fs/cgroup/system.slice/recurgentd.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup",
				"/sys/fs/cgroup/unified/system.slice/recurgentd.service", "/sys/fs/cgroup/unified/system.slice",
				"/sys/fs/cgroup/unified"}},
		{"version 1", "4:memory:/x\n3:pids:/docker/0123\n", []string{"/sys/fs/cgroup/pids/docker/0123",
			"/sys/fs/cgroup/pids/docker", "/sys/fs/cgroup/pids"}},
		{"own namespace", "0::/\n", []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}},
		{"outside of it", "7:pids:/../../x\n", []string{"/sys/fs/cgroup/pids/x", "/sys/fs/cgroup/pids"}},
		{"none", "garbage\n", nil},
	} {
		if got := taskGroups(c.groups); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// tasksOf counts threads, not processes.
func TestTasksOf(t *testing.T) {
	hold := make(chan struct{})
	var held, done sync.WaitGroup
	for range 20 {
		held.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			held.Done()
			<-hold
		})
	}
	held.Wait()
	if got := tasksOf(uint32(os.Geteuid())); got < 20 {
		t.Errorf("%d tasks of this user", got)
	}
	close(hold)
	done.Wait()
	if got := tasksOf(1<<31 - 7); got != 0 {
		t.Errorf("%d tasks of a user that has none", got)
	}
}

// proportional returns the proportional set size of a process in KiB.
func proportional(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}

// TestRunnerMemory measures an idle and a warm runner (P4). The tests' binary is larger than the real one. The bound
// only catches runaway growth; the log has the figures.
func TestRunnerMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	if wire.RaceBuild {
		return
	}
	p := compilePool(t, func(o *Options) { o.Blank = 2 })
	req := request(program("return len(call.Args), nil"), 1, 2)
	for range 2000 {
		if r := p.Run(t.Context(), req, &fakeHost{}); r.Failure != nil {
			t.Fatal(r.Failure)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.live {
		kib := proportional(r.proc.Pid)
		t.Logf("program %t, %d calls: %d KiB", r.program != "", r.calls, kib)
		if kib > 24<<10 {
			t.Errorf("a runner takes %d KiB", kib)
		}
	}
}
