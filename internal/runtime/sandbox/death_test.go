package sandbox

import (
	"os/exec"
	"strings"
	"testing"
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
