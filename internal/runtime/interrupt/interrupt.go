// Package interrupt names the reasons for which a call is interrupted, and gives the outcome of such a call. An
// interruption is not a failure: only the end of the call's own time counts as one, and its class is extrinsic.
package interrupt

import (
	"context"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Causes of a cancelled context, found by context.Cause.
var (
	ErrCallTimeout = fmt.Errorf("the call's time is over: %w", context.DeadlineExceeded)
	ErrShutdown    = errors.New("the daemon is shutting down")
	ErrCanceled    = errors.New("the call was canceled")
)

// NeverStarted begins the message of what ended while it waited for its session's turn: nothing ran.
const NeverStarted = "the call never started, since calls of one session run in order and an earlier one was still under way"

// Outcome returns the outcome and the failure class of a call whose context has ended while it waited for something. A cause that is none of the
// above means that the client went away.
func Outcome(ctx context.Context) (agent.Outcome, agent.Class) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrCallTimeout):
		o := agent.Failed(agent.ErrTimeout, "the call did not end within its time")
		o.Retriable = true
		return o, agent.ClassExtrinsic
	case errors.Is(cause, ErrShutdown):
		o := agent.Failed(agent.ErrCanceled, "the daemon is shutting down")
		o.Retriable = true
		return o, agent.ClassNone
	case errors.Is(cause, ErrCanceled):
		return agent.Failed(agent.ErrCanceled, "the call was canceled"), agent.ClassNone
	}
	return agent.Failed(agent.ErrCanceled, "the client went away"), agent.ClassNone
}
