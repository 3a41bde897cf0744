package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// hostileTool returns the path of a tool whose arguments determine what it does.
func hostileTool(t *testing.T) string { return testProgram(t, "hostiletool") }

// toolRun runs the tool in a directory with one readable file, and returns what the directory contains afterwards.
func toolRun(t *testing.T, ctx context.Context, p *Pool, tool string,
	args ...string) (files []string, said string, err error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "source"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := p.RunTools(ctx, wire.Tools{Dir: dir, Memory: 1 << 30, CPU: 10, File: 64 << 10,
		Steps: []wire.ToolStep{{Tool: tool, Args: args, Writes: "out"}}})
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		t.Fatal(readErr)
	}
	for _, e := range entries {
		files = append(files, e.Name())
		if info, err := e.Info(); err != nil || info.Size() > 64<<10 {
			t.Errorf("%s: %v, %v", e.Name(), info, err)
		}
	}
	return files, string(text), err
}

// A compiler that its input has taken over can write one file of bounded size and create no process.
func TestToolIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	p, tool := testPool(t, forNative, hooks{args: []string{wire.RunnerArg}}), hostileTool(t)
	if s := p.Status(); s.Level != LevelFull {
		t.Fatalf("the test needs every layer: %s", s)
	}
	attempts := []string{"create", "tmpfile", "mkdir", "rename", "remove", "link", "symlink", "chmod", "source", "tmp",
		"passwd", "root", "execute", "processes", "fork", "vfork", "clone3",
		"socket", "signal", "inherit", "grow"}
	files, said, err := toolRun(t, t.Context(), p, tool, append(attempts, "copy")...)
	if err != nil || !slices.Equal(files, []string{"out", "source"}) {
		t.Errorf("files %v, %v: %s", files, err, said)
	}
	if _, said, err := toolRun(t, t.Context(), p, tool,
		"threads"); err == nil || strings.Contains(said, "ALLOWED") ||
		!strings.Contains(said, "failed to create new OS thread") {
		t.Errorf("a thousand threads: %v: %s", err, said)
	}
	if _, said, err := toolRun(t, t.Context(), p, tool, "copy"); err != nil {
		t.Errorf("after them: %v: %s", err, said)
	}
	// The output of a thousand stacks is cut off as a flood, or ends before.
	if got := p.Stats().Killed; got["died"] != 0 || got["tools"] < 2 || got["tools"]+got["flood"] != 3 {
		t.Errorf("processes that ended: %v, want three as tools, one of them maybe for a flood of words, and none that died", got)
	}
}

// The error of a tool that exceeds a bound names the bound. The error of a tool that the machine ended does not.
func TestToolLimits(t *testing.T) {
	p, tool := testPool(t, forNative, hooks{args: []string{wire.RunnerArg}}), hostileTool(t)
	for does, want := range map[string]string{"spin": wire.BoundCPU, "hoard": wire.BoundMemory, "write": wire.BoundFile,
		"exhaust": "", "create": ""} {
		if does == "hoard" && wire.RaceBuild {
			continue // it has no bound
		}
		cpu := int64(60)
		if does == "spin" {
			cpu = 1
		}
		said, err := p.RunTools(t.Context(), wire.Tools{Dir: t.TempDir(), Memory: 192<<20 + ownPeak(), CPU: cpu,
			File: 64 << 10, Steps: []wire.ToolStep{{Tool: tool, Args: []string{does, "threads"}, Writes: "out"}}})
		bound, is := errors.AsType[*wire.ToolLimit](err)
		if err == nil || is != (want != "") || is && bound.Bound != want {
			t.Errorf("%s: got %v: %.500s", does, err, said)
		}
	}
}

// Without landlock a tool can read and write what every user can. Its own directory, its processes and the network stay
// closed.
func TestToolWithoutLandlock(t *testing.T) {
	p, tool := testPool(t, forNative, hooks{args: []string{wire.RunnerArg, "mask=landlock_create_ruleset"}}),
		hostileTool(t)
	if s := p.Status(); s.Level != LevelReduced {
		t.Fatalf("the test needs level reduced: %s", s)
	}
	files, said, err := toolRun(t, t.Context(), p, tool, "create", "tmpfile", "mkdir", "rename", "remove", "link",
		"symlink", "chmod", "source", "execute", "processes", "fork", "vfork", "clone3", "socket",
		"signal", "inherit", "grow", "copy")
	if err != nil || !slices.Equal(files, []string{"out", "source"}) {
		t.Errorf("files %v, %v: %s", files, err, said)
	}
}

// waits reports whether the tool has begun and has that many threads. A launcher about to become the tool has another
// command line.
func waits(p *Pool, threads int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.live {
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline",
			r.proc.Pid)); err == nil && strings.HasSuffix(string(args), "\x00wait\x00") {
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.proc.Pid))
			return len(tasks) >= threads
		}
	}
	return false
}

// The threads of one build do not reduce those of another.
func TestThreadsOfBuildsCountApart(t *testing.T) {
	p, tool := testPool(t, forNative, hooks{args: []string{wire.RunnerArg}}), hostileTool(t)
	if p.spawner.plan.toolTasks() == 0 {
		t.Skip("the threads of tools have no bound of their own here")
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		if _, said, err := toolRun(t, ctx, p, tool, "forty", "wait"); err == nil || ctx.Err() == nil {
			t.Errorf("the first ended: %v: %s", err, said)
		}
	}()
	for !waits(p, 40) {
		select {
		case <-first:
			t.FailNow()
		default:
			runtime.Gosched()
		}
	}
	if _, said, err := toolRun(t, t.Context(), p, tool, "forty", "copy"); err != nil {
		t.Errorf("beside another: %v: %s", err, said)
	}
	cancel()
	<-first
}

// A tool that does not end is killed with its context and leaves no process.
func TestToolIsKilled(t *testing.T) {
	p, tool := testPool(t, forNative, hooks{args: []string{wire.RunnerArg}}), hostileTool(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if waits(p, 1) {
				cancel(errors.New("long enough"))
			}
			runtime.Gosched()
		}
	}()
	if _, _, err := toolRun(t, ctx, p, tool, "wait"); err == nil || !strings.Contains(err.Error(), "long enough") {
		t.Errorf("got %v", err)
	}
	if got := p.Stats().Killed["tools"]; got != 1 {
		t.Errorf("%d are killed", got)
	}
	if _, said, err := toolRun(t, t.Context(), p, filepath.Join(filepath.Dir(tool),
		"missing")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a tool that is not there: %v: %s", err, said)
	}
}
