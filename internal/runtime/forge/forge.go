package forge

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A Forger obtains programs for the calls and the corrections of a namespace. It holds what these share: requests under
// way, and the delays after failures.
type Forger struct {
	Backoffs

	life    context.Context // of the flights, which outlive the calls that started them
	flights flights
}

// New returns a Forger whose requests end with life.
func New(life context.Context) *Forger { return &Forger{life: life} }

// UnderWay reports whether a program is being forged, or runs before it is stored.
func (f *Forger) UnderWay() bool { return f.flights.underWay() }

// Wait waits until no program is being forged.
func (f *Forger) Wait() { f.flights.under.Wait() }

// Forged is what came of a request: a candidate or the failure, and what it cost the call.
type Forged struct {
	Candidate *Candidate
	Held      bool           // an earlier call left the candidate
	Failure   *agent.Outcome // set if there is no candidate
	Class     agent.Class    // of the failure
	Refused   string         // checksum of the last program that the gate refused
	Slow      bool           // the model delivered no program in its share of the call's time

	Attempts []agent.AttemptFailure // programs that the gate refused
	Repairs  []Repairs
	Cost     Cost
	Took     time.Duration
	// Leaves must be called once the candidate is stored, or not needed any more: until then, other calls may join the
	// flights.
	Leaves []func()
}

// Repairs are requests of one flight for the repair of a program, new or stored. All but the last have failed.
type Repairs struct {
	Count  int
	Shared bool // another call requested them, and counts them
}

// Cost is what the requests of a call have cost. A call that joins another's flight has no cost.
type Cost struct {
	Usage        agent.Usage
	Requested    int           // programs requested
	Guardrails   int           // retries used
	Repeated     int           // programs requested without using a retry
	Gated        time.Duration // time spent parsing, checking and compiling
	Built        time.Duration // part of Gated: time spent waiting for the compiler
	System, User string        // the last prompt; "" if there was none
	Tools        []string      // roles of the known tools in the last prompt
}

// Forge returns a candidate: one that an earlier call left, or one from a flight, which may be another call's. It waits
// for the model no longer than the call's time for it.
func (f *Forger) Forge(ctx context.Context, q Request) (out Forged) {
	if out.Candidate = f.held(&q); out.Candidate != nil {
		out.Held = true
		return out
	}
	c := q.For
	if q.Kind == provider.KindForge && q.Predecessor != nil {
		c.Env.Metrics.ObserveRegeneration()
	}
	began := c.Env.Now()
	span := c.Span.Begin("forge", began)
	span.Note("recurgent.trigger", q.Trigger)
	defer func() {
		ended := c.Env.Now()
		out.Took = ended.Sub(began)
		span.End(ended)
	}()
	for {
		res, leader, ok := f.flyInShare(ctx, &q, span, &out)
		leads := leader && !res.Foreign
		out.noteRepairs(&q, &res, !leads)
		switch {
		case !ok && leader:
			out.Cost.Usage.Add(res.Usage)
			fallthrough
		case !ok:
			out.Failure, out.Class, out.Slow = unwaited(ctx)
			return out
		case leader:
			out.Cost.Add(costOf(&res))
		}
		if !leads {
			res = res.seenBy(c.Owner, c.ID)
			span.Note("recurgent.forge", "shared")
		}
		if !leads && !q.Alone && res.Candidate != nil && !res.Candidate.Generation.Cacheable {
			q.Alone = true // the shared program answers another question
			continue
		}
		out.Attempts = append(out.Attempts, res.Attempts...)
		if !leads && !q.Alone && CapOfOwner(res.Failure) {
			q.Alone = true // another owner's cap or share was used up
			continue
		}
		if out.Candidate = res.Candidate; out.Candidate == nil {
			out.Failure, out.Class, out.Refused = res.Failure, res.Class, res.Last
		}
		return out
	}
}

// noteRepairs records the repairs that a flight requested: of failed programs and of programs that the gate refused.
func (out *Forged) noteRepairs(q *Request, res *flightResult, shared bool) {
	n := res.Guardrails + res.Repeated
	if q.Kind == provider.KindRepair {
		n++
	}
	if n > 0 {
		out.Repairs = append(out.Repairs, Repairs{n, shared})
	}
}

// costOf returns the cost of a flight to the call that started it.
func costOf(res *flightResult) *Cost {
	return &Cost{res.Usage, res.Requested, res.Guardrails, res.Repeated, res.Gated, res.Built, res.System, res.User,
		res.Tools}
}

// Add adds the cost of another request.
func (t *Cost) Add(more *Cost) {
	t.Usage.Add(more.Usage)
	t.Requested += more.Requested
	t.Guardrails += more.Guardrails
	t.Repeated += more.Repeated
	t.Gated += more.Gated
	t.Built += more.Built
	if more.System != "" {
		t.System, t.User, t.Tools = more.System, more.User, more.Tools
	}
}

