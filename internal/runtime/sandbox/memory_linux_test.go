package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

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
