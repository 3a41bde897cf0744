// Package forge has a model write programs: it builds the prompt, asks the model, has the gate check the reply, and
// lets calls that need the same program share one request. Its candidates have compiled and are not proved. The package
// knows nothing about calls that wait for a program, and stores none.
package forge

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A writer asks the model for programs in a flight. It works on a copy of its call's selection, because the flight may
// outlive the call.
type writer struct {
	call.Selection

	before     *proof.Reach // of the program that it would replace; nil if wider reach needs no approval
	backoffs   *Backoffs
	guardrails int                    // retries left
	taught     faults                 // faults of the refused programs
	earlier    []agent.AttemptFailure // earlier failures, shown to the model
	forgeSpan  *telemetry.Span
	spent      *meter
	reply      provider.Reply // the reply that became the candidate
	spare      *Candidate     // a program whose interface was refused; nil if there is none
	spareReply provider.Reply // the reply that became the spare
	result     flightResult
}

// write asks the model until a program compiles or the budgets are used up.
func (w *writer) write(ctx context.Context, q Request) flightResult {
	// A flight that just ended may have stored the program that this call needs.
	if (q.Predecessor == nil || q.Recheck) && q.Kind == provider.KindForge {
		if a := w.storedMeanwhile(ctx); a != nil {
			w.result.Candidate = &Candidate{Candidate: proof.New(agent.Generation{Cacheable: true}, nil), Existing: a}
			return w.result
		}
	}
	// Check for room before asking: a program that cannot be stored is not worth its tokens.
	if full := w.roomForProgram(ctx); full != nil {
		w.result.Failure, w.result.Class = full, agent.ClassExtrinsic
		return w.result
	}
	w.before = proof.ReachBefore(ctx, &w.Selection, q.Predecessor)
	for {
		reply, err := w.answer(ctx, q)
		switch {
		case err != nil && w.spare != nil && ctx.Err() == nil:
			w.result.Candidate, w.reply = w.spare, w.spareReply
			return w.result
		case err != nil:
			w.result.Failure, w.result.Class = unanswered(ctx, err)
			return w.result
		case reply.Unchanged:
			w.result.Candidate, w.reply = w.rechecked(q, w.Env.Now()), reply
			return w.result
		}
		program, facts, refused := w.gate(ctx, q, reply)
		// the model kept the program by repeating it
		if refused == nil && q.mayKeep() && program.Checksum == q.Predecessor.CodeChecksum {
			w.reply = provider.Reply{Unchanged: true, Model: reply.Model}
			w.result.Candidate = w.rechecked(q, w.Env.Now())
			return w.result
		}
		var takes *agent.Interface
		if refused == nil {
			if takes, refused = w.describe(q, reply, facts, true); refused == nil {
				w.result.Candidate, w.reply = w.candidate(q, reply, program, facts, takes), reply
				return w.result
			}
			w.spares(q, reply, program, facts)
		}
		next, more := w.refused(ctx, q, program, refused)
		if !more {
			return w.result
		}
		q = next
	}
}

// spares keeps a program that is correct except for its interface. If the model does not answer the request to repair
// the interface, this program becomes the candidate, as after the last retry.
func (w *writer) spares(q Request, reply provider.Reply, p sandbox.Program, facts *report.Facts) {
	last := *w
	last.guardrails = 0
	if takes, refused := last.describe(q, reply, facts, true); refused == nil {
		w.spare, w.spareReply = w.candidate(q, reply, p, facts, takes), reply
	}
}

// gate fixes and checks the program that the model wrote, and returns the fixed program.
func (w *writer) gate(ctx context.Context, q Request,
	reply provider.Reply) (sandbox.Program, *report.Facts, *sandbox.Failure) {
	w.Progress.Add(progress.Gate, map[string]any{"kind": q.Kind, "checksum": agent.Checksum(reply.Code)})
	began := w.Env.Now()
	program, facts, took, refused := w.Env.Sandbox.Fix(ctx, reply.Code, w.fixTerms(reply.Declaration),
		w.Env.Owner(w.Owner))
	ended := w.Env.Now()
	w.result.Gated += ended.Sub(began)
	w.result.Built += took.Build
	w.forgeSpan.Stage("gate", began, ended)
	return program, facts, refused
}

