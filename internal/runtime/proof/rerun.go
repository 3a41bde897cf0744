package proof

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/equal"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Rerun runs the program on the fixture. It returns the attempt if it answers differently or was interrupted, and
// otherwise whether the value was reproduced. Neither is set if the fixture proves nothing about the candidate.
func (c *Against) Rerun(ctx context.Context, g *agent.Generation, f agent.Fixture,
	i int) (broken *judge.Judged, reproduced bool) {
	effects := f.Effects
	if effects == nil {
		effects = sandbox.EmptyJournal()
	}
	owner := c.OwnerOfSession(ctx, f.SessionID)
	d := Dry{ID: c.ID + ".f" + strconv.Itoa(i+1), CallID: f.CallID, Args: f.Args, Kwargs: f.Kwargs,
		Context: f.Context, effects: effects, of: owner, earlier: true}
	a, ok := c.DryRun(ctx, g, d)
	if !ok {
		return nil, false
	}
	got, form := "", "an error"
	switch res := a.Result; {
	case a.Class == agent.ClassNone && (ctx.Err() != nil || res.Failure != nil):
		return a, false
	case diverged(&res):
		return nil, false // it asks for something else: the journal cannot show how it answers
	case res.Failure != nil:
		got = res.Failure.Type + ": " + res.Failure.Message
	case res.Authored != nil:
		got = res.Authored.Type + ": " + res.Authored.Message
	case equal.Exact(res.Value, f.Value), bytes.Contains(f.Value, []byte(mask.Masked)) && c.SameShown(res.Value,
		f.Value):
		return nil, true
	default:
		got, form = string(res.Value), c.OutlinedAnswer(res.Value, "")
	}
	a.Outcome, a.Class = agent.Failed(agent.ErrExecution, "it broke an earlier call that was right"),
		agent.ClassIntrinsic
	a.Broke, a.Fixture = prompt.BrokeFixture, f.CallID
	a.Hint = c.Quote(owner, fmt.Sprintf("for args %s kwargs %s the answer was %s, now it is %s",
		c.Clip(string(jsonenc.Array(f.Args))), c.Clip(string(f.Kwargs)), c.Clip(string(f.Value)), c.Clip(got)),
		fmt.Sprintf("for an input of the form %s the answer was %s, now it is another: %s",
			c.Outlined(f.Args, f.Kwargs), c.OutlinedAnswer(f.Value, ""), form))
	return a, false
}

// diverged reports whether the run asked for an effect that its journal does not hold.
func diverged(res *sandbox.Result) bool {
	return res.Failure != nil && res.Failure.Detail == sandbox.DetailDiverged
}
