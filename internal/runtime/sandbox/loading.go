package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// prepare returns a runner that has compiled the program, and how long starting and gating took. The host, which may be nil, hears of a wait for the compiler.
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

// load has the runner gate and compile the program, or ends it.
func (p *Pool) load(ctx context.Context, r *runner, prog Program, owner agent.Owner, deadline time.Time) *Failure {
	stop := context.AfterFunc(ctx, r.interrupt)
	failure := r.load(ctx, prog, owner, deadline)
	if !stop() && failure == nil {
		failure = keptWaiting(ctx)
	}
	if failure != nil {
		r.kill("refused") // counts only when nothing else has killed it
		p.noteFault(failure, prog.Checksum)
	}
	return failure
}

// loadTimeout bounds gate and compilation where no run bounds them.
const loadTimeout = 15 * time.Second

// Load has a runner gate and compile the program and keeps that runner warm for it and the owner.
func (p *Pool) Load(ctx context.Context, prog Program, owner agent.Owner) (*report.Facts, *Failure) {
	// Part of a call, which runs no program meanwhile, or of an operator's request. Many programs that come of a model at once
	// would otherwise be compiled at once, and whoever calls a warm one waited for the processor.
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
	p.keep(r, time.Now(), held) // in isolation "call" too: it has run nothing yet
	return r.facts, nil
}
