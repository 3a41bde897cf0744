package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ReasonOfCorrection is the trigger of a program that was forged because a person called an answer wrong.
const ReasonOfCorrection = "regenerate:correction"

// maxCorrections is how often a correction is tried before it is left to people.
const maxCorrections = 8

// A corrector forges corrections in the background, one per method at a time. Until a correction holds every active
// example the old program answers. The zero value is ready.
type corrector struct {
	mu      sync.Mutex
	pending map[methodKey]*pendingCorrection // guarded by mu
}

type pendingCorrection struct {
	actor string
	again bool          // something was judged while it ran: it runs once more
	tried chan struct{} // closed when the attempt under way has ended
}

// Correct has a correction of the method forged in the background, in the name of the person who asked. It returns a
// channel that is closed when the first attempt has ended.
func (r *Runtime) Correct(role, method, actor string) (tried <-chan struct{}) {
	k := methodKey{role, method}
	c := &r.corrects
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[k]; p != nil {
		p.again, p.actor = true, actor
		return p.tried
	}
	p := &pendingCorrection{actor: actor, tried: make(chan struct{})}
	if c.pending == nil {
		c.pending = map[methodKey]*pendingCorrection{}
	}
	c.pending[k] = p
	r.flights.under.Go(func() { r.runCorrection(k, p) })
	return p.tried
}

// runCorrection tries until a correction is adopted, waits for approval or is given up, or the daemon stops.
func (r *Runtime) runCorrection(k methodKey, p *pendingCorrection) {
	for {
		next := r.tryCorrection(r.life, k, p.actor)
		c := &r.corrects
		c.mu.Lock()
		close(p.tried)
		if !p.again && next.IsZero() {
			delete(c.pending, k)
			c.mu.Unlock()
			return
		}
		again := p.again
		p.again, p.tried = false, make(chan struct{})
		c.mu.Unlock()
		if again {
			continue
		}
		timer := time.NewTimer(max(0, next.Sub(r.o.Now())))
		select {
		case <-timer.C:
		case <-r.life.Done():
			timer.Stop()
			c.mu.Lock()
			close(p.tried)
			delete(c.pending, k)
			c.mu.Unlock()
			return
		}
	}
}

// tryCorrection forges one correction. It returns when to try again, zero for never.
func (r *Runtime) tryCorrection(ctx context.Context, k methodKey, actor string) time.Time {
	a, err := r.store.Artifact(ctx, k.role, k.method)
	if err != nil || !a.Correction.Pending() || len(a.Corrections()) == 0 || a.Quarantined || a.Pinned {
		return time.Time{}
	}
	attempts := a.Correction.Attempts + 1
	r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionRunning, Attempts: attempts})
	cand, failure := r.forgeCorrection(ctx, k, a)
	switch {
	case failure == nil:
		r.adoptCorrection(k, cand, actor, attempts)
		return time.Time{}
	case ctx.Err() != nil: // interrupted: it goes on after the restart
		r.setCorrection(context.WithoutCancel(ctx), k, &agent.Correction{State: agent.CorrectionQueued, Attempts: attempts - 1})
		return time.Time{}
	}
	message := Clip(failure.ErrorType+": "+failure.ErrorMessage, 400)
	if attempts >= maxCorrections {
		r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionFailed, Attempts: attempts, LastError: &message})
		return time.Time{}
	}
	next := r.o.Now().Add(max(time.Second, delayOf(attempts-1, r.policy.Load().Backoff)))
	r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionBackingOff, Attempts: attempts, LastError: &message, NextTryAt: &next})
	return next
}

// forgeCorrection has a model correct the current program and proves what it wrote. It returns a proved candidate, or the
// failure. The judged call's input stands in for a caller's.
func (r *Runtime) forgeCorrection(ctx context.Context, k methodKey, a *agent.Artifact) (*candidate, *agent.Outcome) {
	v := a.Corrections()[0]
	c := r.newCall(CallRequest{Role: k.role, Method: k.method, Args: v.Args, Kwargs: v.Kwargs}, agent.Session{ID: v.SessionID, Role: k.role})
	s := selected{opened: c, artifact: a, decision: Decision{Decision: agent.DecideForge, Reason: ReasonCorrection, Generation: a.Current()}}
	var err error
	if s.terms, err = c.resolveTerms(ctx); err != nil {
		o := agent.Failed(agent.ErrResourceExhausted, err.Error())
		return nil, &o
	}
	rec := &recovery{answered: &answered{selected: s}, budgets: budgets{s.policy.GuardrailRecoveryBudget, s.policy.ExecutionRepairBudget, s.policy.OutcomeRepairBudget}}
	q := correctionRequest(a.Current(), v)
	for {
		cand, out := rec.obtain(ctx, q)
		for _, leave := range rec.leaves {
			leave() // nobody shares it, and the next request may look the same
		}
		rec.leaves = nil
		if cand == nil {
			return nil, out
		}
		broken := s.prove(ctx, cand, false, true)
		if broken == nil {
			cand.generation.ForgeUsage = rec.trail.usage
			return cand, nil
		}
		rec.note(*broken)
		r.noteRejected(ctx, c, cand, broken)
		if broken.class != agent.ClassIntrinsic || !rec.spend(broken.stage) {
			return nil, &broken.outcome
		}
		q.basis = failing{code: cand.generation.Code, checksum: cand.generation.CodeChecksum, class: string(broken.class), reason: broken.outcome.ErrorType, attempt: *broken}
	}
}

