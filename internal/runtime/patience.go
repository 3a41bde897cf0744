package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// reserve is the part of the time left to a call that is kept for the stored program which answers where the model does not: a run's, and at most half of it.
func (s *selected) reserve(left time.Duration) time.Duration {
	if s.decision.Fallback == nil {
		return 0
	}
	return min(s.r.o.RunTimeout, left/2)
}

// patience is how long the call can wait for the model in all.
func (s *selected) patience() time.Duration {
	whole := s.deadline.Sub(s.started)
	return whole - s.reserve(whole)
}

// flyInShare is fly within the model's share of the call's time.
func (rec *recovery) flyInShare(ctx context.Context, q forgeRequest,
	span *telemetry.Span) (res forgeResult, leader, ok bool) {
	left := rec.deadline.Sub(rec.r.o.Now())
	if reserve := rec.reserve(left); reserve > 0 {
		share, end := context.WithTimeoutCause(ctx, left-reserve, interrupt.ErrCallTimeout)
		defer end()
		ctx = share
	}
	return rec.fly(ctx, q, span)
}

// unwaited is the outcome where the call, or the model's share of its time, ended before the model gave a program.
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

// outwaits reports whether the call leaves the model at least twice the time in which it gave another call no program: the delay after that does not hold then.
func (s *selected) outwaits(wait backoff) bool {
	return wait.waited > 0 && s.patience() >= 2*wait.waited
}
