package rig

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// Compiler is the variable that names the directory of a Compiler, which then stands for the toolchain of a daemon under test.
const Compiler = "RECURGENTD_TEST_COMPILER"

// A compiler makes "executables" for tests of the native tier: copies of the test binary that run the program on the engine, and go wrong as a comment in the program
// says: "// native: WORD" with a word of misbehave. "// native: unbuildable" fails to build, "// native: slow" builds until the daemon stops.
type compiler struct{ dir string }

const (
	compiledName = "recurgent-native" // the name under which the sandbox starts an executable
	modeMark     = "\nnative mode "
)

// Build implements tier.Builder.
func (c compiler) Build(ctx context.Context, source string) (path, digest string, err error) {
	if path, err = c.build(ctx, source); err != nil {
		return "", "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	digest, err = sandbox.Sum(f)
	return path, digest, err
}

// build returns the path of the program's executable.
func (c compiler) build(ctx context.Context, source string) (string, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", err
	}
	note := func(what string) error { return os.WriteFile(filepath.Join(c.dir, what), nil, 0o600) }
	mode := "same"
	if _, after, ok := strings.Cut(source, "// native: "); ok {
		mode, _, _ = strings.Cut(after, "\n")
	}
	switch mode {
	case "unbuildable":
		return "", errors.New("no space left on device")
	case "slow":
		if err := note("building"); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	sum, err := sandbox.Sum(strings.NewReader(source))
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, strings.TrimPrefix(sum, "sha256:"))
	if _, err := os.Stat(path); err == nil {
		return path, nil // as a cache
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	syscall.ForkLock.RLock() // a process that began meanwhile would keep the file open for writing, and none could execute it
	defer syscall.ForkLock.RUnlock()
	return path, os.WriteFile(path, append(data, modeMark+mode...), 0o755)
}

// actAsCompiled runs the process as an executable of the compiler.
func actAsCompiled() int {
	mode := ownMode()
	return worker.Serve(func(string) (worker.Engine, error) {
		e, err := worker.NewEngine(report.EngineSSA)
		return &compiledEngine{Engine: e, mode: mode}, err
	})
}

// ownMode returns the mode at the end of the process's own executable. It reads no more than that end: a process that held all of it would be too large to be kept
// between calls.
func ownMode() string {
	const longest = 64
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "same"
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < longest {
		return "same"
	}
	tail := make([]byte, longest)
	if _, err := f.ReadAt(tail, info.Size()-longest); err != nil {
		return "same"
	}
	_, mode, _ := strings.Cut(string(tail), modeMark)
	return mode
}

// compiledEngine is the engine, except for what its mode does.
type compiledEngine struct {
	worker.Engine
	mode  string
	given []string // first arguments of all calls of this process
}

func (e *compiledEngine) Run(call *recurgent.Call, now time.Time, seed uint64) (any, error, *rt.Panic) {
	die := func() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSEGV); select {} }
	first := ""
	if len(call.Args) > 0 {
		raw, _ := json.Marshal(call.Args[0]) // it came as JSON
		first = string(raw)
	}
	if first != "" {
		e.given = append(e.given, first)
	}
	value, err, panicked := e.Engine.Run(call, now, seed)
	switch {
	case e.mode == "reports at 99" && first == "99": // what this process was given
		return strings.Join(e.given, " "), nil, nil
	case e.mode == "differs", e.mode == "differs at 13" && first == "13":
		return "not what the engine says", nil, nil
	case e.mode == "dies at 99" && first == "99": // after its host calls, if it makes any
		die()
	case e.mode == "hangs at 99" && first == "99":
		for forever := true; forever; { // with work, as a loop of a program has
			forever = len(e.mode) > 0
		}
	}
	return value, err, panicked
}
