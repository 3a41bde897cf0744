package runtime

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// traceAttempt traces the stages of an attempt. The runner reports durations, not times. Its work is assumed to end
// when judging began, and the time before it counts as waiting for a runner.
func traceAttempt(c *call.Call, a *attempt.Attempt, judged, ended time.Time) {
	if c.Span == nil {
		return
	}
	ran := judged.Add(-a.Result.Timing.Run)
	if a.Result.Timing.Gate > 0 {
		c.Span.Stage("gate", ran.Add(-a.Result.Timing.Gate), ran)
	}
	run := c.Span.Begin("run", ran)
	run.Note("recurgent.attempt_id", a.ID)
	run.End(judged)
	c.Span.Stage("judge", judged, ended)
}
