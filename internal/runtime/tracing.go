package runtime

import (
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// beginSpan begins the call's span, where there are traces: below that of the calling call, or in the client's trace.
func (c *call) beginSpan(traceParent string, parent *telemetry.Span) {
	if c.r.o.Tracer == nil {
		return
	}
	c.span = c.r.o.Tracer.Start(telemetry.SpanStart{Name: "call " + c.role + "." + c.method, TraceID: c.traceID, TraceParent: traceParent,
		Parent: parent, At: c.started})
}

// tellAttempt tells the stages of an attempt. The runner tells how long it took, not when: its work ended when judging
// began, and what comes before it is waiting for a runner.
func (c *call) tellAttempt(a *attempt, judged, ended time.Time) {
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

// traceParent is what a model's server is told of the trace. Without traces there is no span to name, and the header
// carries the trace's id alone, in the form that the standard demands.
func traceParent(s *telemetry.Span, traceID string) string {
	if s != nil {
		return s.TraceParent()
	}
	return "00-" + traceID + "-" + traceID[:16] + "-01"
}

// asked names how a question to the model ended, for metrics and traces, and what it cost.
func asked(err error, usage agent.Usage) (outcome string, cost agent.Usage) {
	var failed *provider.Error
	var odd *predict.ReplyError
	switch {
	case err == nil:
		return "ok", usage
	case errors.As(err, &failed):
		return failed.Reason, failed.Usage
	case errors.As(err, &odd):
		return "invalid_payload", odd.Usage
	}
	return "canceled", agent.Usage{}
}
