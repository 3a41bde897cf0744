// Package interrupt names the causes for which a call is interrupted, and returns the outcome of such a call. An
// interruption is not a failure, except for the end of the call's own time, whose class is extrinsic.
package interrupt

import (
	"context"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Causes of a canceled context, as context.Cause returns them.
var (
	ErrCallTimeout = fmt.Errorf("the call's time is over: %w", context.DeadlineExceeded)
	ErrShutdown    = errors.New("the daemon is shutting down")
	ErrCanceled    = errors.New("the call was canceled")
)

// NeverStarted is the start of the message for a call that ended while it waited for its session's turn. Nothing ran.
const NeverStarted = "the call never started, since calls of one session run in order and an earlier one was still under way"

// Outcome returns the outcome and the failure class of a call whose context ended while it waited. Any cause other than
// the above means that the client went away.
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
