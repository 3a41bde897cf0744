// Package compiled compiles many programs into one executable and runs them as the daemon does: in confined processes,
// from the text that package rewrite returns. Only tests and measurements import it, from binaries that are their own
// runners (package worker).
package compiled

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// A Bench compiles and runs programs. Its methods may be called concurrently.
type Bench struct {
	Pool    *sandbox.Pool
	builder *native.Builder
	gate    *gate.Gate
	dir     string

	built runtimetest.Executables
	count atomic.Int64 // number of executables built
}

// New returns a Bench that keeps its executables in a temporary directory. It shares the build cache of the go command.
// The caller must Close it.
func New(o sandbox.Options) (b *Bench, err error) {
	b = &Bench{}
	if b.dir, err = os.MkdirTemp("", "compiled"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(b.dir)
		}
	}()
	if b.gate, err = gate.New(gate.Options{Deadline: time.Minute}); err != nil {
		return nil, err
	}
	if b.Pool, err = sandbox.New(o); err != nil {
		return nil, err
	}
	at, err := beneath.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // it was only read
	bo := native.DefaultOptions()
	bo.Timeout, bo.MaxBytes = time.Hour, 4<<30
	bo.Dir, bo.Sources, bo.Run = b.dir, runtime.NativeSources, b.Pool.RunTools
	if bo.Key, err = seal.Open(at); err != nil {
		return nil, err
	}
	if bo.Toolchain, err = native.Find(""); err != nil {
		return nil, err
	}
	if b.builder, err = native.New(bo); err != nil {
		return nil, err
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, err
	}
	b.builder.GoCache = strings.TrimSpace(string(cache))
	b.Pool.UseCompiler(&b.built)
	return b, nil
}

// Close stops the processes and removes the executables.
func (b *Bench) Close() error { return errors.Join(b.Pool.Close(), os.RemoveAll(b.dir)) }

// A prepared program has the text to compile.
type prepared struct {
	checksum, text string
	facts          *report.Facts
}

// prepare checks a program and returns its text.
func (b *Bench) prepare(source string) (prepared, error) {
	p, refusal := b.gate.Check(source)
	if refusal != nil {
		return prepared{}, fmt.Errorf("refused: %s (%s) %q", refusal.Message, refusal.Hint, refusal.Errors)
	}
	text, err := rewrite.Text(p, source)
	return prepared{agent.Checksum(source), text, &p.Facts}, err
}

// Build compiles the programs. It returns, for each program, why it was refused, or nil if Run can run it.
func (b *Bench) Build(ctx context.Context, sources []string) ([]error, error) {
	refused := make([]error, len(sources))
	forms := make([]prepared, len(sources))
	var all []int
	for i, source := range sources {
		if forms[i], refused[i] = b.prepare(source); refused[i] == nil {
			all = append(all, i)
		}
	}
	return refused, b.build(ctx, forms, all, refused)
}

// build compiles the chosen programs. If the compiler refuses one of them, build tries each half of them.
func (b *Bench) build(ctx context.Context, forms []prepared, chosen []int, refused []error) error {
	if len(chosen) == 0 {
		return nil
	}
	texts := make([]string, len(chosen))
	for i, k := range chosen {
		texts[i] = forms[k].text
	}
	path, err := b.builder.BuildMany(ctx, fmt.Sprint("many-", b.count.Add(1)), texts)
	if said, ok := errors.AsType[*native.BuildError](err); ok && said.Refusal != "" {
		if len(chosen) == 1 {
			refused[chosen[0]] = err
			return nil
		}
		half := len(chosen) / 2
		return errors.Join(b.build(ctx, forms, chosen[:half], refused), b.build(ctx, forms, chosen[half:], refused))
	}
	if err != nil {
		return err
	}
	for _, k := range chosen {
		b.built.Add(forms[k].checksum, path, forms[k].facts)
	}
	return nil
}

// Run runs a program that Build has compiled. req needs no program or owner; role and method have defaults.
func (b *Bench) Run(ctx context.Context, source string, req sandbox.Request, host sandbox.Host) sandbox.Result {
	req.Program = sandbox.Program{Source: source, Checksum: agent.Checksum(source)}
	req.Owner, req.Role, req.Method, req.CallID = agent.Owner{Name: "o"}, cmp.Or(req.Role, "tester"),
		cmp.Or(req.Method, "run"), "c"
	res := b.Pool.Run(ctx, req, host)
	res.Value = manyAsOne.ReplaceAll(res.Value, []byte("tool."))
	if res.Failure != nil {
		res.Failure.Message = manyAsOne.ReplaceAllString(res.Failure.Message, "tool.")
	}
	if res.Authored != nil {
		res.Authored.Message = manyAsOne.ReplaceAllString(res.Authored.Message, "tool.")
	}
	return res
}

// manyAsOne matches the package paths of programs that share their executable.
var manyAsOne = regexp.MustCompile(`\btool\d+\.`)

// Forget removes all executables built so far.
func (b *Bench) Forget() error { return b.built.Clear() }
