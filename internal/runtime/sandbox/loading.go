package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// prepare returns a runner that has compiled the program, and the time that starting and gating took. The host, if not
// nil, is notified of a wait for the compiler.
func (p *Pool) prepare(ctx context.Context, prog Program, owner agent.Owner, l *limit,
	h Host) (*runner, Timing, *Failure) {
	var t Timing
	if len(prog.Source) > p.opts.MaxSource {
		return nil, t, &Failure{Type: agent.ErrInvalidCode,
			Message: fmt.Sprintf("the program has %d bytes, at most %d are allowed", len(prog.Source),
				p.opts.MaxSource),
			Hint: "Write a shorter program."}
	}
	if r := p.takeWarm(warmKey{prog.Checksum, owner}); r != nil {
		return r, t, nil
	}
	if p.compiler != nil {
		m := making{pool: p, program: prog, owner: owner, host: h}
		r, failure := m.process(ctx)
		return r, m.timing, failure
	}
	began := time.Now()
	r, failure := p.takeBlank(ctx)
	t.Spawn = time.Since(began)
	if failure != nil {
		return nil, t, failure
	}
	began = time.Now()
	failure = p.load(ctx, r, prog, owner, l.start())
	t.Gate = time.Since(began)
	if failure != nil {
		return nil, t, failure
	}
	return r, t, nil
}

// load gates and compiles the program in the runner. If that fails it kills the runner.
func (p *Pool) load(ctx context.Context, r *runner, prog Program, owner agent.Owner, deadline time.Time) *Failure {
	stop := context.AfterFunc(ctx, r.interrupt)
	failure := r.load(ctx, prog, owner, deadline)
	if !stop() && failure == nil {
		failure = keptWaiting(ctx)
	}
	if failure != nil {
		r.kill("refused") // ignored if the runner was killed before
		p.noteFault(failure, prog.Checksum)
	}
	return failure
}

// loadTimeout bounds gate and compilation outside a run.
const loadTimeout = 15 * time.Second

// Load gates and compiles the program in a runner and keeps it warm for the owner. The facts are nil if it fails. It
// may be called concurrently.
func (p *Pool) Load(ctx context.Context, prog Program, owner agent.Owner) (*report.Facts, *Failure) {
	// Depth 1 admits it as part of a call, which runs no program meanwhile, or of an operator's request. Without
	// admission, programs that arrive from a model together would be compiled together, and calls of warm programs
	// would wait for the processor.
	req := &Request{Owner: owner, Depth: 1}
	if err := p.admission.enter(ctx, req); err != nil {
		return nil, keptWaiting(ctx)
	}
	defer p.admission.leave(req)
	r, _, failure := p.prepare(ctx, prog, owner, &limit{length: loadTimeout}, nil)
	if failure != nil {
		return nil, failure
	}
	_, held, _ := r.resident()
	p.keep(r, time.Now(), held) // also in isolation "call": it has not run anything yet
	return r.facts, nil
}
