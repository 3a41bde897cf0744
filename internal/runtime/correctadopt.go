package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// noteRejected records why a candidate was discarded, as evidence for the next attempt.
func (r *Runtime) noteRejected(ctx context.Context, c *call.Call, cand *forge.Candidate, broken *judge.Judged) {
	_ = r.change(ctx, agent.ArtifactChange{Role: c.Role, MethodName: c.Method, At: r.env.Now(),
		Rejected: rejectionOf(c, rejected{cand.Generation.Trigger, cand.Generation.CodeChecksum, *broken},
			r.env.Now())},
		nil)
}

// adoptCorrection makes the candidate the current generation, unless a person changed the examples or the artifact
// since the proof. It returns when to try again; zero means never.
func (r *Runtime) adoptCorrection(k turns.Method, t *tried, actor string,
	was *agent.Correction) time.Time {
	unlock := r.lockAdoption(k)
	defer unlock()
	ctx := r.env.Within()
	now, err := r.env.Store.Artifact(ctx, k.Role, k.Method)
	if err != nil {
		return r.unlessAway(err, time.Time{})
	}
	cand, proved := t.Candidate, &t.proof
	wrong := now.Corrections()
	other := len(wrong) == 0 || now.Judged(&wrong[0]).ID != cand.Predecessor.ID
	if other || now.Quarantined || now.Pinned || proof.ExamplesDigest(now) != proved.Examples ||
		proved.Unseen(cand.Predecessor, now) {
		_ = r.setCorrection(ctx, k, &agent.Correction{State: agent.CorrectionQueued, Attempts: was.Attempts})
		return r.env.Now() // prove again on the current state: a person's operation takes precedence
	}
	g := cand.Generation
	g.ID, g.ParentID = now.NextGenerationID(), &cand.Predecessor.ID
	g.Fixtures, g.ChangedAnswers, g.Beyond = proved.Fixtures(), proved.Changed, cand.Beyond.Load()
	done := corrected(&agent.Correction{Attempts: was.Attempts + 1}, &g, r.policy.Load())
	entry := agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(r.env.Now()), Actor: actor,
		Action: "artifact.correct", Target: k.Role + "." + k.Method,
		Reason: "a person called an answer wrong"}
	entry.Undo = "POST /v1/maintenance/audit/" + entry.ID + "/undo"
	if err := r.change(ctx, agent.ArtifactChange{Role: k.Role, MethodName: k.Method, At: r.env.Now(), Generation: &g,
		Correction: done}, &entry); err != nil {
		return r.unlessAway(err, time.Time{})
	}
	r.forges.ClearMethod(k)
	return time.Time{}
}

// corrected returns a correction's state after the generation was adopted. was may be nil.
func corrected(was *agent.Correction, g *agent.Generation, p *agent.Policy) *agent.Correction {
	next := &agent.Correction{State: agent.CorrectionAdopted, Generation: &g.ID, ChangedAnswers: len(g.ChangedAnswers),
		Attempts: 1}
	if was != nil {
		next.Attempts = max(1, was.Attempts)
	}
	if p.ApprovalRequired || g.Beyond != nil {
		next.State = agent.CorrectionAwaitingApproval
	}
	return next
}

// setCorrection records the correction's state in the artifact.
func (r *Runtime) setCorrection(ctx context.Context, k turns.Method, c *agent.Correction) error {
	return r.change(ctx, agent.ArtifactChange{Role: k.Role, MethodName: k.Method, At: r.env.Now(), Correction: c}, nil)
}

// change applies a change to an artifact outside of any call and logs a failure. It retries on conflicts, and does
// nothing if the artifact is gone. An audit entry, if there is one, receives the artifact's state before and after.
func (r *Runtime) change(ctx context.Context, change agent.ArtifactChange, entry *agent.AuditEntry) error {
	for {
		a, err := r.env.Store.Artifact(ctx, change.Role, change.MethodName)
		if err == nil && entry != nil {
			entry.Before, entry.After = agent.Encoded(a.Standing()), agent.Encoded(a.Apply(change).Standing())
		}
		if err == nil {
			_, err = r.env.Store.ChangeArtifact(ctx, a.Revision, change, entry)
		}
		if errors.Is(err, store.ErrConflict) {
			continue // a conflict is usual: calls count on the artifact all the time
		}
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		r.env.Logger.Warn().Err(err).Str("role", change.Role).Str("method",
			change.MethodName).Msg("a correction could not be recorded")
		return err
	}
}
