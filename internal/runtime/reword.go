package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// tryKept proves a program that the model decided to keep, as a new one would be proved: a person's example takes
// precedence over the model's decision. It returns no attempt if the program holds everything, or if the candidate is a
// new program.
func (rec *recovery) tryKept(ctx context.Context, cand *forge.Candidate) judge.Judged {
	if !cand.Keeps {
		return judge.Judged{}
	}
	if broken := rec.prove(ctx, cand, false).Broken; broken != nil {
		return *broken
	}
	return judge.Judged{}
}

// keepProgram records that the model confirmed the program, and answers with it.
func (rec *recovery) keepProgram(ctx context.Context, cand *forge.Candidate) agent.Outcome {
	made := *rec.MadeForNow()
	at := cand.KeptAt
	made.Checked = &at
	change := agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started,
		Reworded: &agent.Rewording{Of: cand.Predecessor.ID, For: made}}
	rec.changes = append(rec.changes, change)
	rec.r.forges.Clear(forge.KeyOf(&rec.Selection))
	rec.Artifact = rec.Artifact.Apply(change)
	g := rec.Artifact.Find(cand.Predecessor.ID)
	rec.Decision = selection.Decision{Decision: agent.DecideRun, Reason: selection.ReasonPurposeChecked, Generation: g}
	return rec.runStored(ctx, g)
}

// staleness returns the value of program.stale in a reply.
func (a *answered) staleness() string {
	if g := a.program; g != nil && a.source == agent.SourcePersisted && g.Outdated(a.Terms.RegisteredWords()) {
		return agent.StalePurpose
	}
	return ""
}

// rewordedToo returns the part of a repair prompt that describes a changed wording, or "".
func (rec *recovery) rewordedToo(g *agent.Generation) string {
	if !rec.Decision.Reworded {
		return ""
	}
	return " What it is for has changed, too, so that what it answered before counts no more. Before: " +
		string(agent.Encoded(g.MadeFor.Wording))
}
