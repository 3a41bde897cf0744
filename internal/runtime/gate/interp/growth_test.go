package interp

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A measure is what a run cost.
type measure struct{ work, bytes uint64 }

// measured compiles a kernel with a meter and runs it with n.
func measured(t testing.TB, g *gate.Gate, k kernel, n int) measure {
	t.Helper()
	work := &meter{}
	c := compileKernel(t, g, k, n, work)
	defer c.Close()
	call := newCall(t, strconv.Itoa(n))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v, err, p := c.Run(call)
	runtime.ReadMemStats(&after)
	if err != nil || p != nil || v == nil {
		t.Fatalf("%s: %v %v %+v", k.name, v, err, p)
	}
	return measure{work.work, after.TotalAlloc - before.TotalAlloc}
}

func compileKernel(t testing.TB, g *gate.Gate, k kernel, n int, work *meter) *Compiled {
	t.Helper()
	decls, body := k.program(n)
	p, r := g.Check("package tool\n" + decls + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n")
	if r != nil {
		t.Fatalf("%s: refused: %v %q", k.name, r.Message, r.Errors)
	}
	c, err := compileProgram(p, work)
	if err != nil {
		t.Fatalf("%s: %v", k.name, err)
	}
	return c
}

// No program's cost may grow faster than natively. Every kernel is linear natively: with n doubled the engine's work, and what it allocates, must at most
// double, with some room for maps and slices that grow in steps.
func TestCostGrowsAsNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compares costs of growing programs")
	}
	const n = 2048
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kernels() {
		t.Run(k.name, func(t *testing.T) {
			one, two := measured(t, g, k, n), measured(t, g, k, 2*n)
			if work := float64(two.work) / float64(one.work); work > 2.2 {
				t.Errorf("work grows %.2f times, from %d to %d", work, one.work, two.work)
			}
			const fixed = 64 << 10 // what runs allocate whatever n is, and steps
			if grown := float64(two.bytes) / float64(max(one.bytes, fixed)); grown > 1.25*float64(k.growth) {
				t.Errorf("what is allocated grows %.2f times, from %d to %d", grown, one.bytes, two.bytes)
			}
		})
	}
}

// A stackProbe answers a program's questions, and notes how deep the stack is then.
type stackProbe struct{ frames []int }

func (s *stackProbe) Ask(_ string, _, result any) error {
	s.frames = append(s.frames, runtime.Callers(0, make([]uintptr, 1<<20)))
	return json.Unmarshal([]byte("[]"), result)
}

// A panic that passes functions which defer leaves their stack behind: on it, every deferred call would be one more panic within the others, and
// the time of n of them the square of n.
func TestPanicsLeaveTheStack(t *testing.T) {
	c := compile(t, `
var host *recurgent.Call

func fall(n int) {
	defer func() { n++ }()
	if n == 0 {
		panic("bottom")
	}
	fall(n - 1)
}

func try(n int) {
	defer func() { recover() }()
	defer func() { host.HistoryAll() }()
	fall(n)
}`, `host = call
try(10)
try(1000)
return nil, nil`)
	probe := &stackProbe{}
	in, err := recurgent.New(recurgent.Input{}, probe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err, p := c.Run(in); err != nil || p != nil {
		t.Fatal(err, p)
	}
	if len(probe.frames) != 2 || probe.frames[0] != probe.frames[1] {
		t.Errorf("the deferred call has %v frames below it; want as many after a thousand functions as after ten", probe.frames)
	}
}

// TestCostInTime logs the kernels whose processor time grows faster than n, to find what work and bytes do not show. It asserts nothing, and
// runs where KERNEL_TIMES is set.
func TestCostInTime(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv("KERNEL_TIMES"))
	if times == 0 {
		return
	}
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kernels() {
		if k.sized {
			continue // a value of a function has at most 4 MiB
		}
		one, many := elapsed(t, g, k, 4096), elapsed(t, g, k, 4096*times)
		t.Logf("%6.1f times %9.3f ms: %s", float64(many)/float64(one), float64(many)/1e6, k.name)
	}
}

// elapsed returns the least processor time of a few runs.
func elapsed(t testing.TB, g *gate.Gate, k kernel, n int) time.Duration {
	c := compileKernel(t, g, k, n, nil)
	defer c.Close()
	least := time.Hour
	for range 3 {
		call := newCall(t, strconv.Itoa(n))
		before := cpuTime(t)
		c.Run(call)
		least = min(least, cpuTime(t)-before)
	}
	return least
}

func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
