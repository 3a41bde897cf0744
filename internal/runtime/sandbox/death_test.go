package sandbox

import (
	"os"
	"testing"
)

// What the Go runtime wrote says what a runner died of; much memory in use only explains what says nothing by itself. The peak
// that the kernel reports is no less than the daemon's own at the start of the runner, so it may be large for any.
func TestDeathWithMuchMemoryInUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stderr, scarce, plenty string }{
		{"runtime: failed to create new OS thread (have 9 already; errno=11)\nfatal error: newosproc\n", "threads", "threads"},
		{"fatal error: all goroutines are asleep - deadlock!\n", "deadlock", "deadlock"},
		{"fatal error: concurrent map writes\n", "map_race", "map_race"},
		{"runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n", "stack", "stack"},
		{"fatal error: runtime: cannot allocate memory\n", "memory", "memory"},
		{"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation]\n", "memory", "signal"},
		{"fatal error: bad sweepgen in refill\n", "memory", "fatal"},
	} {
		for _, exhausted := range []bool{true, false} {
			want := c.plenty
			if exhausted {
				want = c.scarce
			}
			if got := classifyDeath(&os.ProcessState{}, nil, []byte(c.stderr), exhausted, 20); got.Detail != want {
				t.Errorf("%q, exhausted %t: got %s, want %s", c.stderr, exhausted, got.Detail, want)
			}
		}
	}
}
