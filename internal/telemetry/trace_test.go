package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A collector is an OpenTelemetry collector over HTTP and gRPC.
type collector struct {
	coltrace.UnimplementedTraceServiceServer
	url string

	mu    sync.Mutex
	spans []*otlp.Span // guarded by mu
}

func (c *collector) Export(_ context.Context,
	r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	return &coltrace.ExportTraceServiceResponse{}, nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	data, err := io.ReadAll(body)
	var request coltrace.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(data, &request) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	response, _ := c.Export(r.Context(), &request)
	out, _ := proto.Marshal(response)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func (c *collector) named(t *testing.T, name string) *otlp.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.GetName() == name {
			return s
		}
	}
	t.Fatalf("no span %q among %d", name, len(c.spans))
	return nil
}

func collectHTTP(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func collectGRPC(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, s := &collector{url: "http://" + l.Addr().String()}, grpc.NewServer()
	coltrace.RegisterTraceServiceServer(s, c)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
	return c
}

func newTracer(t testing.TB, url, protocol string, queue int, log io.Writer) (*Tracer, *prometheus.Registry) {
	t.Helper()
	m, r := newMetrics(t)
	o := DefaultTraceOptions()
	o.Endpoint, o.Protocol, o.Metrics, o.Version, o.Queue, o.Logger, o.Server = url, protocol, m, "v1", queue,
		zerolog.New(log), "mistral_ai"
	tracer, err := NewTracer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tracer, r
}

const (
	aTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aParent = "00-" + aTrace + "-00f067aa0ba902b7-01"
)

// Spans reach a collector by both protocols, with the trace and the parent that the client named.
func TestSpansReachTheCollector(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol string
		collect  func(*testing.T) *collector
	}{{ProtocolHTTP, collectHTTP}, {ProtocolGRPC, collectGRPC}} {
		t.Run(c.protocol, func(t *testing.T) {
			to := c.collect(t)
			tracer, r := newTracer(t, to.url, c.protocol, 100, io.Discard)
			at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
			call := tracer.Start(SpanStart{Name: "call a.b", TraceID: aTrace, TraceParent: aParent, At: at})
			forge := call.Begin("forge", at)
			question := forge.Ask("gpt", at)
			if got := question.TraceParent(); !strings.HasPrefix(got, "00-"+aTrace+"-") ||
				!strings.HasSuffix(got, "-01") {
				t.Errorf("the model gets the traceparent %q", got)
			}
			question.Answered("rate_limited", "", agent.Usage{}, at.Add(time.Second))
			forge.End(at.Add(time.Second))
			nested := tracer.Start(SpanStart{Name: "call c.d", TraceID: aTrace, Parent: call, At: at})
			nested.EndCall(&agent.LogEntry{Role: "c", Method: "d", OutcomeStatus: agent.StatusError,
				FailureClass: agent.ClassAuthored, OutcomeErrorType: "tool_error", AttemptID: "x.1"}, at)
			call.EndCall(&agent.LogEntry{Role: "a", Method: "b", OutcomeStatus: agent.StatusError,
				FailureClass: agent.ClassIntrinsic, OutcomeErrorType: "execution", Generation: "gen-1"},
				at.Add(2*time.Second))
			if err := tracer.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			root := to.named(t, "call a.b")
			if got := [2]string{hexOf(root.GetTraceId()),
				hexOf(root.GetParentSpanId())}; got != [2]string{aTrace, "00f067aa0ba902b7"} {
				t.Errorf("trace and parent %q", got)
			}
			if took := root.GetEndTimeUnixNano() - root.GetStartTimeUnixNano(); took != uint64(2*time.Second) {
				t.Errorf("the span took %d ns, want 2 s", took)
			}
			for child, parent := range map[string]string{"forge": "call a.b", "chat gpt": "forge",
				"call c.d": "call a.b"} {
				if !bytes.Equal(to.named(t, child).GetParentSpanId(), to.named(t, parent).GetSpanId()) {
					t.Errorf("%s is not below %s", child, parent)
				}
			}
			for name, want := range map[string]string{"call a.b": "STATUS_CODE_ERROR", "chat gpt": "STATUS_CODE_ERROR",
				"call c.d": "STATUS_CODE_UNSET"} {
				if got := to.named(t, name).GetStatus().GetCode().String(); got != want {
					t.Errorf("%s has the status %s, want %s", name, got, want)
				}
			}
			if got := attributes(root); got["recurgent.role"] != "a" || got["recurgent.failure_class"] != "intrinsic" ||
				got["error.type"] != "execution" || got["recurgent.generation"] != "gen-1" {
				t.Errorf("attributes %v", got)
			}
			if got := attributes(to.named(t, "chat gpt")); got["gen_ai.provider.name"] != "mistral_ai" ||
				got["gen_ai.request.model"] != "gpt" {
				t.Errorf("attributes of the question %v", got)
			}
			if got := value(t, r, "recurgent_trace_spans_total", "result=sent"); got != 4 {
				t.Errorf("%v spans counted as sent, want 4", got)
			}
		})
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

func attributes(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

// A trace that does not come from a client has the call's id in the log. A trace that the client does not sample is not
// sent.
func TestTraceIDsAndSampling(t *testing.T) {
	t.Parallel()
	to := collectHTTP(t)
	tracer, _ := newTracer(t, to.url, ProtocolHTTP, 100, io.Discard)
	at := time.Now()
	tracer.Start(SpanStart{Name: "ours", TraceID: aTrace, At: at}).End(at)
	tracer.Start(SpanStart{Name: "unsampled", TraceID: aTrace, TraceParent: "00-" + aTrace + "-00f067aa0ba902b7-00",
		At: at}).End(at)
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := to.named(t, "ours"); hexOf(s.GetTraceId()) != aTrace || len(s.GetParentSpanId()) != 0 {
		t.Errorf("trace %x below %x", s.GetTraceId(), s.GetParentSpanId())
	}
	if len(to.spans) != 1 {
		t.Errorf("%d spans were sent, want 1", len(to.spans))
	}
}

// A collector that rejects spans, or hangs, costs only spans. Ending a span does not block, losses are counted, a
// failure is logged once, and Shutdown does not outlast its context.
func TestFailingCollectors(t *testing.T) {
	t.Parallel()
	t.Run("refuses", func(t *testing.T) {
		s := httptest.NewServer(http.NotFoundHandler())
		defer s.Close()
		var log bytes.Buffer
		tracer, r := newTracer(t, s.URL, ProtocolHTTP, 100, &log)
		for range 3 {
			tracer.Start(SpanStart{Name: "x", TraceID: aTrace, At: time.Now()}).End(time.Now())
			_ = tracer.provider.ForceFlush(t.Context())
		}
		if err := tracer.Shutdown(t.Context()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if got := value(t, r, "recurgent_trace_spans_total", "result=failed"); got != 3 {
			t.Errorf("%v spans counted as failed, want 3", got)
		}
		if n := strings.Count(log.String(), "traces could not be sent"); n != 1 {
			t.Errorf("the failure is logged %d times:\n%s", n, log.String())
		}
	})
	t.Run("hangs", func(t *testing.T) {
		end := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		defer s.Close()
		defer close(end)
		tracer, r := newTracer(t, s.URL, ProtocolHTTP, 8, io.Discard)
		for range 100 {
			tracer.Start(SpanStart{Name: "x", TraceID: aTrace, At: time.Now()}).End(time.Now())
		}
		if got := value(t, r, "recurgent_trace_spans_total", "result=dropped"); got != 92 {
			t.Errorf("%v spans counted as dropped, want 92", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tracer.Shutdown(ctx); err == nil {
			t.Error("the end says that all was sent")
		}
	})
}

// Without a collector, tracing costs a call nothing.
func TestNoTracesAllocateNothing(t *testing.T) {
	var tracer *Tracer
	at, e := time.Now(), warmEntry()
	n := testing.AllocsPerRun(100, func() {
		call := tracer.Start(SpanStart{Name: "call", TraceID: aTrace, At: at})
		call.Stage("queue", at, at)
		forge := call.Begin("forge", at)
		forge.Note("k", "v")
		forge.Ask("gpt", at).Answered("ok", "gpt", agent.Usage{}, at)
		forge.End(at)
		call.EndFailed("x", at)
		call.EndCall(e, at)
		if call.TraceParent() != "" || tracer.Shutdown(t.Context()) != nil {
			t.Error("a span that is none speaks")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestTraceOptions(t *testing.T) {
	t.Parallel()
	m, _ := newMetrics(t)
	for name, o := range map[string]TraceOptions{
		"Metrics":  {Protocol: ProtocolHTTP, Queue: 1},
		"Protocol": {Protocol: "http/json", Queue: 1, Metrics: m},
		"Queue":    {Protocol: ProtocolHTTP, Metrics: m},
	} {
		if _, err := NewTracer(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without a good %s: %v", name, err)
		}
	}
}
