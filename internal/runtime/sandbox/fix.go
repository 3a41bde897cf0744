package sandbox

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Fix repairs source in a runner, gates and compiles the result, and keeps the process that runs it warm, as Load does.
func (p *Pool) Fix(ctx context.Context, source string, t report.Terms,
	owner agent.Owner) (fixed Program, facts *report.Facts, took Timing, failure *Failure) {
	prog := Program{Source: source, Checksum: agent.Checksum(source)}
	if len(source) > p.opts.MaxSource {
		facts, failure = p.Load(ctx, prog, owner) // Load refuses it with the reason
		return prog, facts, took, failure
	}
	req := &Request{Owner: owner, Depth: 1} // admitted like Load
	if err := p.admission.enter(ctx, req); err != nil {
		return prog, nil, took, keptWaiting(ctx)
	}
	defer p.admission.leave(req)
	r, failure := p.takeBlank(ctx)
	if failure != nil {
		return prog, nil, took, failure
	}
	deadline := time.Now().Add(loadTimeout)
	stop := context.AfterFunc(ctx, r.interrupt)
	m, failure := r.fix(ctx, source, t, deadline)
	if !stop() && failure == nil {
		failure = keptWaiting(ctx)
	}
	if failure != nil {
		r.kill("refused")
		return prog, nil, took, failure
	}
	if len(m.Fixes) > 0 {
		prog = Program{Source: m.Text, Checksum: agent.Checksum(m.Text)}
	}
	way := making{pool: p, program: prog, owner: owner, by: r, against: m.Refusal()}
	if r, failure = way.loadFixed(ctx, deadline); failure != nil {
		return prog, nil, way.timing, failure
	}
	own := *r.facts // a copy: the facts of an executable are shared
	for _, one := range m.Fixes {
		own.Fixes = append(own.Fixes, one.String())
	}
	r.facts = &own
	_, held, _ := r.resident()
	p.keep(r, time.Now(), held)
	return prog, &own, way.timing, nil
}

// loadFixed returns a process that has loaded the fixed program, or the refusal in m.against once the program is known
// to compile.
func (m *making) loadFixed(ctx context.Context, deadline time.Time) (*runner, *Failure) {
	if m.pool.compiler != nil {
		return m.process(ctx)
	}
	failure := m.pool.load(ctx, m.by, m.program, m.owner, deadline)
	if failure == nil && m.against != nil {
		m.by.kill("refused")
		failure = refused(m.against)
	}
	return m.by, failure
}

// fix sends the source to the runner and returns the repaired text.
func (r *runner) fix(ctx context.Context, source string, t report.Terms, deadline time.Time) (wire.Fixed, *Failure) {
	r.arm(ctx, deadline)
	if err := (&wire.Fix{Source: source, Terms: t}).Put(&r.wr); err != nil {
		return wire.Fixed{}, r.fault(ctx, err, "")
	}
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		return wire.Fixed{}, r.fault(ctx, err, "")
	}
	r.wr.Shrink()
	kind, payload, err := r.rd.Next(wire.MaxFixed)
	if err != nil {
		return wire.Fixed{}, r.fault(ctx, err, "")
	}
	m, err := wire.ParseFixed(payload, r.opts.MaxSource)
	if kind != wire.KindFixed || r.rd.Buffered() || err != nil {
		return wire.Fixed{}, r.fault(ctx, wire.ErrFrame, "")
	}
	return m, nil
}
