package runtime

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// failing is what a model is told of the program that it shall mend.
type failing struct {
	code, checksum string
	class          string // intrinsic, adaptive, stale, degraded
	reason         string // of the trigger: an error type or a selection's reason
	message        string
	attempt        attempt // zero when nothing ran
}

func (f failing) text() string {
	text := f.message
	if text == "" {
		text = f.attempt.outcome.ErrorType + ": " + f.attempt.outcome.ErrorMessage
	}
	if f.attempt.hint != "" {
		text += "\n" + f.attempt.hint
	}
	return text
}

// order is what a flight is to bring: a program of that kind, for that reason.
type order struct {
	kind        string // provider.KindForge or KindRepair
	trigger     string
	basis       failing           // of a repair
	predecessor *agent.Generation // what the program would replace; nil for the first one
	alone       bool              // not shared with other calls
}

// budgetExhausted is the trigger of a program that takes the place of one which was repaired often enough.
const budgetExhausted = "regenerate:budget_exhausted"

// forgeTrigger names why a program is written anew. A generation that would have been repaired first, had its budget not
// been spent, says so.
func forgeTrigger(a *agent.Artifact, p *agent.Policy, reason string) string {
	switch {
	case a == nil || len(a.Generations) == 0:
		return "initial_forge"
	case reason == ReasonRequested:
		return "regenerate:" + a.ForceRegenerate
	case mendable(reason) && p.RepairEnabled && a.RepairCountSinceRegen >= p.MaxRepairsBeforeRegen:
		return budgetExhausted
	}
	return "regenerate:" + reason
}

// mend has the generation repaired. A repair that does not serve goes on to a new program in the same call.
func (c *call) mend(ctx context.Context, g *agent.Generation, why failing) agent.Outcome {
	c.found.repairAttempted = true
	trigger := "repair:" + why.reason
	cand, out := c.obtain(ctx, order{kind: provider.KindRepair, trigger: trigger, basis: why, predecessor: g})
	if cand == nil {
		return c.noRepair(ctx, g, why, out)
	}
	if c.p.ApprovalRequired {
		return c.keepUnapproved(cand)
	}
	a := c.tryCandidate(ctx, cand)
	c.serveCandidate(agent.SourceRepaired, cand, a)
	if a.served() {
		return c.settleRepair(cand, a)
	}
	c.note(a)
	c.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, a})
	return c.replace(ctx, g, "regenerate:repair_failed", a)
}

// settleRepair keeps a repair that served. An honest error of a program that proved nothing is no proof of having been
// mended: the predecessor stays, and a repair is spent, so that the budget bounds the chain (P-61). An outage or an
// interruption teaches nothing.
func (c *call) settleRepair(cand *candidate, a attempt) agent.Outcome {
	o := c.settle(cand, a)
	c.found.repairSucceeded = c.adopting != nil
	if c.found.repairSucceeded {
		c.r.metrics.ObserveRepair(true)
	} else if a.class == agent.ClassAuthored {
		c.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, a})
	}
	return o
}

// noRepair ends or goes on when no repaired program could be had: a dead provider or an interruption ends the call, for
// it teaches nothing; refused programs are a failed repair.
func (c *call) noRepair(ctx context.Context, g *agent.Generation, why failing, out *agent.Outcome) agent.Outcome {
	if c.found.class != agent.ClassIntrinsic {
		if why.attempt.id != "" && out.ErrorType == agent.ErrProvider {
			o := c.keep(why.attempt)
			o.Metadata = with(o.Metadata, "repair_error", out.ErrorMessage)
			return o
		}
		return *out
	}
	c.repairFailed(rejected{"repair:" + why.reason, c.found.refused, attempt{stage: stageValidation, outcome: *out}})
	return c.replace(ctx, g, "regenerate:repair_failed", why.attempt)
}

// rejected is a program that was written in the place of a generation and does not get it, and the attempt that showed why.
type rejected struct {
	trigger, checksum string
	attempt           attempt
}

// reject notes the program with its artifact, where there is one.
func (c *call) reject(r rejected, repairFailed bool) {
	if c.artifact == nil {
		return
	}
	o := r.attempt.outcome
	change := agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, RepairFailed: repairFailed, Rejected: &agent.Rejection{At: c.started,
		CallID: c.id, Trigger: r.trigger, CodeChecksum: r.checksum, Stage: r.attempt.stage, Reason: clip(o.ErrorType+": "+o.ErrorMessage, 400), Fixture: brokenFixture(r.attempt)}}
	if policyBreach(o.ErrorType) {
		change.ErrorType = agent.ErrGuardrailExhausted // the promotion gates look at it
	}
	c.changes = append(c.changes, change)
}

