package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// flyInShare is fly, limited to the model's share of the call's time.
func (rec *recovery) flyInShare(ctx context.Context, q forge.Request,
	span *telemetry.Span) (res forge.Result, leader, ok bool) {
	left := rec.Deadline.Sub(rec.Env.Now())
	if reserve := rec.Reserve(left); reserve > 0 {
		share, end := context.WithTimeoutCause(ctx, left-reserve, interrupt.ErrCallTimeout)
		defer end()
		ctx = share
	}
	return rec.fly(ctx, q, span)
}

// unwaited returns the outcome if the call's time, or the model's share of it, ended before the model delivered a
// program.
func (rec *recovery) unwaited(ctx context.Context) *agent.Outcome {
	if ctx.Err() == nil {
		rec.slow, rec.class = true, agent.ClassExtrinsic
		out := agent.Failed(agent.ErrTimeout, "the model gave no program in the time that the call leaves it")
		out.Retriable = true
		return &out
	}
	var out agent.Outcome
	out, rec.class = interrupt.Outcome(ctx)
	return &out
}

// outwaits reports whether the call gives the model at least twice as long as a call that got no program. The delay
// after that call does not apply then.
func outwaits(s *call.Selection, wait forge.Backoff) bool {
	return wait.Waited > 0 && s.Patience() >= 2*wait.Waited
}