// refused records that the gate refused a program. It returns the request for its repair, and whether the budget allows
// one.
func (w *writer) refused(ctx context.Context, q Request, p sandbox.Program,
	why *sandbox.Failure) (Request, bool) {
	out := judge.Failed(why)
	if why.Ours || !judge.Refusal(why.Type) && ctx.Err() != nil {
		w.result.Failure, w.result.Class = &out, agent.ClassNone
		return q, false
	}
	j := judge.Judged{Attempt: attempt.Attempt{ID: w.ID + ".v"}, Stage: attempt.StageValidation, Outcome: out,
		Class: agent.ClassIntrinsic, Hint: w.Mine(why.Hint)}
	w.result.Attempts = append(w.result.Attempts, agent.AttemptFailure{AttemptID: j.ID, Stage: j.Stage,
		ErrorType:    why.Type,
		ErrorMessage: agent.Clip(why.Message, 400), FailureClass: agent.ClassIntrinsic})
	w.Env.Metrics.Guardrail(why.Type)
	switch {
	case !w.taught.add(why.Message) && p.Checksum != q.Basis.Checksum && w.result.Repeated < maxRepeated:
		w.result.Repeated++
	case w.guardrails == 0:
		w.result.Failure, w.result.Class, w.result.Last = &out, agent.ClassIntrinsic, p.Checksum
		return q, false
	default:
		w.guardrails--
		w.result.Guardrails++
	}
	return Request{Kind: provider.KindRepair, Trigger: q.Trigger, Predecessor: q.Predecessor,
		Basis: Failing{Code: p.Source, Checksum: p.Checksum,
			Class: string(agent.ClassIntrinsic), Reason: why.Type, Attempt: j}}, true
}

// storedMeanwhile returns the artifact if another call has stored a program that fits this call since this call
// selected, or nil.
func (w *writer) storedMeanwhile(ctx context.Context) *agent.Artifact {
	a, err := w.Env.Store.Artifact(ctx, w.Role, w.Method)
	if err != nil {
		return nil // forge anyway: at worst, one program too many
	}
	if d := selection.Select(w.Input(a)); d.Decision == agent.DecideRun {
		return a
	}
	return nil
}

// checkedParts returns the machine-checked parts of the contract that the call brought, for later corrections of the
// program. It returns nil if the contract comes from the registry, or if the parts contain a secret.
func checkedParts(c *call.Selection) *agent.Contract {
	if !c.Terms.Own {
		return nil
	}
	parts := &agent.Contract{Deliverable: c.Terms.Contract.Deliverable, Signature: c.Terms.Contract.Signature}
	if _, secret := c.MaskJSON(agent.Encoded(parts)); secret {
		return nil
	}
	return parts
}

// candidate returns the candidate with the generation that the program would become.
func (w *writer) candidate(q Request, reply provider.Reply, p sandbox.Program, facts *report.Facts,
	takes *agent.Interface) *Candidate {
	g := agent.Generation{Trigger: q.Trigger, Code: p.Source, CodeChecksum: p.Checksum, Dependencies: facts.Imports,
		ContractFingerprint: w.Terms.Fingerprint, CheckedFingerprint: w.Terms.Checked, CallersContract: w.Terms.Own,
		PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: reply.Model, Owner: w.Owner, CreatedAt: w.Env.Now(),
		Facts: programs.EncodeFacts(facts, reply.Declaration.Unread(takes)...), SolverShape: reply.SolverShape,
		Interface: takes}
	g.Cacheable, g.CacheabilityReason = cacheable(&w.Selection, facts, takes)
	g.MadeFor, g.Confirmed = w.MadeFor(q.Predecessor)
	g.Asked = checkedParts(&w.Selection)
	cand := &Candidate{Candidate: proof.New(g, q.Predecessor), leader: w.ID}
	cand.Reach = w.before
	cand.Beyond.Store(w.before.Beyond(&g))
	return cand
}

// rechecked returns the candidate for a reply with unchanged: true.
func (w *writer) rechecked(q Request, at time.Time) *Candidate {
	cand := &Candidate{Candidate: proof.New(*q.Predecessor, q.Predecessor), leader: w.ID, KeptAt: at}
	cand.Keeps = true
	return cand
}

// roomForProgram returns the outcome of a forge that does not ask the model, because the share has no room for a
// program. It returns nil if there is room.
func (w *writer) roomForProgram(ctx context.Context) *agent.Outcome {
	const least = 1 << 10
	var full *storage.FullError
	if !errors.As(w.Env.Storage.Room(ctx, w.Owner, store.Bytes{Tools: least}), &full) {
		return nil
	}
	o := full.Outcome()
	return &o
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
	if over := attempt.OverCap(err); over != nil {
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
