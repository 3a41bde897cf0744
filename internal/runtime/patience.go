package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// reserve returns the part of the remaining time that is reserved for the fallback program, which answers if the model
// does not: one run's timeout, but at most half. It is 0 without a fallback.
func (s *Selection) reserve(left time.Duration) time.Duration {
	if s.decision.Fallback == nil {
		return 0
	}
	return min(s.Env.RunTimeout, left/2)
}

// patience returns how long the call can wait for the model in total.
func (s *Selection) patience() time.Duration {
	whole := s.Deadline.Sub(s.Started)
	return whole - s.reserve(whole)
}

// flyInShare is fly, limited to the model's share of the call's time.
func (rec *recovery) flyInShare(ctx context.Context, q forgeRequest,
	span *telemetry.Span) (res forgeResult, leader, ok bool) {
	left := rec.Deadline.Sub(rec.Env.Now())
	if reserve := rec.reserve(left); reserve > 0 {
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
func outwaits(s *Selection, wait backoff) bool {
	return wait.waited > 0 && s.patience() >= 2*wait.waited
}