// flyInShare is fly, limited to the model's share of the call's time.
func (f *Forger) flyInShare(ctx context.Context, q *Request, span *telemetry.Span,
	out *Forged) (res flightResult, leader, ok bool) {
	left := q.For.Deadline.Sub(q.For.Env.Now())
	if reserve := q.For.Reserve(left); reserve > 0 {
		share, end := context.WithTimeoutCause(ctx, left-reserve, interrupt.ErrCallTimeout)
		defer end()
		ctx = share
	}
	return f.fly(ctx, q, span, out)
}

// fly joins or starts the flight for the request and waits for its result. If ctx ends first, ok is false and res has
// the usage so far.
func (f *Forger) fly(ctx context.Context, q *Request, span *telemetry.Span,
	out *Forged) (res flightResult, leader, ok bool) {
	c := q.For
	key := flightKey(q)
	c.Progress.Add(progress.Forging, map[string]any{"kind": q.Kind, "trigger": q.Trigger})
	c.Tree.Written.Store(true)
	w := writer{Selection: *c, backoffs: &f.Backoffs, guardrails: q.Guardrails - out.Cost.Guardrails,
		earlier: AppendFailures(q.Earlier[:len(q.Earlier):len(q.Earlier)], out.Attempts), forgeSpan: span,
		result: flightResult{Owner: c.Owner}}
	wanted := *q
	fl, leader, leave := f.flights.join(f.lifeFor(ctx), key, func(fctx context.Context, spent *meter) flightResult {
		w.spent = spent
		if c.Env.Shared && !wanted.Alone {
			return w.writeShared(fctx, SharedKey(&wanted), wanted)
		}
		return w.write(fctx, wanted)
	})
	out.Leaves = append(out.Leaves, leave)
	if res, ok = fl.wait(ctx); !ok {
		res.Usage = fl.spent.read()
	}
	return res, leader, ok
}

// lifeFor returns the lifetime of a flight that starts on behalf of ctx. It is marked as background work if ctx is.
func (f *Forger) lifeFor(ctx context.Context) context.Context {
	if sandbox.InBackground(ctx) {
		return sandbox.Background(f.life)
	}
	return f.life
}

// flightKey identifies the flight for requests that one program serves.
func flightKey(q *Request) string {
	c := q.For
	key := c.Role + "\x00" + c.Method + "\x00" + c.Terms.Checked + "\x00" + q.Kind + "\x00" + q.Basis.Checksum
	if c.Rewrites() {
		key += "\x00" + string(c.Terms.RegisteredWords())
	}
	if q.Alone {
		key += "\x00" + c.ID
	}
	return key
}

// unwaited returns the failure if the call's time, or the model's share of it, ended before the model delivered a
// program. slow reports that it was the share.
func unwaited(ctx context.Context) (failure *agent.Outcome, class agent.Class, slow bool) {
	if ctx.Err() == nil {
		out := agent.Failed(agent.ErrTimeout, "the model gave no program in the time that the call leaves it")
		out.Retriable = true
		return &out, agent.ClassExtrinsic, true
	}
	out, class := interrupt.Outcome(ctx)
	return &out, class, false
}

// held returns the candidate that an earlier call left for the length of the delay, or as the answer, and nil
// otherwise. The candidate must fit the request, the method's registered wording must not have changed, and its proof
// must still hold.
func (f *Forger) held(q *Request) *Candidate {
	if q.Alone || q.Unheld {
		return nil
	}
	c := q.For
	cand := f.Held(KeyOf(c), c.Terms.Fingerprint, c.Env.Now())
	if cand == nil || cand.Generation.Reworded(c.Terms.RegisteredWords()) ||
		idOf(cand.Predecessor) != idOf(q.Predecessor) || cand.Generation.CodeChecksum == q.Basis.Checksum ||
		!cand.Holds(c.Artifact) {
		return nil
	}
	return cand
}

// idOf returns the generation's ID, or "" for nil.
func idOf(g *agent.Generation) string {
	if g == nil {
		return ""
	}
	return g.ID
}

// MaxFailures bounds the failed attempts that a call keeps.
const MaxFailures = 8

// AppendFailures appends failures up to MaxFailures in all.
func AppendFailures(to, more []agent.AttemptFailure) []agent.AttemptFailure {
	return append(to, more[:min(len(more), max(0, MaxFailures-len(to)))]...)
}

// Waits returns the delay during which the call must not forge. It returns false if there is none, or if a held
// candidate may run. The delay after a call that got no program does not apply to one that gives the model at least
// twice as long.
func (f *Forger) Waits(s *call.Selection) (Backoff, bool) {
	if s.Alone() {
		return Backoff{}, false
	}
	wait, yes := f.Waiting(KeyOf(s), s.Env.Now())
	outwaits := wait.Waited > 0 && s.Patience() >= 2*wait.Waited
	return wait, yes && wait.Candidate == nil && !outwaits
}
