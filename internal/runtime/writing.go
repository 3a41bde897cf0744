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

// candidate makes the generation that the program would become.
func (c *call) candidate(o order, reply provider.Reply, checksum string, facts *gate.Facts) *candidate {
	g := agent.Generation{Trigger: o.trigger, Code: reply.Code, CodeChecksum: checksum, Dependencies: facts.Imports,
		ContractFingerprint: c.fingerprint, CheckedFingerprint: c.checked, PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: reply.Model, CreatedAt: c.r.o.Now(), Facts: encodeFacts(facts), SolverShape: reply.SolverShape}
	g.Cacheable, g.CacheabilityReason = cacheability(c, facts)
	return &candidate{generation: g, predecessor: o.predecessor, leader: c.id, proof: proof{turn: make(chan struct{}, 1)}}
}
