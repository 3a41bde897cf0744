package runtime

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// beginSpan begins the call's span, where there are traces: below that of the calling call, or in the client's trace.
func (c *opened) beginSpan(traceParent string, parent *telemetry.Span) {
	if c.r.o.Tracer == nil {
		return
	}
	c.span = c.r.o.Tracer.Start(telemetry.SpanStart{Name: "call " + c.role + "." + c.method, TraceID: c.traceID,
		TraceParent: traceParent,
		Parent:      parent, At: c.started})
}

// traceAttempt traces the stages of an attempt. The runner reports how long it took, not when: its work ended when judging
// began, and what comes before it is waiting for a runner.
func (c *opened) traceAttempt(a *attempted, judged, ended time.Time) {
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
