package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/test/e2e/rig/compiled"
)

// Compiler is the variable that names the directory of a Compiler, which then stands for the toolchain of a daemon under test.
const Compiler = "RECURGENTD_TEST_COMPILER"

// compiledFile is the variable that names the program of package compiled to a daemon under test that has a Compiler.
const compiledFile = "RECURGENTD_TEST_COMPILED"

// A compiler makes "executables" for tests of the native tier: copies of the program of package compiled, which runs programs on the engine, and goes wrong as a comment in the program
// says: "// native: WORD" with a mode of package compiled. "// native: unbuildable" fails to build, "// native: slow" builds until the daemon stops.
type compiler struct{ dir, program string }

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
	data, err := os.ReadFile(c.program)
	if err != nil {
		return "", err
	}
	at := bytes.Index(data, []byte(compiled.Place))
	if at < 0 || len(mode) > len(compiled.Place) {
		return "", errors.New("there is no place for the mode")
	}
	copy(data[at:], fmt.Sprintf("%-*s", len(compiled.Place), mode))
	syscall.ForkLock.RLock() // a process that began meanwhile would keep the file open for writing, and none could execute it
	defer syscall.ForkLock.RUnlock()
	return path, os.WriteFile(path, data, 0o755)
}
