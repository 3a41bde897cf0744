package sandbox

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A Compiler compiles checked programs to executables and keeps them. Its methods may be called concurrently.
type Compiler interface {
	// Find returns the executable of the program, or nil if there is none. If the compiler rejected the program before,
	// the error is a *CompileError.
	Find(checksum string) (*Executable, error)
	// Compile compiles the text that a runner wrote for the program. It waits for its turn, which is shared fairly
	// among owners. A *CompileError is the program's fault, any other error is not.
	Compile(ctx context.Context, c Compilation) (*Executable, error)
	// Engine names the compiler: "go" and its version.
	Engine() string
}

// A Compilation describes a program to compile.
type Compilation struct {
	Owner    agent.Owner
	Checksum string // of the program's source
	Text     string // the Go text that a runner wrote
	Facts    *report.Facts
}

// A CompileError means that the compiler rejected a program that the gate let pass. Text is the compiler's output, or
// the bound of a build that the program exceeds.
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return e.Text }

func (e *CompileError) failure() *Failure {
	return &Failure{Type: agent.ErrInvalidCode, Detail: "compile",
		Message: wire.BoundText([]byte(e.Text), wire.MaxMessage),
		Hint:    "The Go compiler refuses the program. Write it in a plainer way; let large tables be computed by a loop."}
}

// UseCompiler makes p compile all programs with c. It must be called at most once, before the first program.
func (p *Pool) UseCompiler(c Compiler) { p.compiler = c }

// tier returns the tier that runs programs: TierNative with a compiler, otherwise TierEngine.
func (p *Pool) tier() string {
	if p.compiler != nil {
		return TierNative
	}
	return TierEngine
}

// A making turns one program into a process that runs it.
type making struct {
	pool    *Pool
	program Program
	owner   agent.Owner
	// by is the runner that checks the program: a blank one, or the one that fixed it. Nil means that one is taken when
	// needed.
	by      *runner
	against *report.Refusal // refusal to return once the program passes the check; nil means none
	host    Host            // notified of a wait for the compiler if it has a method Building; may be nil
	timing  Timing
}

// process returns a process of the program's executable, ready to run.
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

// dismiss ends the checking runner, which serves one source only.
func (m *making) dismiss() {
	if m.by != nil {
		m.by.kill("checked")
		m.by = nil
	}
}

// executable returns the existing executable of the program, or compiles a new one.
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

// checked gates the program in a runner, which also writes the text to compile.
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

// notCompiled returns the Failure for a fault of the daemon's compiler, which is not evidence against the program.
func notCompiled(err error) *Failure {
	kind := agent.ErrRunnerCrash
	if exhausted(err) {
		kind = agent.ErrResourceExhausted
	}
	return &Failure{Type: kind, Detail: "compiler", Ours: true,
		Message: "the program could not be compiled: " + wire.BoundText([]byte(err.Error()), 1000),
		Hint:    "This is no fault of the program. `recurgentd doctor` says what the compiler lacks."}
}

// begin starts a process of the executable and loads the program in it. It closes x.File.
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

// notStarted returns the Failure for a process that could not be started.
func notStarted(err error) *Failure {
	kind := agent.ErrRunnerCrash
	if exhausted(err) {
		kind = agent.ErrResourceExhausted
	}
	return &Failure{Type: kind, Detail: "spawn", Ours: true, Message: "no runner could be started: " + err.Error()}
}

// Values of Result.Tier.
const (
	TierEngine = "engine" // the program is interpreted in a runner, by an engine of package gate
	TierNative = "native" // the program is compiled to a binary
)

// An Executable is a program compiled to a static binary that speaks the runner's wire protocol. A launcher confines it
// before its first instruction.
type Executable struct {
	// File is open and verified, for one process. Exactly this file is executed, so later changes of the directory have
	// no effect. The pool closes it.
	File *os.File
	Args []string // of the command line, after the name
	// Facts of the program, as the gate found them. All runs share them, so they must not be changed.
	Facts *report.Facts
}

// startExecutable launches a process of the executable and sends its configuration. The returned process is confined
// and about to start.
func (p *Pool) startExecutable(program *os.File, args []string) (*runner, error) {
	r, err := p.launch(p.programLaunch(append([]string{"recurgent-native"}, args...)), []*os.File{program}, "")
	if err != nil {
		return nil, err
	}
	cfg := p.programConfig()
	cfg.Put(&r.wr)
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		r.bury("spawn")
		return nil, err
	}
	return r, nil
}
