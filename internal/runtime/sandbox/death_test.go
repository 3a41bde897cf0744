package sandbox

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

const stack = "\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\truntime/panic.go:860 +0x1\ntool.f(...)\n\ttool/program.go:12 +0x1d\ntool.Run(0x1)\n\ttool/program.go:30 +0x2\n"

// The last words of the Go runtime determine the cause of death. Much memory in use only explains words that are
// unclear by themselves. The peak reported by the kernel is at least the daemon's own at the start of the runner, so it
// may be large for any runner. A program's own text in a panic does not count: the runtime never puts it at the
// beginning of a line.
func TestDeathWithMuchMemoryInUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stderr, scarce, plenty string }{
		{"runtime: failed to create new OS thread (have 9 already; errno=11)\nfatal error: newosproc\n", "threads",
			"threads"},
		{"fatal error: all goroutines are asleep - deadlock!\n", "deadlock", "deadlock"},
		{"fatal error: no goroutines (main called runtime.Goexit) - deadlock!\n", "exit", "exit"},
		{"fatal error: concurrent map writes\n", "map_race", "map_race"},
		{"fatal error: sync: unlock of unlocked mutex\n", "fatal", "fatal"},
		{"runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n", "stack", "stack"},
		{"fatal error: runtime: cannot allocate memory\n", "memory", "memory"},
		{"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation]\n",
			"memory", "signal"},
		{"fatal error: bad sweepgen in refill\n", "memory", "fatal"},
		{"panic: fatal error: stack overflow\n\tfatal error: out of memory\n\tgoroutine 1 [running]:\n" + stack,
			"goroutine_panic", "goroutine_panic"},
		{"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1]\n" + stack, "goroutine_panic", "goroutine_panic"},
		{"fatal error: panic while printing panic value: out of memory\n\truntime: goroutine stack exceeds\n\tall goroutines are asleep\n" + stack, "goroutine_panic", "goroutine_panic"},
		{"panic: out of memory\nfatal error: concurrent map writes\n" + stack, "map_race", "map_race"},
		{"fatal error: stack overflow\n\ngoroutine 1 [running]:\ntool.Run()\nfatal error: out of memory\n", "stack",
			"stack"},
		{"\tfatal error: out of memory\n", "exit", "exit"},
	} {
		for _, exhausted := range []bool{true, false} {
			want := c.plenty
			if exhausted {
				want = c.scarce
			}
			if got := classifyDeath(nil, nil, []byte(c.stderr), exhausted, 20); got.Detail != want || got.Ours {
				t.Errorf("%q, exhausted %t: got %+v, want %s", c.stderr, exhausted, got, want)
			}
		}
	}
}

// A goroutine's panic is quoted with its first line and the place in the program's text where it began, whatever its
// text.
func TestPanicIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"no", "fatal error: stack overflow", strings.Repeat("long ", 3000),
		"one\n\tgoroutine 1 [running]:\n\ttool.g()\n\t\ttool/program.go:99 +0x1", "goroutine 1 [running]:"} {
		var d stderrDiary
		d.add([]byte("panic: " + text + "\n" + stack))
		got := classifyDeath(nil, nil, d.text(), false, 20)
		first, _, _ := strings.Cut(text, "\n")
		if want := "a goroutine of the program ended in panic: " +
			first[:min(len(first), 100)]; got.Detail != "goroutine_panic" || !strings.HasPrefix(got.Message, want) ||
			!strings.HasSuffix(got.Message, " (program.go:12)") {
			t.Errorf("%.100q: got %+v", text, got)
		}
	}
}

// However long a panic is, the part after the missing middle is not taken for a line of the runtime.
func TestCutPanicIsOneText(t *testing.T) {
	t.Parallel()
	const planted = "fatal error: out of memory\n"
	for size := range 2 * len(planted) {
		var d stderrDiary
		d.add([]byte("panic: " + strings.Repeat("x", diaryHead-len("panic: \n")) + "\n\t" + strings.Repeat("y",
			100+size) + strings.Repeat("\n\t"+planted[:len(planted)-1], diaryTail/(len(planted)+1)) + "\n"))
		if got := classifyDeath(nil, nil, d.text(), false, 20); got.Detail != "goroutine_panic" {
			t.Fatalf("%d: got %+v", size, got)
		}
	}
}

// The Go runtime's words do not count if the process did not end as the Go runtime ends it.
func TestWordsBeforeAnotherEnd(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"0": "exit", "1": "exit", "2": "memory", "3": "exit"} {
		cmd := exec.Command("sh", "-c", "exit "+code)
		_ = cmd.Run() // its state shows how it ended
		if got := classifyDeath(cmd.ProcessState, nil, []byte("fatal error: out of memory\n"), false,
			20); got.Detail != want || got.Ours {
			t.Errorf("exit code %s: got %+v, want %s", code, got, want)
		}
	}
}

// An engine fault is the daemon's failure, whatever the program does about it. The runner ends, and the fault is
// counted.
func TestEngineFailure(t *testing.T) {
	p := nativePool(t, nil)
	for i, c := range []struct{ source, want string }{
		{"plant", "planted"},
		{"plantcontext", "planted"},
		{"fault", "planted"},
		{"compilepanic", "compiler bug"},
	} {
		got := p.Run(t.Context(), request(c.source), &fakeHost{})
		f := got.Failure
		if said(got) != "failure runner_crash/engine" || !f.Ours ||
			!strings.HasPrefix(f.Message, "the engine failed: ") || !strings.Contains(f.Message, c.want) {
			t.Errorf("%s: got %s: %+v", c.source, said(got), f)
		}
		if n := p.Stats().EngineFailures; n != int64(i+1) {
			t.Errorf("%d failures are counted after %d", n, i+1)
		}
		if n := p.Stats().Warm; n != 0 {
			t.Errorf("%s: a runner is kept warm", c.source)
		}
	}
	if _, f := p.Load(t.Context(), request("fault").Program,
		agent.Owner{Name: "local"}); f == nil || f.Detail != detailEngine || !f.Ours {
		t.Errorf("Load: %+v", f)
	}
}

// A program that exceeds a limit of the compiler is itself at fault, and the model gets the message.
func TestLimitIsNoEngineFailure(t *testing.T) {
	p := compilePool(t, nil)
	// Larger than the address space, and than what an executable may have.
	for _, size := range []string{"1 << 50", "1 << 40"} {
		_, f := p.Load(t.Context(),
			request(toolSource("var big ["+size+"]byte", "big[1] = 2\n\treturn big[3], nil")).Program,
			agent.Owner{Name: "local"})
		if f == nil || f.Type != agent.ErrInvalidCode || f.Ours || !strings.Contains(f.Message, "larger than") &&
			!strings.Contains(f.Message, "too large") {
			t.Errorf("%s: got %+v", size, f)
		}
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures are counted", n)
	}
}

// Runners and the daemon use the same names for failures.
func TestFailureNames(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{wire.ErrExecution: agent.ErrExecution,
		wire.ErrNonSerializable:   agent.ErrNonSerializable,
		wire.ErrResourceExhausted: agent.ErrResourceExhausted, wire.ErrDenied: agent.ErrDenied} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
