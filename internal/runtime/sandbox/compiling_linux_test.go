package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A testCompiler returns the same executable for every program. Its behavior depends on the mode.
type testCompiler struct {
	t        *testing.T
	mode     string // of the executable
	err      error  // of Compile
	made     map[string]launched
	refused  error // of Find
	compiled []Compilation
	at       chan struct{} // if not nil, each Compile receives from it before it continues
}

func (c *testCompiler) Engine() string { return report.EngineGo + " test" }

func (c *testCompiler) Find(checksum string) (*Executable, error) {
	if x, ok := c.made[checksum]; ok {
		return x.open()
	}
	return nil, c.refused
}

func (c *testCompiler) Compile(_ context.Context, what Compilation) (*Executable, error) {
	c.compiled = append(c.compiled, what)
	if c.at != nil {
		<-c.at
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.made == nil {
		c.made = map[string]launched{}
	}
	c.made[what.Checksum] = compiled(c.t, c.mode)
	x, err := c.made[what.Checksum].open()
	x.Facts = what.Facts
	return x, err
}

// compilingPool returns a pool with the compiler.
func compilingPool(t *testing.T, c *testCompiler) *Pool {
	t.Helper()
	return compilingPoolWith(t, c, nil)
}

func compilingPoolWith(t *testing.T, c *testCompiler, change func(*Options)) *Pool {
	t.Helper()
	p := testPool(t, func(o *Options) {
		o.Native, o.Engine = true, report.EngineGo
		if change != nil {
			change(o)
		}
	}, hooks{args: []string{wire.RunnerArg}})
	if off := p.status.NativeOff(); off != "" {
		t.Skip("nothing is launched here: ", off)
	}
	c.t = t
	p.UseCompiler(c)
	return p
}

const compilable = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) { return call.Args, nil }\n"

func compileRequest(source string) Request {
	r := request(source, 1)
	r.Program.Checksum = agent.Checksum(source)
	return r
}

// A program is checked and compiled once, whoever loads it. From then on its process answers. The facts hold what the
// gate found.
func TestProgramsAreCompiled(t *testing.T) {
	t.Parallel()
	c := &testCompiler{}
	p := compilingPool(t, c)
	prog, facts, took, failure := p.Fix(t.Context(), compilable, report.Terms{}, agent.Owner{Name: "local"})
	if failure != nil || facts.Engine != "go test" || !facts.UsesArgs || took.Build <= 0 {
		t.Fatalf("got %+v, %+v, %+v", facts, took, failure)
	}
	for range 2 {
		got := p.Run(t.Context(), compileRequest(prog.Source), &fakeHost{})
		if string(got.Value) != `"compiled"` || got.Tier != TierNative || got.Timing.Build != 0 ||
			got.Facts.Engine != "go test" {
			t.Errorf("got %s on %s, %+v, %+v", said(got), got.Tier, got.Timing, got.Facts)
		}
	}
	if _, failure := p.Load(t.Context(), prog, agent.Owner{Name: "another"}); failure != nil {
		t.Error(failure)
	}
	if len(c.compiled) != 1 || !strings.Contains(c.compiled[0].Text, "RecurgentNativeProgram") ||
		c.compiled[0].Checksum != prog.Checksum {
		t.Errorf("compiled were %+v", c.compiled)
	}
}

// A program that the compiler refused is refused again without another check and compilation.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	c := &testCompiler{refused: &CompileError{"the program is too large to compile"}}
	p := compilingPool(t, c)
	got := p.Run(t.Context(), compileRequest(compilable), &fakeHost{})
	if said(got) != "failure invalid_code/compile" || got.Failure.Ours ||
		got.Failure.Message != "the program is too large to compile" || got.Timing.Gate != 0 || len(c.compiled) != 0 {
		t.Errorf("got %s: %+v in %+v, compiled %d times", said(got), got.Failure, got.Timing, len(c.compiled))
	}
}

// A refusal of the gate or the compiler is the program's failure; a fault of the compiler is the daemon's.
func TestProgramsThatAreNotCompiled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		err    error
		want   string
		ours   bool
	}{
		"gate":     {strings.Replace(compilable, "call.Args", "nothing", 1), nil, "invalid_code/gate", false},
		"compiler": {compilable, &CompileError{"program.go:5: stack frame too large"}, "invalid_code/compile", false},
		"machine":  {compilable, errors.New("no space left on device"), "runner_crash/compiler", true},
	} {
		p := compilingPool(t, &testCompiler{err: c.err})
		got := p.Run(t.Context(), compileRequest(c.source), &fakeHost{})
		if !strings.Contains(said(got), c.want) || got.Failure.Ours != c.ours {
			t.Errorf("%s: got %s", name, said(got))
		}
	}
}

