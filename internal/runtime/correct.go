package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// reasonOfCorrection is the trigger of a program that was forged because a person judged an answer wrong.
const reasonOfCorrection = "regenerate:correction"

// maxCorrections is how often a correction is tried before it is left to people.
const maxCorrections = 8

// A corrector forges corrections in the background, one per method at a time. The old program keeps answering until a
// correction holds every active example. The zero value is ready.
type corrector struct {
	running sync.WaitGroup

	mu      sync.Mutex
	pending map[turns.Method]*pendingCorrection // guarded by mu
}

// A pendingCorrection is a method's correction that runs or waits. Its fields are guarded by corrector.mu.
type pendingCorrection struct {
	actor string
	wake  chan struct{} // of capacity 1: a judgment or a change starts the next attempt at once
	next  chan struct{} // closed when the next attempt to start has ended
	// closed when the current or imminent attempt has ended; nil while the next one waits for its time
	now chan struct{}
}

// CorrectionsPending reports whether a correction runs or waits for its next attempt.
func (r *Runtime) CorrectionsPending() bool {
	r.corrects.mu.Lock()
	defer r.corrects.mu.Unlock()
	return len(r.corrects.pending) > 0
}

// Correct starts a correction of the method in the background, in the name of the person who asked, regardless of
// earlier failures. It returns a channel that is closed once an attempt that began after this call has ended. The
// channel is closed at once if the Runtime is stopping; the correction then resumes after the restart.
func (r *Runtime) Correct(role, method, actor string) (tried <-chan struct{}) {
	return r.correctFrom(role, method, actor, time.Time{})
}

// correctFrom is Correct with the first attempt at the time begin; zero means now.
func (r *Runtime) correctFrom(role, method, actor string, begin time.Time) (tried <-chan struct{}) {
	k := turns.Method{Role: role, Method: method}
	c := &r.corrects
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[k]; p != nil {
		p.actor = actor
		select {
		case p.wake <- struct{}{}:
		default:
		}
		if p.now == nil {
			p.now = p.next
		}
		return p.next
	}
	p := &pendingCorrection{actor: actor, wake: make(chan struct{}, 1), next: make(chan struct{})}
	// A stopping Runtime starts nothing new. The artifact still has the correction as pending, which ResumeCorrections
	// finds.
	if r.life.Err() != nil {
		close(p.next) // resumed after the restart
		return p.next
	}
	if c.pending == nil {
		c.pending = map[turns.Method]*pendingCorrection{}
	}
	c.pending[k] = p
	if begin.IsZero() {
		p.now = p.next
	}
	tried = p.next
	c.running.Go(func() { r.runCorrection(k, p, begin) })
	return tried
}

