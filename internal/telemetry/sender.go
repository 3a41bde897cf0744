package telemetry

import (
	"context"
	"sync/atomic"

	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sender is the SDK's batch span processor with counted losses. It never blocks. It tracks the number of waiting spans,
// so it drops and counts the excess itself instead of leaving that to the SDK.
type sender struct {
	sdktrace.SpanProcessor
	room    int64         // maximum number of waiting spans
	waiting *atomic.Int64 // spans given to the processor and not exported yet
	spans   set
}

func newSender(e sdktrace.SpanExporter, o TraceOptions) *sender {
	waiting := &atomic.Int64{}
	counting := &countingExporter{SpanExporter: e, waiting: waiting, spans: o.Metrics.spans, log: o.Logger}
	return &sender{SpanProcessor: sdktrace.NewBatchSpanProcessor(counting, sdktrace.WithMaxQueueSize(o.Queue)),
		room:    int64(o.Queue),
		waiting: waiting, spans: o.Metrics.spans}
}

// OnEnd queues the span for export, or drops it.
func (s *sender) OnEnd(span sdktrace.ReadOnlySpan) {
	// The client may have asked not to sample this trace.
	if !span.SpanContext().IsSampled() {
		return
	}
	if s.waiting.Add(1) > s.room {
		s.waiting.Add(-1)
		s.spans.inc("dropped")
		return
	}
	s.SpanProcessor.OnEnd(span)
}

// countingExporter counts exported spans. It logs a failing collector once, and once again when it has recovered,
// because a collector may fail for days. Only one goroutine exports.
type countingExporter struct {
	sdktrace.SpanExporter
	waiting *atomic.Int64
	spans   set
	log     zerolog.Logger
	failing bool
}

// ExportSpans always returns nil. Failures are reported here; the SDK would pass them to a global handler.
func (c *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.waiting.Add(int64(-len(spans)))
	if err != nil {
		c.spans.add("failed", len(spans))
		if !c.failing {
			c.log.Warn().Err(err).Int("spans", len(spans)).Msg("traces could not be sent; calls go on without")
		}
		c.failing = true
		return nil
	}
	c.spans.add("sent", len(spans))
	if c.failing {
		c.log.Info().Msg("traces are sent again")
	}
	c.failing = false
	return nil
}
