package runtime

import (
	"context"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// unknownStreak is how many calls in a row must fail with arguments that the program does not know before it is
// widened.
const unknownStreak = 2

// widens reports whether to repair the program so that it reads the names that callers use.
func (rec *recovery) widens(g *agent.Generation, j judge.Judged) bool {
	if !j.Misnamed() || g.UnknownStreak+1 < unknownStreak {
		return false
	}
	if !rec.Policy.RepairEnabled || rec.Artifact.Pinned ||
		rec.Artifact.RepairCountSinceRegen >= rec.Policy.MaxRepairsBeforeRegen ||
		rec.Decision.Reason == selection.ReasonApprovalRequired || rec.Decision.Reason == selection.ReasonNewReach ||
		rec.Decision.Reason == selection.ReasonBreaksExamples {
		return false
	}
	_, waits := rec.r.forges.Waits(&rec.Selection)
	return !waits
}

// widen requests a repair that reads the unknown keywords. If that fails, the program's own answer stands, which is as
// honest as before.
func (rec *recovery) widen(ctx context.Context, g *agent.Generation, j judge.Judged) agent.Outcome {
	why := forge.Failing{Code: g.Code, Checksum: g.CodeChecksum, Class: forge.ReasonUnknown,
		Reason: forge.ReasonUnknown, Attempt: j,
		Message: rec.Mine(fmt.Sprintf(
			"%s: %s\n%s to this program, which takes %s. Read each as what it means, beside what the program reads now, and declare it as optional; where one means nothing here, keep the error.",
			j.Outcome.ErrorType, j.Outcome.ErrorMessage, j.Unread(), j.Takes.Signature(rec.Method)))}
	cand, out := rec.obtain(ctx, forge.Request{Kind: provider.KindRepair, Trigger: forge.Widening, Basis: why,
		Predecessor: g})
	if cand == nil {
		refused := rec.class == agent.ClassIntrinsic
		o := rec.keepMisnamed(g, j)
		if refused {
			rec.forgeFailed(*out, nil)
		}
		return o
	}
	t := rec.tryCandidate(ctx, cand)
	next := t.attempt
	switch {
	case next.ID == "":
		return rec.keepUnapproved(&t)
	case next.Outcome.OK():
		rec.ranCandidate(agent.SourceRepaired, cand, next)
		return rec.adoptRepair(ctx, &t)
	}
	rec.note(next)
	rec.repairFailed(cand.Rejected(next))
	if next.Class != agent.ClassNone && next.Class != agent.ClassExtrinsic {
		rec.forgeFailed(next.Outcome, nil)
	}
	return rec.keepMisnamed(g, j)
}

// keepMisnamed answers with the stored program's answer.
func (rec *recovery) keepMisnamed(g *agent.Generation, j judge.Judged) agent.Outcome {
	rec.trail.RepairEnded(rec.Call, false)
	rec.ran(agent.SourcePersisted, g, j)
	return rec.keep(j)
}
