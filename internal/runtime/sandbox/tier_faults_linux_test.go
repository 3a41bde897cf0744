package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// compiled is an executable that does what the mode says.
func compiled(t *testing.T, mode string) *Executable {
	t.Helper()
	return launched(t, "compiled", mode)
}

// launched is a program of testdata as the daemon would find an executable.
func launched(t *testing.T, name string, args ...string) *Executable {
	t.Helper()
	path := testProgram(t, name)
	return &Executable{Path: path, Digest: digestOf(t, path), Args: args, Facts: &report.Facts{Imports: []string{"of the gate"}}}
}

// A fault of a compiled program before its first host call costs nothing but time: the engine answers. After one it is nobody's fault. Where the engine ends the same
// way, nothing is wrong with the compiled program.
func TestNativeFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on small deadlines of real programs")
	}
	p := nativePool(t, forNative)
	missing, altered := compiled(t, ""), compiled(t, "")
	missing.Path = filepath.Join(t.TempDir(), "none")
	altered.Digest = "sha256:0"
	for _, c := range []struct {
		name, source string
		x            *Executable
		end          string // of the run
		tier, fault  string
	}{
		{"answers", "echo", compiled(t, ""), `"compiled"`, TierNative, ""},
		{"own error", "echo", compiled(t, "fails"), "authored low_utility", TierNative, ""},
		{"dies", "echo", compiled(t, "crash"), "[1]", TierEngine, NativeBroken},
		{"dies as it starts", "echo", compiled(t, "dies"), "[1]", TierEngine, NativeBroken},
		{"does not load", "echo", compiled(t, "refuses"), "[1]", TierEngine, NativeBroken},
		{"does not end", "echo", compiled(t, "loop"), "[1]", TierEngine, NativeBroken},
		{"recursion", "echo", compiled(t, "stack"), "[1]", TierEngine, NativeBroken},
		{"recursion in both", "stack", compiled(t, "stack"), "failure resource_exhausted/stack", TierEngine, ""},
		{"dies after a host call", "echo", compiled(t, "asks"), "failure runner_crash/engine", TierNative, NativeBroken},
		{"file gone", "echo", missing, "[1]", TierEngine, NativeMissing},
		{"file altered", "echo", altered, "[1]", TierEngine, NativeMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(c.source, 1)
			req.Native, req.Program.Checksum = c.x, c.name // no runner of another case is warm for it
			req.Timeout = time.Minute
			if c.name == "does not end" {
				req.Timeout = 2 * time.Second
			}
			h := &fakeHost{}
			got := p.Run(t.Context(), req, h)
			end := string(got.Value)
			if got.Value == nil {
				end = said(got)
			}
			fault := ""
			if got.Native != nil {
				fault = got.Native.Kind
			}
			if !strings.HasPrefix(end, c.end) || got.Tier != c.tier || fault != c.fault {
				t.Errorf("got %s on %q, fault %v; want %s on %q, fault %q", end, got.Tier, got.Native, c.end, c.tier, c.fault)
			}
			if f := got.Failure; f != nil && f.Detail == DetailEngine && (!f.Ours || f.Type != agent.ErrRunnerCrash) {
				t.Errorf("a fault of the daemon is blamed on the program: %+v", f)
			}
			if got.Facts == nil || got.Tier == TierNative && !slices.Equal(got.Facts.Imports, c.x.Facts.Imports) {
				t.Errorf("facts %+v", got.Facts)
			}
		})
	}
}

// Runners of one program are kept by what they are: neither the engine nor another executable takes the runner of an executable.
func TestNativeRunnersAreWarm(t *testing.T) {
	p := nativePool(t, forNative)
	spawned := p.Stats().Spawned
	first, second := compiled(t, ""), compiled(t, "")
	run := func(x *Executable, want int64) {
		t.Helper()
		req := request("echo", 1)
		req.Native = x
		if got := p.Run(t.Context(), req, &fakeHost{}); got.Failure != nil || got.Native != nil {
			t.Fatalf("got %s, fault %v", said(got), got.Native)
		}
		if n := p.Stats().Spawned - spawned; n != want {
			t.Errorf("%d runners were started, want %d", n, want)
		}
	}
	run(first, 1)
	run(first, 1)
	run(nil, 2)
	run(first, 2)
	run(nil, 2)
	second.Path = copied(t, second.Path)
	second.Digest = digestOf(t, second.Path)
	run(second, 3)
	if s := p.Stats(); s.Warm != 3 || s.WarmBytes <= 0 {
		t.Errorf("%d runners are warm with %d bytes, want 3", s.Warm, s.WarmBytes)
	}
}

// copied is a copy of an executable with one byte more, which ELF does not mind.
func copied(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(to, append(data, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := Sum(f)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