// runCorrection makes attempts, the first at next, until a correction is adopted, waits for approval or is given up, or
// until the daemon stops.
func (r *Runtime) runCorrection(k turns.Method, p *pendingCorrection, next time.Time) {
	c := &r.corrects
	for r.waitCorrection(p, next) {
		c.mu.Lock()
		actor, tried := p.actor, p.next
		p.now, p.next = tried, make(chan struct{})
		select {
		case <-p.wake: // consume the wake-up: this attempt answers it
		default:
		}
		c.mu.Unlock()
		next = r.tryCorrection(sandbox.Background(r.life), k, actor)
		c.mu.Lock()
		p.now = nil
		if len(p.wake) > 0 {
			p.now = p.next
		}
		close(tried)
		if next.IsZero() && p.now == nil {
			delete(c.pending, k)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	close(p.next)
	delete(c.pending, k)
	c.mu.Unlock()
}

// waitCorrection waits until the time of the next attempt; zero means now. It returns false if the daemon stops first.
func (r *Runtime) waitCorrection(p *pendingCorrection, until time.Time) bool {
	if until.IsZero() {
		return true
	}
	timer := time.NewTimer(max(0, until.Sub(r.env.Now())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
	case <-r.life.Done():
		return false
	}
	return true
}

// tryCorrection makes one attempt. It returns when to try again; zero means never.
func (r *Runtime) tryCorrection(ctx context.Context, k turns.Method, actor string) time.Time {
	release, err := r.correctAlone(ctx, k)
	if err != nil {
		return r.env.Now().Add(correctionTTL)
	}
	defer release()
	a, err := r.env.Store.Artifact(ctx, k.Role, k.Method)
	if err != nil {
		return r.unlessAway(err, time.Time{})
	}
	if !a.Correction.Pending() || len(a.Corrections()) == 0 || a.Quarantined || a.Pinned {
		return time.Time{} // a release or an unpin starts it again
	}
	was := *a.Correction
	rec, err := r.correcting(ctx, k, a)
	if errors.Is(err, errContractUnknown) {
		return r.correctionFailed(ctx, k, &was, agent.Failed(agent.ErrUnsupportedCapability, err.Error()))
	}
	if err != nil {
		return r.correctionFailed(ctx, k, &was, agent.Failed(agent.ErrResourceExhausted, err.Error()))
	}
	if done := rec.heldAlready(ctx); done != nil {
		return r.unlessAway(r.setCorrection(ctx, k, done), time.Time{})
	}
	if err := r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionRunning,
		Attempts: was.Attempts + 1}); err != nil {
		return r.unlessAway(err, time.Time{})
	}
	q := correctionRequest(rec.Decision.Generation)
	if !rec.Policy.RepairEnabled {
		q.Kind = provider.KindForge
	}
	t, failure := rec.forgeCorrection(ctx, q)
	switch {
	case failure == nil:
		return r.adoptCorrection(k, t, actor, &was)
	case ctx.Err() != nil: // interrupted: resumed after the restart
		_ = r.setCorrection(r.env.Within(), k, &agent.Correction{State: agent.CorrectionQueued, Attempts: was.Attempts})
		return time.Time{}
	}
	return r.correctionFailed(ctx, k, &was, *failure)
}

// correctionFailed records a failed attempt and returns when to try again. An outage of the provider or a cap proves
// nothing about the method, so it does not count as an attempt.
func (r *Runtime) correctionFailed(ctx context.Context, k turns.Method, was *agent.Correction,
	failure agent.Outcome) time.Time {
	next := r.env.Now().Add(max(time.Second, forge.DelayOf(was.Attempts, r.policy.Load().Backoff)))
	c := failedCorrection(was, failure, next)
	if forge.ModelOut(&failure) {
		c.Attempts = was.Attempts
	}
	if c.Attempts >= maxCorrections {
		c.State, c.NextTryAt, next = agent.CorrectionFailed, nil, time.Time{}
	}
	return r.unlessAway(r.setCorrection(ctx, k, c), next)
}

// unlessAway returns next, unless it is zero because the store failed with err. Then it returns a time for another
// attempt: the correction is still pending in the store, and nothing else would resume it. If the method is gone, next
// is returned as it is.
func (r *Runtime) unlessAway(err error, next time.Time) time.Time {
	if err == nil || !next.IsZero() || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrGone) {
		return next
	}
	return r.env.Now().Add(correctionTTL)
}

// failedCorrection returns the correction's state after one more failed attempt.
func failedCorrection(was *agent.Correction, o agent.Outcome, next time.Time) *agent.Correction {
	message := agent.Clip(o.ErrorType+": "+o.ErrorMessage, 400)
	if raw, _ := o.Metadata[agent.RawMessageKey].(string); raw != "" { // callers get less detail than this
		message = agent.Clip(o.ErrorType+": "+raw, 400)
	}
	c := &agent.Correction{State: agent.CorrectionBackingOff, Attempts: 1, LastError: &message, NextTryAt: &next}
	if was.Pending() {
		c.Attempts = was.Attempts + 1
	}
	return c
}

