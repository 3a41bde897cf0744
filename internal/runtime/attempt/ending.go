package attempt

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Miscalls reports whether the program passes on that another program rejected its call. The cause is then not the
// program's own input.
func (a *Attempt) Miscalls() bool {
	t := a.Result.Authored.Type
	return a.miscalled && (t == agent.ErrInvalidInput || t == agent.ErrTool)
}

// Waited reports whether an attempt that ran out of the call's time was waiting, except for a nested call whose own
// program used up the time.
func (a *Attempt) Waited() bool {
	below, called := a.Failed[agent.ErrTimeout]
	return (a.Result.Failure == nil || a.Result.Failure.Waiting) && (!called || below.Retriable)
}

// leastTime is the least time that a program must have used itself before a timeout set by its caller counts against
// it. A caller that allows less is too strict.
const leastTime = time.Second

// Overran reports whether the program itself used up the time that its caller set, rather than waiting for something,
// or would sleep beyond it.
func (a *Attempt) Overran() bool {
	f := a.Result.Failure
	switch {
	case f == nil || f.Type != agent.ErrTimeout:
		return false
	case f.Sleeps > 0:
		return min(f.Sleeps, a.Granted) >= leastTime
	}
	return f.Ours && !f.Waiting && a.Result.Timing.Run+a.Result.Effects.Slept >= leastTime
}

// typedErrors is the first prompt version that informs the model that an error without a type counts as a failure.
const typedErrors = "2026-11-30.v7"

// Untyped reports whether the program returned an error without a type. That is a failure of the program and gets
// repaired. Programs of earlier prompt versions are exempt: their plain errors count as authored. So is an error that
// the program may have passed on from a nested call.
func (a *Attempt) Untyped() bool {
	return a.Result.Authored.Plain && a.Program.PromptVersion >= typedErrors &&
		a.Failed[agent.ErrTool].Class == agent.ClassNone && !a.Authored[agent.ErrTool]
}
