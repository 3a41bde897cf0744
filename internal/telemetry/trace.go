package telemetry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Protocols for sending traces, as in OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	ProtocolHTTP = "http/protobuf"
	ProtocolGRPC = "grpc"
)

// TraceOptions configures a Tracer. Start from DefaultTraceOptions. The OpenTelemetry SDK reads further settings
// (headers, certificates, compression, batches, sampling, resource) from its standard OTEL_* variables.
type TraceOptions struct {
	Endpoint string   // base URL of the collector; "" means that of the SDK's variables
	Protocol string   // ProtocolHTTP or ProtocolGRPC
	Version  string   // of the daemon
	Server   string   // model server, as ModelServer names it; "" if there is none
	Metrics  *Metrics // counts spans by result; required
	Logger   zerolog.Logger
	Queue    int // maximum number of spans that wait for the collector; further ones are dropped and counted
}

// DefaultTraceOptions returns options with the defaults. Metrics must still be set.
func DefaultTraceOptions() TraceOptions {
	return TraceOptions{Protocol: ProtocolHTTP, Logger: zerolog.Nop(), Queue: sdktrace.DefaultMaxQueueSize}
}

func (o TraceOptions) validate() error {
	switch {
	case o.Metrics == nil:
		return errors.New("telemetry: Metrics is required")
	case o.Protocol != ProtocolHTTP && o.Protocol != ProtocolGRPC:
		return fmt.Errorf("telemetry: Protocol is %q, neither %s nor %s", o.Protocol, ProtocolHTTP, ProtocolGRPC)
	case o.Queue < 1:
		return errors.New("telemetry: Queue must be at least 1")
	}
	return nil
}

// A Tracer sends spans to an OpenTelemetry collector, batched and in the background. If the collector hangs, fails or
// does not exist, spans are lost and counted; nothing else is affected. A nil *Tracer returns nil spans, whose methods
// do nothing and do not allocate.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	server   []attribute.KeyValue // name of the model server; may be empty
}

// NewTracer creates a Tracer. It does not wait for the collector. The caller calls Shutdown.
func NewTracer(ctx context.Context, o TraceOptions) (*Tracer, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	exporter, err := newExporter(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	// The attributes from OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME come last, so they take precedence.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "recurgentd"),
		attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", uuid.NewString())), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newSender(exporter, o)),
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/recurgentd/recurgentd",
		trace.WithInstrumentationVersion(o.Version)), server: serverName(o.Server)}, nil
}

func newExporter(ctx context.Context, o TraceOptions) (sdktrace.SpanExporter, error) {
	if o.Protocol == ProtocolGRPC {
		if o.Endpoint == "" {
			return otlptracegrpc.New(ctx)
		}
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(o.Endpoint))
	}
	if o.Endpoint == "" {
		return otlptracehttp.New(ctx)
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, err
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()))
}

// Shutdown sends the waiting spans and stops the Tracer. It gives up when ctx ends. It may be called twice.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// SpanStart describes the beginning of a call.
type SpanStart struct {
	Name        string // such as "call calculator.add"
	TraceID     string // 32 hexadecimal digits; used if there is neither Parent nor TraceParent
	TraceParent string // the client's validated traceparent header, or ""
	Parent      *Span  // the span of the calling call, or nil
	At          time.Time
}

// A Span is one step of a trace. Its methods may be called concurrently. On nil they do nothing.
type Span struct {
	tracer *Tracer
	span   trace.Span
}

// Start starts the span of a call. The span is sent when it ends.
func (t *Tracer) Start(s SpanStart) *Span {
	if t == nil {
		return nil
	}
	ctx, kind := context.Background(), trace.SpanKindServer
	switch {
	case s.Parent != nil:
		ctx, kind = trace.ContextWithSpan(ctx, s.Parent.span), trace.SpanKindInternal
	case s.TraceParent != "":
		ctx = trace.ContextWithRemoteSpanContext(ctx, remote(s.TraceParent))
	default:
		ctx = context.WithValue(ctx, traceIDKey{}, s.TraceID)
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.At), trace.WithSpanKind(kind))
	return &Span{t, span}
}

// remote parses a validated traceparent: 00-<trace id>-<span id>-<flags>.
func remote(traceParent string) trace.SpanContext {
	c := trace.SpanContextConfig{Remote: true}
	if len(traceParent) < 55 {
		return trace.SpanContext{}
	}
	c.TraceID, _ = trace.TraceIDFromHex(traceParent[3:35])
	c.SpanID, _ = trace.SpanIDFromHex(traceParent[36:52])
	flags, _ := strconv.ParseUint(traceParent[53:55], 16, 8)
	c.TraceFlags = trace.TraceFlags(flags) & trace.FlagsSampled
	return trace.NewSpanContext(c)
}