func (c *call) repairFailed(r rejected) {
	c.r.metrics.ObserveRepair(false)
	c.reject(r, true)
}

// replace forges a program in the place of a generation that could not be mended.
func (c *call) replace(ctx context.Context, g *agent.Generation, trigger string, last attempt) agent.Outcome {
	if last.outcome.ErrorType != "" {
		c.found.feedback = true
	}
	return c.forge(ctx, g, trigger)
}

// forge has a model write a program anew and runs it. A program that fails is mended within this call's budgets.
func (c *call) forge(ctx context.Context, predecessor *agent.Generation, trigger string) agent.Outcome {
	if predecessor != nil {
		c.r.metrics.ObserveRegeneration()
	}
	o := order{kind: provider.KindForge, trigger: trigger, predecessor: predecessor, alone: c.alone()}
	for {
		cand, out := c.obtain(ctx, o)
		if cand == nil {
			if c.found.class == agent.ClassIntrinsic {
				refused := attempt{stage: stageValidation, outcome: *out}
				c.reject(rejected{trigger, c.found.refused, refused}, false)
				return c.exhausted(refused)
			}
			return *out
		}
		if cand.existing != nil {
			c.artifact = cand.existing
			c.selectProgram() // this call may have arguments that the other one had not
			return c.follow(ctx)
		}
		if c.p.ApprovalRequired {
			return c.keepUnapproved(cand)
		}
		a := c.tryCandidate(ctx, cand)
		c.serveCandidate(agent.SourceGenerated, cand, a)
		if a.served() {
			return c.settle(cand, a)
		}
		c.note(a)
		c.reject(rejected{trigger, cand.generation.CodeChecksum, a}, false)
		if !c.spend(a.stage) {
			c.exhaustedRepairs(a.stage)
			c.keep(a)
			return c.exhausted(a)
		}
		c.found.feedback = true
		o = order{kind: provider.KindRepair, trigger: trigger, predecessor: predecessor, alone: o.alone, basis: failing{code: cand.generation.Code,
			checksum: cand.generation.CodeChecksum, class: string(a.class), reason: a.outcome.ErrorType, attempt: a}}
	}
}

// spend takes one recovery of the attempt's lane, if there is one left.
func (c *call) spend(stage string) bool {
	left, used := &c.budgets.execution, &c.found.executionRepairs
	if stage == stageOutcome || stage == stageProof {
		left, used = &c.budgets.outcome, &c.found.outcomeRepairs
	}
	if *left == 0 {
		return false
	}
	*left--
	*used++
	return true
}

// exhaustedRepairs tells the artifact's scorecard that a value could not be mended within the call.
func (c *call) exhaustedRepairs(stage string) {
	if c.artifact != nil && stage == stageOutcome {
		c.changes = append(c.changes, agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, ErrorType: agent.ErrOutcomeRepairExhausted})
	}
}

// alone reports whether the program is for this call only: a switch demands a new one each time, or the method's
// programs answer one question.
func (c *call) alone() bool {
	switch c.decision.Reason {
	case ReasonDispatch, ReasonForced, ReasonReadDisabled, ReasonNotCanary, ReasonNotCacheable, ReasonQuarantined:
		return true
	}
	return c.dispatch()
}

// keepUnapproved stores the candidate without running it: a person has to approve it first.
func (c *call) keepUnapproved(cand *candidate) agent.Outcome {
	if c.artifact != nil && (c.artifact.Quarantined || c.artifact.Pinned) {
		return c.waitsForApproval() // a person holds the artifact as it is
	}
	c.adopting = &adoption{candidate: cand, result: agent.ClassNone}
	return c.waitsForApproval()
}

// settle keeps a candidate that served, where it may be kept, and answers the call with its outcome.
func (c *call) settle(cand *candidate, a attempt) agent.Outcome {
	proven := len(cand.proof.kept) > 0
	switch {
	case c.artifact != nil && (c.artifact.Quarantined || c.artifact.Pinned):
		// a person holds the artifact as it is
	case a.class == agent.ClassOK,
		a.class == agent.ClassAuthored && (a.outcome.ErrorType == agent.ErrInvalidInput || proven):
		c.adopting = &adoption{candidate: cand, result: a.class, attempt: a}
	}
	return c.keep(a)
}

