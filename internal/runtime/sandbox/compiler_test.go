package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/native/nativetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// building is shared by all tests, so packages are compiled once, and each program once.
var building struct {
	once    sync.Once
	pool    *Pool // runs the tools
	builder *native.Builder
	off     string // why nothing can be compiled here
	err     error
}

// closeBuilding closes building.
func closeBuilding() {
	if building.pool != nil {
		_ = building.pool.Close() // the tests are over
	}
}

// builder returns the shared builder. It skips the test if nothing can be launched.
func builder(t testing.TB) *native.Builder {
	t.Helper()
	building.once.Do(func() {
		o := DefaultOptions()
		o.Blank, o.Native, o.Engine = 0, true, report.EngineGo
		if building.pool, building.err = newPool(o, hooks{args: []string{wire.RunnerArg}}); building.err != nil {
			return
		}
		if building.off = building.pool.Status().NativeOff(); building.off == "" {
			building.builder, building.err = nativetest.Open(building.pool)
		}
	})
	if building.off != "" {
		t.Skip("nothing is launched here: ", building.off)
	}
	if building.err != nil {
		t.Fatal(building.err)
	}
	return building.builder
}

// A named executable is an executable with its path.
type named struct {
	path  string
	facts *report.Facts
}

func (n named) open(args ...string) (*Executable, error) {
	f, err := os.Open(n.path)
	return &Executable{File: f, Args: args, Facts: n.facts}, err
}

// A programCompiler is the compiler of a pool. Tests choose the checksums of programs freely, so it maps those of its
// pool to texts, by which the builder knows programs.
type programCompiler struct {
	builder *native.Builder

	mu   sync.Mutex
	made map[string]named // guarded by mu
}

func (c *programCompiler) Engine() string { return report.EngineGo + " test" }

func (c *programCompiler) Find(checksum string) (*Executable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.made[checksum]; ok {
		return x.open()
	}
	return nil, nil
}

func (c *programCompiler) Compile(ctx context.Context, what Compilation) (*Executable, error) {
	about, err := json.Marshal(what.Facts)
	if err != nil {
		return nil, err
	}
	made, err := c.builder.Compile(ctx, agent.Checksum(what.Text), what.Text, about)
	if failed, ok := errors.AsType[*native.BuildError](err); ok && failed.Refusal != "" {
		return nil, &CompileError{failed.Refusal}
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[what.Checksum] = named{made.File.Name(), what.Facts}
	return &Executable{File: made.File, Facts: what.Facts}, nil
}

// compilePool returns a pool that compiles programs as a daemon does.
func compilePool(t testing.TB, change func(*Options)) *Pool {
	t.Helper()
	return compilePoolWith(t, change, hooks{args: []string{wire.RunnerArg}})
}

func compilePoolWith(t testing.TB, change func(*Options), h hooks) *Pool {
	t.Helper()
	b := builder(t)
	p := testPool(t, func(o *Options) {
		o.Native, o.Engine = true, report.EngineGo
		if change != nil {
			change(o)
		}
	}, h)
	p.UseCompiler(&programCompiler{builder: b, made: map[string]named{}})
	return p
}

// forYaegi makes runners run plain programs by yaegi.
func forYaegi(o *Options) { o.Engine = report.EngineYaegi }

// yaegiPool returns a pool without a compiler.
func yaegiPool(t testing.TB, change func(*Options)) *Pool {
	t.Helper()
	return testPool(t, func(o *Options) {
		forYaegi(o)
		if change != nil {
			change(o)
		}
	}, hooks{args: []string{wire.RunnerArg}})
}
