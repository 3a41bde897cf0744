package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// proportional reads the memory of a process in KiB, what it shares divided among those who share it.
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

// TestRunnerMemory (P4): what an idle and a warm runner take. The binary of the tests is larger than the real one; the bound
// is for runaway growth, the figures are in the log.
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
