package cli

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// The daemon's memory limit is half of what its control group allows, within bounds.
func TestMemoryLimitFollowsTheControlGroup(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	given, set := os.LookupEnv("GOMEMLIMIT")
	if set {
		t.Setenv("GOMEMLIMIT", given) // restores it
		_ = os.Unsetenv("GOMEMLIMIT")
	}
	broken := func() (uint64, error) { return 0, errors.New("no control group") }
	for _, c := range []struct {
		name     string
		provider memlimit.Provider
		want     int64
	}{
		{"a small container", memlimit.Limit(64 << 20), leastMemory},
		{"a container of 512 MiB", memlimit.Limit(512 << 20), 256 << 20},
		{"a large machine", memlimit.Limit(256 << 30), mostMemory},
		{"no container", memlimit.ApplyFallback(broken, memlimit.Limit(1<<30)), 512 << 20},
		{"nothing known", broken, math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		limitMemory(zerolog.Nop(), c.provider)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
	t.Setenv("GOMEMLIMIT", "300MiB")
	debug.SetMemoryLimit(300 << 20)
	limitMemory(zerolog.Nop(), memlimit.Limit(512<<20))
	if got := debug.SetMemoryLimit(-1); got != 300<<20 {
		t.Errorf("GOMEMLIMIT is overridden: %d", got)
	}
}
