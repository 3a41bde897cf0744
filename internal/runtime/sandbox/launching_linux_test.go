package sandbox

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An executable is confined from its first instruction on. One without trusted code makes its probes during
// initialization, and none gets through, at every level at which executables run.
func TestInitIsConfined(t *testing.T) {
	root := os.Geteuid() == 0
	for _, c := range []struct {
		name  string
		plans []plan // nil means all
		mask  string
		level Level
	}{
		{"all layers", nil, "", LevelFull},
		{"no landlock", nil, "mask=landlock_create_ruleset", LevelReduced},
		{"no namespaces", []plan{{uid: root}}, "", LevelReduced},
		{"neither", []plan{{uid: root}}, "mask=landlock_create_ruleset", LevelReduced},
		{"nothing but seccomp", []plan{{}}, "mask=landlock_create_ruleset", LevelReduced},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := executablePool(t, hooks{args: []string{wire.RunnerArg, "native", c.mask}, plans: c.plans}, launched{})
			s := p.Status()
			if s.Level != c.level && (root || s.Level != LevelReduced) {
				t.Fatalf("level %s, want %s", s.Level, c.level)
			}
			p.UseCompiler(found{launched{testProgram(t, "hostileprogram"),
				[]string{strconv.Itoa(os.Getpid()), bound(p, syscall.RLIMIT_DATA), bound(p, syscall.RLIMIT_AS)}}})
			got := p.Run(t.Context(), request("anything"), &fakeHost{})
			if got.Value == nil || got.Tier != TierNative {
				t.Fatalf("it does not run: %s, %+v", said(got), got.Failure)
			}
			var probes map[string]string
			if err := json.Unmarshal(got.Value, &probes); err != nil {
				t.Fatal(err)
			}
			for name, outcome := range probes {
				if !strings.HasPrefix(outcome, "denied") {
					t.Errorf("%s: %s", name, outcome)
				}
			}
			if len(probes) < 100 {
				t.Errorf("only %d probes", len(probes))
			}
		})
	}
}

func bound(p *Pool, resource int) string { return strconv.FormatUint(p.program.Limit(resource), 10) }

// After narrowing, an executable has no more rights than a runner: what the launcher's filter allowed for its start is
// denied.
func TestNarrowed(t *testing.T) {
	p := executablePool(t, nativeRunner, compiled(t, "again"))
	got := p.Run(t.Context(), request("anything"), &fakeHost{})
	var outcomes map[string]string
	if err := json.Unmarshal(got.Value, &outcomes); err != nil || got.Tier != TierNative {
		t.Fatalf("it does not run: %s, %+v", said(got), got.Failure)
	}
	if len(outcomes) != 6 {
		t.Errorf("it tried %v", outcomes)
	}
	for name, errno := range outcomes {
		if errno != "EPERM" {
			t.Errorf("to %s: %s", name, errno)
		}
	}
	p.UseCompiler(found{compiled(t, "threads")})
	req := request("another")
	if got := p.Run(t.Context(), req, &fakeHost{}); said(got) != "failure resource_exhausted/threads" {
		t.Errorf("a hundred threads: %s, %+v", said(got), got.Failure)
	}
}

// A launcher that lacks a layer executes nothing.
func TestLaunchWithoutALayer(t *testing.T) {
	p := executablePool(t, nativeRunner, compiled(t, ""))
	p.launcher.args = append(p.launcher.args, "mask=landlock_restrict_self")
	got := p.Run(t.Context(), request("anything"), &fakeHost{})
	if said(got) != "failure runner_crash/spawn" || !got.Failure.Ours ||
		!strings.Contains(got.Failure.Message, "layer landlock is off") {
		t.Errorf("got %s: %+v", said(got), got.Failure)
	}
}

// A file that is open for writing cannot be executed. Processes that the daemon is starting briefly have the file open
// that it is writing, so a launcher waits for that.
func TestLaunchWaitsForWriters(t *testing.T) {
	x := compiled(t, "")
	x.path = copied(t, x.path)
	p := executablePool(t, nativeRunner, x)
	writer, err := os.OpenFile(x.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	done := make(chan Result, 1)
	go func() { done <- p.Run(t.Context(), request("anything"), &fakeHost{}) }()
	for launched := false; !launched; runtime.Gosched() {
		p.mu.Lock()
		launched = len(p.live) > 0
		p.mu.Unlock()
	}
	writer.Close()
	if got := <-done; string(got.Value) != `"compiled"` || got.Tier != TierNative {
		t.Errorf("got %s: %+v", said(got), got.Failure)
	}
}

// If programs are confined by processes alone, which the operator has asked for, executables are confined as runners
// are.
func TestLaunchedAtLevelProcess(t *testing.T) {
	p := testPool(t, func(o *Options) { forNative(o); o.Require = string(LevelProcess) },
		hooks{args: []string{wire.RunnerArg, "native", "mask=seccomp"}})
	p.UseCompiler(found{compiled(t, "")})
	if s := p.Status(); s.Level != LevelProcess || s.Layers[layerLaunch] != "on (as runners are)" {
		t.Fatalf("the sandbox is %s", s)
	}
	if got := p.Run(t.Context(), request("anything"),
		&fakeHost{}); string(got.Value) != `"compiled"` || got.Tier != TierNative {
		t.Errorf("got %s, %+v", said(got), got.Failure)
	}
}