// obtain gets a candidate from a flight of its own or one that other calls started; nil with the outcome when none
// could be had.
func (c *call) obtain(ctx context.Context, o order) (*candidate, *agent.Outcome) {
	began := c.r.o.Now()
	span := c.span.Begin("forge", began)
	span.Note("recurgent.trigger", o.trigger)
	defer func() {
		ended := c.r.o.Now()
		c.stages.Forge += ended.Sub(began)
		span.End(ended)
	}()
	for {
		key := c.role + "\x00" + c.method + "\x00" + c.checked + "\x00" + o.kind + "\x00" + o.basis.checksum
		if o.alone {
			key += "\x00" + c.id
		}
		left := c.budgets.guardrail
		c.progress.tell(EventForging, map[string]any{"kind": o.kind, "trigger": o.trigger})
		notes := c.found.attemptFailures
		fl, leader, leave := c.r.flights.join(c.r.life, key, func(fctx context.Context) forgeResult { return c.write(fctx, o, left, notes, span) })
		c.leaves = append(c.leaves, leave)
		res, ok := fl.wait(ctx)
		if !ok {
			out := c.cut(ctx)
			return nil, &out
		}
		if leader {
			c.charge(res)
		} else {
			span.Note("recurgent.forge", "shared")
		}
		if !leader && !o.alone && res.candidate != nil && !res.candidate.generation.Cacheable {
			o.alone = true // it answers another question
			continue
		}
		c.found.attemptFailures = appendBounded(c.found.attemptFailures, res.attempts)
		if res.candidate == nil {
			c.found.class, c.found.refused = res.class, res.last
			return nil, res.failure
		}
		return res.candidate, nil
	}
}

// charge takes what a flight cost onto the call that began it.
func (c *call) charge(res forgeResult) {
	c.found.usage.Add(res.usage)
	c.found.requested += res.requested
	c.found.guardrails += res.guardrails
	c.stages.Gate += res.gated
	c.budgets.guardrail -= res.guardrails
	if res.guardrails > 0 {
		c.found.feedback = true
	}
	if res.system != "" {
		c.found.system, c.found.user = res.system, res.user
	}
}

// maxAttemptFailures bounds what a call's log entry tells of programs that did not serve.
const maxAttemptFailures = 8

func appendBounded(to, more []agent.AttemptFailure) []agent.AttemptFailure {
	return append(to, more[:min(len(more), max(0, maxAttemptFailures-len(to)))]...)
}

// write asks the model until a program compiles or the budgets end. It runs in a flight: it must not touch what its
// call changes. What it does is told below span.
func (c *call) write(ctx context.Context, o order, guardrails int, earlier []agent.AttemptFailure, span *telemetry.Span) forgeResult {
	var res forgeResult
	if o.predecessor == nil && o.kind == provider.KindForge {
		if a := c.storedMeanwhile(ctx); a != nil {
			res.candidate = &candidate{existing: a, generation: agent.Generation{Cacheable: true}}
			return res
		}
	}
	for {
		messages := c.prompt(ctx, o, append(earlier[:len(earlier):len(earlier)], res.attempts...))
		res.system, res.user = promptTexts(messages)
		reply, err := c.ask(ctx, o.kind, messages, &res, span)
		if err != nil {
			res.failure, res.class = c.unanswered(ctx, err)
			return res
		}
		checksum := agent.Checksum(reply.Code)
		c.progress.tell(EventGate, map[string]any{"kind": o.kind, "checksum": checksum})
		began := c.r.o.Now()
		facts, refused := c.r.box.Load(ctx, sandbox.Program{Source: reply.Code, Checksum: checksum}, c.owner)
		ended := c.r.o.Now()
		res.gated += ended.Sub(began)
		span.Stage("gate", began, ended)
		if refused == nil {
			res.candidate = c.candidate(o, reply, checksum, facts)
			return res
		}
		a := attempt{id: c.id + ".v", stage: stageValidation, outcome: failed(refused), class: agent.ClassIntrinsic, hint: refused.Hint}
		if refused.Ours || !refusal(refused.Type) && ctx.Err() != nil {
			out := failed(refused)
			res.failure, res.class = &out, agent.ClassNone
			return res
		}
		res.attempts = append(res.attempts, agent.AttemptFailure{AttemptID: a.id, Stage: a.stage, ErrorType: refused.Type,
			ErrorMessage: clip(refused.Message, 400), FailureClass: agent.ClassIntrinsic})
		c.r.metrics.Guardrail(refused.Type)
		if guardrails == 0 {
			res.failure, res.class, res.last = &a.outcome, agent.ClassIntrinsic, checksum
			return res
		}
		guardrails--
		res.guardrails++
		o = order{kind: provider.KindRepair, trigger: o.trigger, predecessor: o.predecessor, basis: failing{code: reply.Code, checksum: checksum,
			class: string(agent.ClassIntrinsic), reason: refused.Type, attempt: a}}
	}
}

