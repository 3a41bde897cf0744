package runtime

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// obtain returns a candidate: one held from an earlier call, or one from a flight, which may be another call's. If
// there is none, it returns nil and the outcome.
func (rec *recovery) obtain(ctx context.Context, q forgeRequest) (*candidate, *agent.Outcome) {
	if held := rec.heldCandidate(q); held != nil {
		return held, nil
	}
	if q.kind == provider.KindForge && q.predecessor != nil {
		rec.r.metrics.ObserveRegeneration()
	}
	began := rec.r.o.Now()
	span := rec.span.Begin("forge", began)
	span.Note("recurgent.trigger", q.trigger)
	defer func() {
		ended := rec.r.o.Now()
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
			res = res.seenBy(rec.owner, rec.id)
			span.Note("recurgent.forge", "shared")
		}
		if !leader && !q.alone && res.candidate != nil && !res.candidate.generation.Cacheable {
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
		rec.r.metrics.ObserveRepair(ok)
	}
}

// fly joins or starts the flight for the request and waits for its result. If ctx ends first, ok is false and res has
// the usage so far.
func (rec *recovery) fly(ctx context.Context, q forgeRequest, span *telemetry.Span) (res forgeResult, leader, ok bool) {
	key := flightKey(rec.role, rec.method, rec.terms.checked, q)
	if rec.rewrites() {
		key += "\x00" + string(rec.terms.registeredWords())
	}
	if q.alone {
		key += "\x00" + rec.id
	}
	rec.progress.Add(progress.Forging, map[string]any{"kind": q.kind, "trigger": q.trigger})
	rec.tree.written.Store(true)
	w := writer{selected: rec.selected, guardrails: rec.budgets.guardrail, earlier: rec.trail.failures, span: span,
		res: forgeResult{owner: rec.owner}}
	fl, leader, leave := rec.r.flights.join(rec.r.lifeFor(ctx), key,
		func(fctx context.Context, spent *meter) forgeResult {
			w.spent = spent
			if rec.r.o.Shared && !q.alone {
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

// A writer asks the model for programs in a flight. It works on a copy of its call's selection, because the flight may
// outlive the call.
type writer struct {
	selected
	guardrails int                    // retries left
	taught     faults                 // faults of the refused programs
	earlier    []agent.AttemptFailure // earlier failures, shown to the model
	span       *telemetry.Span        // span of the forge
	spent      *meter
	reply      provider.Reply // the reply that became the candidate
	spare      *candidate     // a program whose interface was refused; nil if there is none
	spareReply provider.Reply // the reply that became the spare
	res        forgeResult
}

// write asks the model until a program compiles or the budgets are used up.
func (w *writer) write(ctx context.Context, q forgeRequest) forgeResult {
	// A flight that just ended may have stored the program that this call needs.
	if (q.predecessor == nil || q.recheck) && q.kind == provider.KindForge {
		if a := w.storedMeanwhile(ctx); a != nil {
			w.res.candidate = &candidate{existing: a, generation: agent.Generation{Cacheable: true}}
			return w.res
		}
	}
	// Check for room before asking: a program that cannot be stored is not worth its tokens.
	if full := w.roomForProgram(ctx); full != nil {
		w.res.failure, w.res.class = full, agent.ClassExtrinsic
		return w.res
	}
	w.before = w.reachBefore(ctx, q.predecessor)
	for {
		reply, err := w.answer(ctx, q)
		switch {
		case err != nil && w.spare != nil && ctx.Err() == nil:
			w.res.candidate, w.reply = w.spare, w.spareReply
			return w.res
		case err != nil:
			w.res.failure, w.res.class = unanswered(ctx, err)
			return w.res
		case reply.Unchanged:
			w.res.candidate, w.reply = w.rechecked(q, w.r.o.Now()), reply
			return w.res
		}
		program, facts, refused := w.gate(ctx, q, reply)
		// the model kept the program by repeating it
		if refused == nil && q.mayKeep() && program.Checksum == q.predecessor.CodeChecksum {
			w.reply = provider.Reply{Unchanged: true, Model: reply.Model}
			w.res.candidate = w.rechecked(q, w.r.o.Now())
			return w.res
		}
		var takes *agent.Interface
		if refused == nil {
			if takes, refused = w.describe(q, reply, facts, true); refused == nil {
				w.res.candidate, w.reply = w.candidate(q, reply, program, facts, takes), reply
				return w.res
			}
			w.spares(q, reply, program, facts)
		}
		next, more := w.refused(ctx, q, program, refused)
		if !more {
			return w.res
		}
		q = next
	}
}

// spares keeps a program that is correct but for its interface. It is the candidate, as after the last retry, if the
// model does not answer the request to repair it: a correct program is not given up for its description.
func (w *writer) spares(q forgeRequest, reply provider.Reply, p sandbox.Program, facts *report.Facts) {
	last := *w
	last.guardrails = 0
	if takes, refused := last.describe(q, reply, facts, true); refused == nil {
		w.spare, w.spareReply = w.candidate(q, reply, p, facts, takes), reply
	}
}

// gate fixes and checks the program that the model wrote, and returns the fixed program.
func (w *writer) gate(ctx context.Context, q forgeRequest,
	reply provider.Reply) (sandbox.Program, *report.Facts, *sandbox.Failure) {
	w.progress.Add(progress.Gate, map[string]any{"kind": q.kind, "checksum": agent.Checksum(reply.Code)})
	began := w.r.o.Now()
	program, facts, took, refused := w.r.box.Fix(ctx, reply.Code, w.fixTerms(reply.Declaration), w.r.Owner(w.owner))
	ended := w.r.o.Now()
	w.res.gated += ended.Sub(began)
	w.res.built += took.Build
	w.span.Stage("gate", began, ended)
	return program, facts, refused
}

// refused records that the gate refused a program. It returns the request for its repair, and whether the budget allows
// one.
func (w *writer) refused(ctx context.Context, q forgeRequest, p sandbox.Program,
	why *sandbox.Failure) (forgeRequest, bool) {
	out := failed(why)
	if why.Ours || !refusal(why.Type) && ctx.Err() != nil {
		w.res.failure, w.res.class = &out, agent.ClassNone
		return q, false
	}
	j := judged{attempted: attempted{id: w.id + ".v"}, stage: stageValidation, outcome: out,
		class: agent.ClassIntrinsic, hint: w.mine(why.Hint)}
	w.res.attempts = append(w.res.attempts, agent.AttemptFailure{AttemptID: j.id, Stage: j.stage, ErrorType: why.Type,
		ErrorMessage: Clip(why.Message, 400), FailureClass: agent.ClassIntrinsic})
	w.r.metrics.Guardrail(why.Type)
	switch {
	case !w.taught.add(why.Message) && p.Checksum != q.basis.checksum && w.res.repeated < maxRepeated:
		w.res.repeated++
	case w.guardrails == 0:
		w.res.failure, w.res.class, w.res.last = &out, agent.ClassIntrinsic, p.Checksum
		return q, false
	default:
		w.guardrails--
		w.res.guardrails++
	}
	return forgeRequest{kind: provider.KindRepair, trigger: q.trigger, predecessor: q.predecessor,
		basis: failing{code: p.Source, checksum: p.Checksum,
			class: string(agent.ClassIntrinsic), reason: why.Type, attempt: j}}, true
}

// unanswered returns the outcome and class if the model delivered no program: an external source failed, or the call
// was ended.
func unanswered(ctx context.Context, err error) (*agent.Outcome, agent.Class) {
	var failed *provider.Error
	if ctx.Err() != nil && !errors.As(err, &failed) {
		out, class := interrupt.Outcome(ctx)
		return &out, class
	}
	class := agent.ClassExtrinsic
	out := agent.Failed(agent.ErrProvider, err.Error())
	if over := overCap(err); over != nil {
		return over, class
	}
	if errors.As(err, &failed) {
		out = agent.Failed(failed.Type, failed.Message)
		out.Retriable = !failed.Final()
	}
	if errors.Is(err, provider.ErrInvalidPayload) {
		class = agent.ClassIntrinsic // a reply without a program counts as a faulty program
	}
	return &out, class
}

// storedMeanwhile returns the artifact if another call has stored a program that fits this call since this call
// selected, or nil.
func (w *writer) storedMeanwhile(ctx context.Context) *agent.Artifact {
	a, err := w.r.store.Artifact(ctx, w.role, w.method)
	if err != nil {
		return nil // forge anyway: at worst, one program too many
	}
	if d := Select(w.input(a)); d.Decision == agent.DecideRun {
		return a
	}
	return nil
}

// checkedParts returns the machine-checked parts of the contract that the call brought, for later corrections of the
// program. It returns nil if the contract comes from the registry, or if the parts contain a secret.
func (c *selected) checkedParts() *agent.Contract {
	if !c.terms.own {
		return nil
	}
	parts := &agent.Contract{Deliverable: c.terms.contract.Deliverable, Signature: c.terms.contract.Signature}
	if _, secret := c.maskJSON(agent.Encoded(parts)); secret {
		return nil
	}
	return parts
}

// candidate returns the candidate with the generation that the program would become.
func (w *writer) candidate(q forgeRequest, reply provider.Reply, p sandbox.Program, facts *report.Facts,
	takes *agent.Interface) *candidate {
	g := agent.Generation{Trigger: q.trigger, Code: p.Source, CodeChecksum: p.Checksum, Dependencies: facts.Imports,
		ContractFingerprint: w.terms.fingerprint, CheckedFingerprint: w.terms.checked, CallersContract: w.terms.own,
		PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: reply.Model, Owner: w.owner, CreatedAt: w.r.o.Now(),
		Facts: EncodeFacts(facts, reply.Declaration.Unread(takes)...), SolverShape: reply.SolverShape, Interface: takes}
	g.Cacheable, g.CacheabilityReason = w.cacheability(facts, takes)
	g.MadeFor, g.Confirmed = w.madeFor(q.predecessor)
	g.Asked = w.checkedParts()
	cand := &candidate{generation: g, predecessor: q.predecessor, leader: w.id, reach: w.before,
		proof: proof{turn: make(chan struct{}, 1)}}
	cand.beyond.Store(w.before.beyond(&g))
	return cand
}
