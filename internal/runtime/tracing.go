package runtime

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// beginSpan begins the call's span if traces are on: below the calling call's span, or in the client's trace.
func (c *Call) beginSpan(traceParent string, parent *telemetry.Span) {
	if c.env.Tracer == nil {
		return
	}
	c.span = c.env.Tracer.Start(telemetry.SpanStart{Name: "call " + c.role + "." + c.method, TraceID: c.traceID,
		TraceParent: traceParent,
		Parent:      parent, At: c.started})
}

// traceAttempt traces the stages of an attempt. The runner reports durations, not times. Its work is assumed to end
// when judging began, and the time before it counts as waiting for a runner.
func (c *Call) traceAttempt(a *attempted, judged, ended time.Time) {
	if c.span == nil {
		return
	}
	ran := judged.Add(-a.result.Timing.Run)
	if a.result.Timing.Gate > 0 {
		c.span.Stage("gate", ran.Add(-a.result.Timing.Gate), ran)
	}
	run := c.span.Begin("run", ran)
	run.Note("recurgent.attempt_id", a.id)
	run.End(judged)
	c.span.Stage("judge", judged, ended)
}
