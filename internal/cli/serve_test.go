package cli

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/app"
)

// If the daemon requires tokens, the examples of the first screen show where to put one.
func TestFirstScreenNamesTheToken(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.Provider = "replay"
	if open := firstScreen(o.URL, o, "recurgentd"); strings.Contains(open, "TOKEN") ||
		!strings.Contains(open, "\n  curl http") {
		t.Errorf("without tokens:\n%s", open)
	}
	o.AuthTokensFile = "tokens"
	for _, want := range []string{"\n  export RECURGENT_TOKEN=... ",
		`curl -H "Authorization: Bearer $RECURGENT_TOKEN" http`, "\n  recurgentd call calculator add 2 3\n"} {
		if got := firstScreen(o.URL, o, "recurgentd"); !strings.Contains(got, want) {
			t.Errorf("with tokens it lacks %q:\n%s", want, got)
		}
	}
}

// The first screen lists every method of the demo recording, on lines that fit a terminal.
func TestFirstScreenListsTheDemo(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.Provider = "replay"
	screen := firstScreen(o.URL, o, "recurgentd")
	for _, r := range app.Demo() {
		if want := r.Role + "." + strings.Join(r.Methods, ", "); !strings.Contains(screen, want) {
			t.Errorf("it lacks %s:\n%s", want, screen)
		}
	}
	for line := range strings.Lines(screen) {
		if len([]rune(line)) > 110 {
			t.Errorf("a line has more than 110 characters: %s", line)
		}
	}
	if o.Recording = "mine.jsonl"; strings.Contains(firstScreen(o.URL, o, "recurgentd"), "text_tools") {
		t.Error("methods of the demo are named for another recording")
	}
}

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