// heldAlready returns the final state of a correction that needs no model: the judged answer came from an earlier
// program, and the current one holds every example. It returns nil if a correction is needed.
func (rec *recovery) heldAlready(ctx context.Context) *agent.Correction {
	g := rec.Decision.Generation
	// The judged answer came from this very program.
	if rec.Artifact.Doubted(g.ID) {
		return nil
	}
	if broken := proof.Examples(ctx, proof.New(*g, nil), &rec.Against); broken != nil {
		return nil
	}
	if rec.Policy.ApprovalRequired && !g.Approved || rec.Policy.NewReach == agent.ReachAsk &&
		rec.Artifact.AwaitsReach(g) {
		return &agent.Correction{State: agent.CorrectionAwaitingApproval, Generation: &g.ID,
			ChangedAnswers: len(g.ChangedAnswers)}
	}
	return &agent.Correction{State: agent.CorrectionNone}
}

// forgeCorrection asks a model to correct the current program and proves the result. It returns a proved candidate or
// the failure.
func (rec *recovery) forgeCorrection(ctx context.Context, q forge.Request) (*tried, *agent.Outcome) {
	for {
		cand, out := rec.obtain(ctx, q)
		rec.trail.Leave() // no other call shares the flight, and the next request may have the same key
		if cand == nil {
			return nil, out
		}
		t := &tried{Candidate: cand, proof: rec.prove(ctx, cand, true)}
		broken := t.proof.Broken
		// A candidate with wider reach waits for approval anyway, so only other candidates are checked for unapproved
		// hosts.
		if broken == nil && cand.Beyond.Load() == nil {
			broken = namesUnapproved(&rec.Selection, &cand.Generation)
		}
		if broken == nil {
			rec.trail.RepairEnded(rec.Call, true)
			cand.Generation.ForgeUsage = rec.trail.Usage
			return t, nil
		}
		rec.note(*broken)
		rec.r.noteRejected(ctx, rec.Call, cand, broken)
		if broken.Class != agent.ClassIntrinsic || !rec.trail.Spend(broken, q.Basis) {
			return nil, &broken.Outcome
		}
		q.Basis = forge.Failing{Code: cand.Generation.Code, Checksum: cand.Generation.CodeChecksum,
			Class: string(broken.Class), Reason: broken.Outcome.ErrorType, Attempt: *broken}
	}
}

// correctionRequest returns the request to repair a program that gave a wrong answer.
func correctionRequest(g *agent.Generation) forge.Request {
	message := "A person judged an answer of this program to be wrong. Correct the program; the evidence says what was answered and what is right."
	return forge.Request{Kind: provider.KindRepair, Trigger: reasonOfCorrection, Predecessor: g, Alone: true,
		Basis: forge.Failing{Code: g.Code, Checksum: g.CodeChecksum, Class: "wrong_answer", Reason: "wrong_answer",
			Message: prompt.Public(message)}}
}

// ResumeCorrections queues the corrections that a stop interrupted; one that waited for its next attempt keeps waiting
// until then. It reads every artifact. The attempts run in the background.
func (r *Runtime) ResumeCorrections(ctx context.Context) error {
	for after := ""; ; {
		tools, err := r.env.Store.ListTools(ctx, after, 100)
		if err != nil || len(tools) == 0 {
			return err
		}
		for _, t := range tools {
			all, err := r.env.Store.ListArtifacts(ctx, t.Role)
			if err != nil {
				return err
			}
			for _, a := range all {
				if wrong := a.Corrections(); a.Correction.Pending() && len(wrong) > 0 &&
					r.policy.Load().Correction == agent.CorrectBackground {
					var begin time.Time
					if at := a.Correction.NextTryAt; at != nil {
						begin = *at
					}
					r.correctFrom(a.Role, a.MethodName, wrong[0].By, begin)
				}
			}
			after = t.Role
		}
	}
}