func (s *Span) child(name string, kind trace.SpanKind, at time.Time) *Span {
	_, span := s.tracer.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name, trace.WithTimestamp(at),
		trace.WithSpanKind(kind))
	return &Span{s.tracer, span}
}

// Stage records a finished stage, even one without a duration.
func (s *Span) Stage(name string, began, ended time.Time) {
	if s == nil {
		return
	}
	s.child(name, trace.SpanKindInternal, began).End(ended)
}

// Begin starts a stage that has steps of its own.
func (s *Span) Begin(name string, at time.Time) *Span {
	if s == nil {
		return nil
	}
	return s.child(name, trace.SpanKindInternal, at)
}

// End ends a stage.
func (s *Span) End(at time.Time) {
	if s == nil {
		return
	}
	s.span.End(trace.WithTimestamp(at))
}

// Note sets an attribute of a stage.
func (s *Span) Note(key, value string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String(key, value))
}

// Ask starts a question to the model.
func (s *Span) Ask(model string, at time.Time) *Span {
	if s == nil {
		return nil
	}
	q := s.child("chat "+model, trace.SpanKindClient, at)
	q.span.SetAttributes(append(s.tracer.server, attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.request.model", model))...)
	return q
}

// Answered ends a question. outcome is as in ObserveProvider.
func (s *Span) Answered(outcome, model string, u agent.Usage, at time.Time) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("recurgent.provider.outcome", outcome),
		attribute.Int("recurgent.provider.requests", u.ModelRequests),
		attribute.Int("gen_ai.usage.input_tokens", u.PromptTokens),
		attribute.Int("gen_ai.usage.output_tokens", u.CompletionTokens))
	if model != "" {
		s.span.SetAttributes(attribute.String("gen_ai.response.model", model))
	}
	if outcome != "ok" {
		s.span.SetAttributes(attribute.String("error.type", outcome))
		s.span.SetStatus(codes.Error, outcome)
	}
	s.End(at)
}

// EndCall ends a call's span with attributes from its log entry. It sends no arguments, values or messages, because
// they may be secret. An error that the program itself reports is an answer and does not make the span an error.
func (s *Span) EndCall(e *agent.LogEntry, at time.Time) {
	if s == nil {
		return
	}
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.String("recurgent.role", e.Role), attribute.String("recurgent.method", e.Method),
			attribute.String("recurgent.status", e.OutcomeStatus),
			attribute.String("recurgent.source", e.ProgramSource),
			attribute.String("recurgent.call_id", e.CallID), attribute.String("recurgent.session_id", e.SessionID),
			attribute.Int("recurgent.depth", e.Depth))
		if e.Generation != "" {
			s.span.SetAttributes(attribute.String("recurgent.generation", e.Generation))
		}
		if e.AttemptID != "" {
			s.span.SetAttributes(attribute.String("recurgent.attempt_id", e.AttemptID))
		}
		if e.FailureClass != "" {
			s.span.SetAttributes(attribute.String("recurgent.failure_class", string(e.FailureClass)))
		}
		if e.OutcomeErrorType != "" {
			s.span.SetAttributes(attribute.String("error.type", e.OutcomeErrorType))
		}
	}
	if e.OutcomeStatus != agent.StatusOK && e.FailureClass != agent.ClassAuthored {
		s.span.SetStatus(codes.Error, e.OutcomeErrorType)
	}
	s.End(at)
}

// EndFailed ends a span with an error that is not an outcome.
func (s *Span) EndFailed(reason string, at time.Time) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("error.type", reason))
	s.span.SetStatus(codes.Error, reason)
	s.End(at)
}

// TraceParent returns the span's traceparent header for requests within it. It returns "" on nil.
func (s *Span) TraceParent() string {
	if s == nil {
		return ""
	}
	c := s.span.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// ids generates span ids. A new trace gets the id that its call has in the log and in exemplars.
type ids struct{}

type traceIDKey struct{}

func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	text, _ := ctx.Value(traceIDKey{}).(string)
	id, err := trace.TraceIDFromHex(text)
	if err != nil { // unreachable, because the daemon validates or generates trace ids
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	}
	return id, g.NewSpanID(ctx, id)
}

func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) // never all zero, which is invalid
	return id
}

// TraceParent returns the traceparent header (W3C Trace Context) for a request within the span. If the span is nil, the
// header has the trace's id, and a span id made from it, because the standard requires one.
func TraceParent(s *Span, traceID string) string {
	if s != nil {
		return s.TraceParent()
	}
	return "00-" + traceID + "-" + traceID[:16] + "-01"
}
