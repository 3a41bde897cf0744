package sandbox

//lint:file-ignore SA5002,SA5007,SA4010,SA5000 programs that misbehave on purpose

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// tierEngine stands for a compiled program: whatever its source, it does what its mode says.
type tierEngine struct {
	nativeEngine
	mode string
}

func (e *tierEngine) Load(string) (*report.Facts, *report.Refusal, error) {
	crash := func() { syscall.Kill(syscall.Getpid(), syscall.SIGSEGV); select {} }
	switch e.mode {
	case "refuses":
		return nil, nil, errors.New("not this one")
	case "dies":
		crash()
	}
	e.program = func(c *recurgent.Call) (any, error) {
		switch e.mode {
		case "crash":
			crash()
		case "asks":
			c.Tool("other").Call("method")
			crash()
		case "loop":
			for {
			}
		case "stack":
			return recurse(1), nil
		case "fails":
			return nil, recurgent.Fail("low_utility", "as compiled")
		}
		return "compiled", nil
	}
	return &report.Facts{}, nil, nil
}

// compiled is an executable that does what the mode says: the test binary, as the daemon would find it.
func compiled(t *testing.T, mode string) *Executable {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Executable{Path: path, Digest: digestOf(t, path), Args: []string{wire.RunnerArg, "tier=" + mode}, Facts: &report.Facts{Imports: []string{"of the gate"}}}
}

// A fault of a compiled program before its first host call costs nothing but time: the engine answers. After one it is nobody's fault. Where the engine ends the same
// way, nothing is wrong with the compiled program.
func TestNativeFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on small deadlines of real programs")
	}
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
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
	p := nativePool(t, func(o *Options) { o.Blank = 0 })
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
