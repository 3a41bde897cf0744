package runtime

import (
	"context"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// unknownStreak is how many calls in a row may fail with keywords that the program does not know, before it is widened.
const unknownStreak = 2

// reasonUnknown is the trigger of a repair that widens an interface.
const reasonUnknown = "unknown_keywords"

// misnamed reports whether the program could not work with the arguments and does not read some of the keywords.
func (j *judged) misnamed() bool {
	return len(j.unknown) > 0 && j.class == agent.ClassAuthored && j.outcome.ErrorType == agent.ErrInvalidInput
}

// widens reports whether the program is to be repaired to read what callers call its parameters.
func (rec *recovery) widens(g *agent.Generation, j judged) bool {
	if !j.misnamed() || g.UnknownStreak+1 < unknownStreak {
		return false
	}
	if !rec.policy.RepairEnabled || rec.artifact.Pinned || rec.artifact.RepairCountSinceRegen >= rec.policy.MaxRepairsBeforeRegen || rec.decision.Reason == ReasonApprovalRequired || rec.decision.Reason == ReasonNewReach || rec.decision.Reason == ReasonBreaksExamples {
		return false
	}
	_, waits := rec.backingOff()
	return !waits
}

// widen has the program repaired to read the unknown keywords. Where that fails the program's own answer stands: it is as
// honest as before.
func (rec *recovery) widen(ctx context.Context, g *agent.Generation, j judged) agent.Outcome {
	why := failing{code: g.Code, checksum: g.CodeChecksum, class: reasonUnknown, reason: reasonUnknown, attempt: j,
		message: rec.mine(fmt.Sprintf("%s: %s\nThe callers' keywords %s are unknown to this program, which takes %s. Read each as what it means, beside the names that the program reads now; where one means nothing here, keep the error.",
			j.outcome.ErrorType, j.outcome.ErrorMessage, strings.Join(j.unknown, ", "), j.takes.Signature(rec.method)))}
	cand, out := rec.obtain(ctx, forgeRequest{kind: provider.KindRepair, trigger: "repair:" + reasonUnknown, basis: why, predecessor: g})
	if cand == nil {
		refused := rec.class == agent.ClassIntrinsic
		o := rec.keepMisnamed(g, j)
		if refused {
			rec.forgeFailed(*out, nil)
		}
		return o
	}
	next := rec.tryCandidate(ctx, cand)
	switch {
	case next.id == "":
		return rec.keepUnapproved(cand)
	case next.outcome.OK():
		rec.ranCandidate(agent.SourceRepaired, cand, next)
		return rec.adoptRepair(ctx, cand, next)
	}
	rec.note(next)
	rec.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, next})
	if next.class != agent.ClassNone && next.class != agent.ClassExtrinsic {
		rec.forgeFailed(next.outcome, nil)
	}
	return rec.keepMisnamed(g, j)
}

// keepMisnamed answers as the stored program did.
func (rec *recovery) keepMisnamed(g *agent.Generation, j judged) agent.Outcome {
	rec.repairEnded(false)
	rec.ran(agent.SourcePersisted, g, j)
	return rec.keep(j)
}
