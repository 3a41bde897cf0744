package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A Compiler makes executables of checked programs, and keeps them. Its methods may be called concurrently.
type Compiler interface {
	// Find returns the executable that was made of the program, nil where there is none. The error of a program that was refused is a *CompileError.
	Find(checksum string) (*Executable, error)
	// Compile makes the executable of the program from the text that a runner wrote, and waits for its turn among the owner's and others'. An error that is a *CompileError is
	// the program's.
	Compile(ctx context.Context, c Compilation) (*Executable, error)
	// Engine names the compiler: "go" and its version.
	Engine() string
}

// A Compilation is what is compiled.
type Compilation struct {
	Owner    agent.Owner
	Checksum string // of the program
	Text     string
	Facts    *report.Facts
}

// A CompileError is what the compiler has against a program that the gate let pass: its own words, or which bound of a build the program exceeds.
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return e.Text }

func (e *CompileError) failure() *Failure {
	return &Failure{Type: agent.ErrInvalidCode, Detail: "compile",
		Message: wire.BoundText([]byte(e.Text), wire.MaxMessage),
		Hint:    "The Go compiler refuses the program. Write it in a plainer way; let large tables be computed by a loop."}
}

// UseCompiler has all programs compiled. It is called once, before the first of them.
func (p *Pool) UseCompiler(c Compiler) { p.compiler = c }

// tier is what runs programs.
func (p *Pool) tier() string {
	if p.compiler != nil {
		return TierNative
	}
	return TierEngine
}

// A making is the way of one program to a process that runs it.
type making struct {
	pool    *Pool
	program Program
	owner   agent.Owner
	// a blank one, or one that has fixed the program, to check it in; nil: one is taken where it is needed
	by      *runner
	against *report.Refusal // what is to be said of a program that compiles; nil: nothing
	host    Host            // hears of a wait for the compiler, where it is one that wants to
	timing  Timing
}

// process returns a process of the program's executable that is ready to run.
func (m *making) process(ctx context.Context) (*runner, *Failure) {
	defer m.dismiss()
	x, failure := m.executable(ctx)
	if failure != nil {
		return nil, failure
	}
	began := time.Now()
	r, failure := m.pool.begin(ctx, x, m.program, m.owner)
	m.timing.Spawn += time.Since(began)
	return r, failure
}

// dismiss ends the runner that checks: it serves one source.
func (m *making) dismiss() {
	if m.by != nil {
		m.by.kill("checked")
		m.by = nil
	}
}

// executable returns what was made of the program, or a new one.
func (m *making) executable(ctx context.Context) (*Executable, *Failure) {
	p := m.pool
	if m.against == nil {
		x, err := p.compiler.Find(m.program.Checksum)
		if said, is := errors.AsType[*CompileError](err); is {
			return nil, said.failure()
		}
		if err != nil {
			p.opts.Log.Warn().Err(err).Str("checksum",
				m.program.Checksum).Msg("a compiled program was not found again; it is compiled anew")
		} else if x != nil {
			return x, nil
		}
	}
	c, failure := m.checked(ctx)
	if failure != nil {
		return nil, failure
	}
	c.Facts.Engine = p.compiler.Engine()
	if h, ok := m.host.(interface{ Building() }); ok {
		h.Building()
	}
	began := time.Now()
	x, err := p.compiler.Compile(ctx, Compilation{m.owner, m.program.Checksum, c.Text, c.Facts})
	m.timing.Build += time.Since(began)
	said, refused := errors.AsType[*CompileError](err)
	switch {
	case err == nil:
		return x, nil
	case ctx.Err() != nil:
		return nil, keptWaiting(ctx)
	case refused:
		return nil, said.failure()
	}
	p.opts.Log.Error().Err(err).Str("checksum", m.program.Checksum).Msg("a program could not be compiled")
	return nil, notCompiled(err)
}

// checked has a runner check the program and write the text to compile.
func (m *making) checked(ctx context.Context) (c *wire.Checked, failure *Failure) {
	began := time.Now()
	if m.by == nil {
		if m.by, failure = m.pool.takeBlank(ctx); failure != nil {
			return nil, failure
		}
	}
	m.timing.Spawn += time.Since(began)
	began = time.Now()
	if c, failure = m.by.check(ctx, m.program.Source, began.Add(loadTimeout)); failure == nil {
		failure = notLoaded(&c.Loaded)
	}
	m.timing.Gate += time.Since(began)
	m.dismiss()
	if failure != nil {
		m.pool.noteFault(failure, m.program.Checksum)
	} else if m.against != nil {
		failure = refused(m.against)
	}
	return c, failure
}

// notCompiled is the failure of the daemon to compile a program, which says nothing about it.
func notCompiled(err error) *Failure {
	kind := agent.ErrRunnerCrash
	if exhausted(err) {
		kind = agent.ErrResourceExhausted
	}
	return &Failure{Type: kind, Detail: "compiler", Ours: true,
		Message: "the program could not be compiled: " + wire.BoundText([]byte(err.Error()), 1000),
		Hint:    "This is no fault of the program. `recurgentd doctor` says what the compiler lacks."}
}

// begin starts a process of the executable and has it take the program.
func (p *Pool) begin(ctx context.Context, x *Executable, prog Program, owner agent.Owner) (*runner, *Failure) {
	defer x.File.Close()
	r, failure := p.tryStart(ctx, func() (*runner, error) { return p.startExecutable(x.File, x.Args) })
	if failure != nil {
		return nil, failure
	}
	if failure := p.load(ctx, r, prog, owner, time.Now().Add(loadTimeout)); failure != nil {
		failure.Ours = true
		return nil, failure
	}
	r.facts = x.Facts
	return r, nil
}

// notStarted is the failure to start a process.
func notStarted(err error) *Failure {
	kind := agent.ErrRunnerCrash
	if exhausted(err) {
		kind = agent.ErrResourceExhausted
	}
	return &Failure{Type: kind, Detail: "spawn", Ours: true, Message: "no runner could be started: " + err.Error()}
}
