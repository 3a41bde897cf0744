package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// obtain returns a candidate: one held from an earlier call, or one from a flight, which may be another call's. If
// there is none, it returns nil and the outcome.
func (rec *recovery) obtain(ctx context.Context, q forgeRequest) (*candidate, *agent.Outcome) {
	if held := rec.heldCandidate(q); held != nil {
		return held, nil
	}
	if q.kind == provider.KindForge && q.predecessor != nil {
		rec.Env.Metrics.ObserveRegeneration()
	}
	began := rec.Env.Now()
	span := rec.Span.Begin("forge", began)
	span.Note("recurgent.trigger", q.trigger)
	defer func() {
		ended := rec.Env.Now()
		rec.stages.Forge += ended.Sub(began)
		span.End(ended)
	}()
	for {
		res, leader, ok := rec.flyInShare(ctx, q, span)
		rec.askedRepairs(q, res, leader && !res.foreign)
		if !ok {
			if leader {
				rec.trail.usage.Add(res.usage)
			}
			return nil, rec.unwaited(ctx)
		}
		if leader {
			rec.charge(res)
		}
		if leader = leader && !res.foreign; !leader {
			res = res.seenBy(rec.Owner, rec.ID)
			span.Note("recurgent.forge", "shared")
		}
		if !leader && !q.alone && res.candidate != nil && !res.candidate.Generation.Cacheable {
			q.alone = true // the shared program answers another question
			continue
		}
		rec.trail.failures = appendBounded(rec.trail.failures, res.attempts)
		if !leader && !q.alone && capOfOwner(res.failure) {
			q.alone = true // another owner's cap or share was used up
			continue
		}
		if res.candidate == nil {
			if rec.class, rec.trail.refused = res.class, res.last; rec.class == agent.ClassIntrinsic {
				rec.repairEnded(false)
			}
			return nil, res.failure
		}
		return res.candidate, nil
	}
}

// askedRepairs records the repairs that a flight requested from the model: of failed programs, new or stored, and of
// programs that the gate refused. All but the last have failed.
func (rec *recovery) askedRepairs(q forgeRequest, res forgeResult, leader bool) {
	n := res.guardrails + res.repeated
	if q.kind == provider.KindRepair {
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
func (rec *recovery) fly(ctx context.Context, q forgeRequest, span *telemetry.Span) (res forgeResult, leader, ok bool) {
	key := flightKey(rec.Role, rec.Method, rec.Terms.Checked, q)
	if rec.Rewrites() {
		key += "\x00" + string(rec.Terms.RegisteredWords())
	}
	if q.alone {
		key += "\x00" + rec.ID
	}
	rec.Progress.Add(progress.Forging, map[string]any{"kind": q.kind, "trigger": q.trigger})
	rec.Tree.Written.Store(true)
	w := writer{Selection: rec.Selection, backoffs: &rec.r.backoffs, guardrails: rec.budgets.guardrail,
		earlier: rec.trail.failures, span: span,
		res: forgeResult{owner: rec.Owner}}
	fl, leader, leave := rec.r.flights.join(rec.r.lifeFor(ctx), key,
		func(fctx context.Context, spent *meter) forgeResult {
			w.spent = spent
			if rec.Env.Shared && !q.alone {
				return w.writeShared(fctx, key, q)
			}
			return w.write(fctx, q)
		})
	rec.leaves = append(rec.leaves, leave)
	if res, ok = fl.wait(ctx); !ok {
		res.usage = fl.spent.read()
	}
	return res, leader, ok
}

// flightKey identifies the flight for calls that need the same program.
func flightKey(role, method, checked string, q forgeRequest) string {
	return role + "\x00" + method + "\x00" + checked + "\x00" + q.kind + "\x00" + q.basis.checksum
}

// charge adds the flight's costs to the call that started it.
func (rec *recovery) charge(res forgeResult) {
	t := &rec.trail
	t.usage.Add(res.usage)
	t.requested += res.requested
	t.guardrails += res.guardrails
	rec.stages.Gate += res.gated
	t.gated += res.gated
	t.built += res.built
	rec.budgets.guardrail -= res.guardrails
	if res.guardrails+res.repeated > 0 {
		t.feedback = true
	}
	if res.system != "" {
		t.system, t.user, t.tools = res.system, res.user, res.tools
	}
}

// appendBounded appends failures up to maxAttemptFailures in all.
func appendBounded(to, more []agent.AttemptFailure) []agent.AttemptFailure {
	return append(to, more[:min(len(more), max(0, maxAttemptFailures-len(to)))]...)
}