// correctionRequest asks for the repair of a program that answered wrong.
func correctionRequest(g *agent.Generation, v agent.Verdict) forgeRequest {
	message := "A person judged an answer of this program to be wrong. Correct the program; the evidence says what was answered and what is right."
	return forgeRequest{kind: provider.KindRepair, trigger: ReasonOfCorrection, predecessor: g, alone: true,
		basis: failing{code: g.Code, checksum: g.CodeChecksum, class: "wrong_answer", reason: "wrong_answer", message: message}}
}

// noteRejected keeps what a discarded candidate did wrong for the next attempt.
func (r *Runtime) noteRejected(ctx context.Context, c *opened, cand *candidate, broken *judged) {
	reason := broken.outcome.ErrorType + ": " + broken.outcome.ErrorMessage
	if broken.hint != "" {
		reason += ". " + broken.hint
	}
	change := agent.ArtifactChange{Role: c.role, MethodName: c.method, At: r.o.Now(), Rejected: &agent.Rejection{At: r.o.Now(), CallID: c.id,
		Trigger: cand.generation.Trigger, CodeChecksum: cand.generation.CodeChecksum, Stage: broken.stage, Reason: Clip(reason, 400)}}
	r.change(ctx, change, nil)
}

// adoptCorrection makes the candidate the current generation, unless a person changed what it was proved by.
func (r *Runtime) adoptCorrection(k methodKey, cand *candidate, actor string, attempts int) {
	ctx := context.WithoutCancel(r.life)
	unlock := r.adoption.lock(k)
	defer unlock()
	now, err := r.store.Artifact(ctx, k.role, k.method)
	if err != nil || heldMeanwhile(&agent.Artifact{CurrentID: cand.predecessor.ID, Generations: []*agent.Generation{cand.predecessor}}, now) {
		return // a person's operation counts for more
	}
	if examplesDigest(now) != cand.proof.examples {
		r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionQueued, Attempts: attempts})
		r.Correct(k.role, k.method, actor)
		return
	}
	g := cand.generation
	g.ID, g.ParentID = now.NextGenerationID(), &cand.predecessor.ID
	g.Fixtures, g.ChangedAnswers = cand.proof.kept, cand.proof.changed
	done := corrected(&agent.Correction{Attempts: attempts}, g.ID, len(g.ChangedAnswers))
	if r.policy.Load().ApprovalRequired {
		done.State = agent.CorrectionAwaitingApproval
	}
	entry := agent.AuditEntry{ID: agent.NewID("aud"), Timestamp: agent.FormatTime(r.o.Now()), Actor: actor, Action: "artifact.correct", Target: k.role + "." + k.method,
		Reason: "a person called an answer wrong"}
	entry.Undo = "POST /v1/maintenance/audit/" + entry.ID + "/undo"
	r.change(ctx, agent.ArtifactChange{Role: k.role, MethodName: k.method, At: r.o.Now(), Generation: &g, Correction: done}, &entry)
	r.backoffs.clearMethod(k)
}

// corrected is the state of a correction that was adopted.
func corrected(was *agent.Correction, generation string, changed int) *agent.Correction {
	next := &agent.Correction{State: agent.CorrectionAdopted, Generation: &generation, ChangedAnswers: changed}
	if was != nil {
		next.Attempts = max(1, was.Attempts)
	}
	return next
}

func (r *Runtime) setCorrection(ctx context.Context, k methodKey, c *agent.Correction) {
	r.change(ctx, agent.ArtifactChange{Role: k.role, MethodName: k.method, At: r.o.Now(), Correction: c}, nil)
}

// change applies a change to an artifact beside calls. An audit entry gets how the artifact stood before and after.
func (r *Runtime) change(ctx context.Context, change agent.ArtifactChange, entry *agent.AuditEntry) {
	for {
		a, err := r.store.Artifact(ctx, change.Role, change.MethodName)
		if err == nil && entry != nil {
			entry.Before, entry.After = agent.Encoded(a.Standing()), agent.Encoded(a.Apply(change).Standing())
		}
		if err == nil {
			_, err = r.store.ChangeArtifact(ctx, a.Revision, change, entry)
		}
		if errors.Is(err, store.ErrConflict) {
			continue // calls count on it all the time
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			r.o.Logger.Warn().Err(err).Str("role", change.Role).Str("method", change.MethodName).Msg("a correction could not be recorded")
		}
		return
	}
}

// ResumeCorrections queues the corrections that a stop interrupted. It reads every artifact, in the background.
func (r *Runtime) ResumeCorrections(ctx context.Context) error {
	for after := ""; ; {
		tools, err := r.store.ListTools(ctx, after, 100)
		if err != nil || len(tools) == 0 {
			return err
		}
		for _, t := range tools {
			all, err := r.store.ListArtifacts(ctx, t.Role)
			if err != nil {
				return err
			}
			for _, a := range all {
				if a.Correction.Pending() && r.policy.Load().Correction == agent.CorrectBackground {
					r.Correct(a.Role, a.MethodName, "recurgentd")
				}
			}
			after = t.Role
		}
	}
}