// ask has the model answer, again while its payload is blank or unreadable and the budget lasts.
func (c *call) ask(ctx context.Context, kind string, messages []provider.Message, res *forgeResult, span *telemetry.Span) (provider.Reply, error) {
	for try := 1; ; try++ {
		began := c.r.o.Now()
		question := span.Ask(c.model(), began)
		reply, err := c.r.model.Program(ctx, provider.Request{Kind: kind, Role: c.role, Method: c.method, Model: c.model(),
			Messages: messages, TraceParent: traceParent(question, c.traceID)})
		res.requested++
		outcome, usage := asked(err, reply.Usage)
		res.usage.Add(usage)
		ended := c.r.o.Now()
		question.Answered(outcome, reply.Model, usage, ended)
		c.r.metrics.ObserveProvider(outcome, ended.Sub(began), usage, c.traceID)
		if err == nil {
			return reply, nil
		}
		if !errors.Is(err, provider.ErrInvalidPayload) || try >= c.p.MaxGenerationAttempts {
			return provider.Reply{}, err
		}
		res.attempts = append(res.attempts, agent.AttemptFailure{AttemptID: c.id + ".p", Stage: stageValidation,
			ErrorType: agent.ErrInvalidCode, ErrorMessage: clip(err.Error(), 400)})
	}
}

// unanswered is the outcome when the model gave no program: the outside failed, or somebody ended the call.
func (c *call) unanswered(ctx context.Context, err error) (*agent.Outcome, agent.Class) {
	var failed *provider.Error
	if ctx.Err() != nil && !errors.As(err, &failed) {
		out, class := interrupted(ctx)
		return &out, class
	}
	class := agent.ClassExtrinsic
	out := agent.Failed(agent.ErrProvider, err.Error())
	if errors.As(err, &failed) {
		out = agent.Failed(failed.Type, failed.Message)
	}
	if errors.Is(err, provider.ErrInvalidPayload) {
		class = agent.ClassIntrinsic // an answer that is no program is the program's fault (decision 17)
	}
	return &out, class
}

// storedMeanwhile returns the artifact when another call stored one, fit for this call, since this one selected.
func (c *call) storedMeanwhile(ctx context.Context) *agent.Artifact {
	a, err := c.r.store.Artifact(ctx, c.role, c.method)
	if err != nil {
		return nil // the forge goes on: at the worst it is one too many
	}
	if d := Select(c.selectInput(a)); d.Decision == DecideRun {
		return a
	}
	return nil
}

// tryCandidate runs a candidate, once it has proved that it answers as its predecessor did.
func (c *call) tryCandidate(ctx context.Context, cand *candidate) attempt {
	if broken := c.prove(ctx, cand, c.drifted); broken != nil {
		return *broken
	}
	c.progress.tell(EventRunning, map[string]any{"trigger": cand.generation.Trigger, "checksum": cand.generation.CodeChecksum})
	return c.try(ctx, &cand.generation)
}

// candidate makes the generation that the program would become.
func (c *call) candidate(o order, reply provider.Reply, checksum string, facts *gate.Facts) *candidate {
	g := agent.Generation{Trigger: o.trigger, Code: reply.Code, CodeChecksum: checksum, Dependencies: facts.Imports,
		ContractFingerprint: c.fingerprint, CheckedFingerprint: c.checked, PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: reply.Model, CreatedAt: c.r.o.Now(), Facts: encodeFacts(facts), SolverShape: reply.SolverShape}
	g.Cacheable, g.CacheabilityReason = cacheability(c, facts)
	return &candidate{generation: g, predecessor: o.predecessor, leader: c.id, proof: proof{turn: make(chan struct{}, 1)}}
}