// However a compiled program ends, the end is typed and counts against it, and no other engine runs it again.
func TestEndsOfCompiledPrograms(t *testing.T) {
	t.Parallel()
	c := &testCompiler{}
	p := compilingPool(t, c)
	for mode, want := range map[string]string{
		"crash":   "failure execution/deadlock",
		"stack":   "failure resource_exhausted/stack",
		"fails":   "authored low_utility: as compiled",
		"exits":   "failure runner_crash/exit",
		"speaks":  "failure runner_crash/exit",
		"goexit":  "failure execution/exit",
		"gopanic": "failure execution/goroutine_panic",
		"maprace": "failure execution/map_race",
		"unlock":  "failure execution/fatal",
		"refuses": "failure invalid_code/compile",
	} {
		c.mode = mode
		got := p.Run(t.Context(), compileRequest(compilable+"\n// "+mode+"\n"), &fakeHost{})
		if said(got) != want {
			t.Errorf("%s: got %s, want %s: %+v", mode, said(got), want, got.Failure)
		}
		if mode == "gopanic" && !strings.HasPrefix(got.Failure.Message,
			"a goroutine of the program ended in panic: fatal error: stack overflow") {
			t.Errorf("got %+v", got.Failure)
		}
		if mode != "refuses" && got.Tier != TierNative || p.Stats().EngineFailures != 0 {
			t.Errorf("%s: got tier %q, %d failures of an engine", mode, got.Tier, p.Stats().EngineFailures)
		}
	}
}

// A call ends if its process is killed from outside, and the next call gets another process.
func TestProcessIsKilled(t *testing.T) {
	c := &testCompiler{mode: "loop"}
	p := compilingPool(t, c)
	done := make(chan Result, 1)
	go func() { done <- p.Run(t.Context(), compileRequest(compilable), &fakeHost{}) }()
	for killed := false; !killed; goruntime.Gosched() {
		p.mu.Lock()
		for r := range p.live {
			if spins(r.proc.Pid) {
				killed = r.proc.Kill() == nil
			}
		}
		p.mu.Unlock()
	}
	if got := <-done; said(got) != "failure runner_crash/killed" || got.Failure.Ours {
		t.Errorf("got %s: %+v", said(got), got.Failure)
	}
	c.mode = ""
	if got := p.Run(t.Context(), compileRequest(compilable+"\n// next\n"),
		&fakeHost{}); string(got.Value) != `"compiled"` {
		t.Errorf("the next call: %s", said(got))
	}
}

// While a program is compiled, other builds wait. Builds that callers wait for precede those in the background,
// whichever came first.
func TestBuildsForCallersComeFirst(t *testing.T) {
	c := &testCompiler{at: make(chan struct{})}
	p := compilingPoolWith(t, c, func(o *Options) { o.Runners, o.Waiting = 1, 1 })
	var work sync.WaitGroup
	load := func(ctx context.Context, name string, queued int) {
		work.Go(func() {
			if _, failure := p.Load(ctx, compileRequest(compilable+"\n// "+name+"\n").Program,
				agent.Owner{Name: "local"}); failure != nil {
				t.Errorf("%s: %+v", name, failure)
			}
		})
		for busy, waiting := 0, -1; busy != 1 || waiting != queued; busy, waiting = p.admission.counts() {
			goruntime.Gosched()
		}
	}
	load(t.Context(), "running", 0)
	load(Background(t.Context()), "background", 1)
	load(t.Context(), "caller", 2)
	for range 3 {
		c.at <- struct{}{}
	}
	work.Wait()
	var order []string
	for _, one := range c.compiled {
		for _, name := range []string{"running", "background", "caller"} {
			if one.Checksum == compileRequest(compilable+"\n// "+name+"\n").Program.Checksum {
				order = append(order, name)
			}
		}
	}
	if want := []string{"running", "caller", "background"}; !slices.Equal(order, want) {
		t.Errorf("compiled were %q, want %q", order, want)
	}
}

// spins reports whether the process is a compiled program that has computed for 0.3 s. Its start takes less, so it is
// in the middle of a call that only computes.
func spins(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || string(args) != "recurgent-native\x00loop\x00" {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 12 {
		return false
	}
	ticks, err := strconv.Atoi(fields[11]) // utime, in hundredths of a second
	return err == nil && ticks >= 30
}
