package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// obtain returns a candidate: one held from an earlier call, or one from a flight, which may be another call's. If
// there is none, it returns nil and the outcome.
func (rec *recovery) obtain(ctx context.Context, q forge.Request) (*forge.Candidate, *agent.Outcome) {
	if held := rec.heldCandidate(q); held != nil {
		return held, nil
	}
	if q.Kind == provider.KindForge && q.Predecessor != nil {
		rec.Env.Metrics.ObserveRegeneration()
	}
	began := rec.Env.Now()
	span := rec.Span.Begin("forge", began)
	span.Note("recurgent.trigger", q.Trigger)
	defer func() {
		ended := rec.Env.Now()
		rec.stages.Forge += ended.Sub(began)
		span.End(ended)
	}()
	for {
		res, leader, ok := rec.flyInShare(ctx, q, span)
		rec.askedRepairs(q, res, leader && !res.Foreign)
		if !ok {
			if leader {
				rec.trail.usage.Add(res.Usage)
			}
			return nil, rec.unwaited(ctx)
		}
		if leader {
			rec.charge(res)
		}
		if leader = leader && !res.Foreign; !leader {
			res = res.SeenBy(rec.Owner, rec.ID)
			span.Note("recurgent.forge", "shared")
		}
		if !leader && !q.Alone && res.Candidate != nil && !res.Candidate.Generation.Cacheable {
			q.Alone = true // the shared program answers another question
			continue
		}
		rec.trail.failures = appendBounded(rec.trail.failures, res.Attempts)
		if !leader && !q.Alone && forge.CapOfOwner(res.Failure) {
			q.Alone = true // another owner's cap or share was used up
			continue
		}
		if res.Candidate == nil {
			if rec.class, rec.trail.refused = res.Class, res.Last; rec.class == agent.ClassIntrinsic {
				rec.repairEnded(false)
			}
			return nil, res.Failure
		}
		return res.Candidate, nil
	}
}

// askedRepairs records the repairs that a flight requested from the model: of failed programs, new or stored, and of
// programs that the gate refused. All but the last have failed.
func (rec *recovery) askedRepairs(q forge.Request, res forge.Result, leader bool) {
	n := res.Guardrails + res.Repeated
	if q.Kind == provider.KindRepair {
		n++
	}
	for range n {
		rec.repairEnded(false)
		rec.trail.repairAttempted, rec.trail.repairOpen, rec.trail.repairShared = true, true, !leader
	}
}

// repairEnded closes the open repair, if there is one. If calls share it, only the call that requested it counts it.
func (rec *recovery) repairEnded(ok bool) {
	t := &rec.trail
	if !t.repairOpen {
		return
	}
	if t.repairOpen, t.repairSucceeded = false, ok; !t.repairShared {
		rec.Env.Metrics.ObserveRepair(ok)
	}
}

// fly joins or starts the flight for the request and waits for its result. If ctx ends first, ok is false and res has
// the usage so far.
func (rec *recovery) fly(ctx context.Context, q forge.Request, span *telemetry.Span) (res forge.Result, leader,
	ok bool) {
	key := flightKey(rec.Role, rec.Method, rec.Terms.Checked, q)
	if rec.Rewrites() {
		key += "\x00" + string(rec.Terms.RegisteredWords())
	}
	if q.Alone {
		key += "\x00" + rec.ID
	}
	rec.Progress.Add(progress.Forging, map[string]any{"kind": q.Kind, "trigger": q.Trigger})
	rec.Tree.Written.Store(true)
	w := forge.Writer{Selection: rec.Selection, Backoffs: &rec.r.backoffs, Guardrails: rec.budgets.guardrail,
		Earlier: rec.trail.failures, ForgeSpan: span,
		Result: forge.Result{Owner: rec.Owner}}
	fl, leader, leave := rec.r.flights.Join(rec.r.lifeFor(ctx), key,
		func(fctx context.Context, spent *forge.Meter) forge.Result {
			w.Spent = spent
			if rec.Env.Shared && !q.Alone {
				return w.WriteShared(fctx, key, q)
			}
			return w.Write(fctx, q)
		})
	rec.leaves = append(rec.leaves, leave)
	if res, ok = fl.Wait(ctx); !ok {
		res.Usage = fl.Spent.Read()
	}
	return res, leader, ok
}

// flightKey identifies the flight for calls that need the same program.
func flightKey(role, method, checked string, q forge.Request) string {
	return role + "\x00" + method + "\x00" + checked + "\x00" + q.Kind + "\x00" + q.Basis.Checksum
}

// charge adds the flight's costs to the call that started it.
func (rec *recovery) charge(res forge.Result) {
	t := &rec.trail
	t.usage.Add(res.Usage)
	t.requested += res.Requested
	t.guardrails += res.Guardrails
	rec.stages.Gate += res.Gated
	t.gated += res.Gated
	t.built += res.Built
	rec.budgets.guardrail -= res.Guardrails
	if res.Guardrails+res.Repeated > 0 {
		t.feedback = true
	}
	if res.System != "" {
		t.system, t.user, t.tools = res.System, res.User, res.Tools
	}
}

// appendBounded appends failures up to maxAttemptFailures in all.
func appendBounded(to, more []agent.AttemptFailure) []agent.AttemptFailure {
	return append(to, more[:min(len(more), max(0, maxAttemptFailures-len(to)))]...)
}
