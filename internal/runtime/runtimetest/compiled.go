package runtimetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/native/nativetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// shared holds the compiler that all tests of a package use.
var shared struct {
	once    sync.Once
	pool    *sandbox.Pool // runs the build tools
	builder *native.Builder
	off     string // why nothing can be compiled here; "" if it can
	err     error
}

// CompilingPool returns a pool of real processes that compiles programs, and closes the pool with the test. Each
// program is compiled once for all tests of the package. The test is skipped if program processes cannot be launched
// here. The package's TestMain must call CloseCompiler at its end.
func CompilingPool(t testing.TB) *sandbox.Pool {
	t.Helper()
	shared.once.Do(openShared)
	if shared.off != "" {
		t.Skip("nothing is launched here: ", shared.off)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	p, err := sandbox.New(compilingOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.UseCompiler(compiler{shared.builder})
	return p
}

// CloseCompiler closes the compiler that CompilingPool opened, if any.
func CloseCompiler() {
	if shared.pool != nil {
		_ = shared.pool.Close() // the tests are over
	}
}

func compilingOptions() sandbox.Options {
	o := sandbox.DefaultOptions()
	o.Require, o.Native, o.Engine = "process", true, report.EngineGo
	return o
}

// openShared starts the tools' pool and, if programs can be launched here, the builder.
func openShared() {
	o := compilingOptions()
	o.Blank = 0
	if shared.pool, shared.err = sandbox.New(o); shared.err != nil {
		return
	}
	if shared.off = shared.pool.Status().NativeOff(); shared.off == "" {
		shared.builder, shared.err = nativetest.Open(shared.pool)
	}
}

// compiler adapts a builder to the sandbox's interface.
type compiler struct{ builder *native.Builder }

func (c compiler) Engine() string { return report.EngineGo + " test" }

func (c compiler) Find(checksum string) (*sandbox.Executable, error) {
	x, err := c.builder.Find(checksum)
	if x == nil {
		return nil, ofProgram(err)
	}
	return executable(x)
}

// ofProgram converts a build's error to the sandbox's type if the program is to blame.
func ofProgram(err error) error {
	if failed, ok := errors.AsType[*native.BuildError](err); ok && failed.Refusal != "" {
		return &sandbox.CompileError{Text: failed.Refusal}
	}
	return err
}

func (c compiler) Compile(ctx context.Context, what sandbox.Compilation) (*sandbox.Executable, error) {
	about, err := json.Marshal(what.Facts)
	if err != nil {
		return nil, err
	}
	x, err := c.builder.Compile(ctx, what.Checksum, what.Text, about)
	if err != nil {
		return nil, ofProgram(err)
	}
	return executable(x)
}

func executable(x *native.Executable) (*sandbox.Executable, error) {
	facts := &report.Facts{}
	err := json.Unmarshal(x.About, facts)
	return &sandbox.Executable{File: x.File, Facts: facts}, err
}
