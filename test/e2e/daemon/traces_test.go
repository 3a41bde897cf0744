package daemon

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A spanCollector is an OpenTelemetry collector that takes traces over HTTP.
type spanCollector struct {
	mu       sync.Mutex
	spans    []*otlp.Span      // guarded by mu
	resource map[string]string // guarded by mu
	headers  http.Header       // of the last request; guarded by mu
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	data, err := io.ReadAll(body)
	var request coltrace.ExportTraceServiceRequest
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		proto.Unmarshal(data, &request) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header.Clone()
	for _, rs := range request.GetResourceSpans() {
		c.resource = map[string]string{}
		for _, a := range rs.GetResource().GetAttributes() {
			c.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// below returns the spans whose parent is the given one.
func (c *spanCollector) below(parent *otlp.Span) []*otlp.Span {
	var all []*otlp.Span
	for _, s := range c.spans {
		if parent != nil && string(s.GetParentSpanId()) == string(parent.GetSpanId()) {
			all = append(all, s)
		}
	}
	return all
}

// of returns the span of a call.
func (c *spanCollector) of(t *testing.T, callID string) *otlp.Span {
	t.Helper()
	s := c.find(callID)
	if s == nil {
		t.Fatalf("the call %s has no span", callID)
	}
	return s
}

// find returns the span of a call, nil where there is none.
func (c *spanCollector) find(callID string) *otlp.Span {
	for _, s := range c.spans {
		if spanAttributes(s)["recurgent.call_id"] == callID {
			return s
		}
	}
	return nil
}

// has reports whether the spans of all these calls have come.
func (c *spanCollector) has(callIDs ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(callIDs, func(id string) bool { return c.find(id) == nil })
}

func spanNames(spans []*otlp.Span) []string {
	names := map[string]bool{}
	for _, s := range spans {
		names[s.GetName()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func spanAttributes(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

// traced starts a daemon that sends its traces to url.
func traced(t *testing.T, m *rig.Model, url string, env ...string) *rig.Daemon {
	t.Helper()
	d := &rig.Daemon{}
	*d = *rig.Start(t, m)
	d.Env = append(d.Env, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url}, env...)...)
	d.Restart()
	t.Cleanup(func() { d.Stop(syscall.SIGKILL) })
	return d
}

// A spanOf is what the span of a call must have.
type spanOf struct {
	callID string
	status string
	has    map[string]string
}

func (c *spanCollector) wantSpans(t *testing.T, list []spanOf) {
	t.Helper()
	for _, want := range list {
		span := c.of(t, want.callID)
		got := spanAttributes(span)
		for k, v := range want.has {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", span.GetName(), k, got[k], v)
			}
		}
		if s := strings.TrimPrefix(span.GetStatus().GetCode().String(), "STATUS_CODE_"); s != want.status {
			t.Errorf("%s has the status %s, want %s", span.GetName(), s, want.status)
		}
	}
}

// child is the span of that name below the parent, all of which lie within it.
func (c *spanCollector) child(t *testing.T, parent *otlp.Span, name string) (found *otlp.Span) {
	t.Helper()
	for _, s := range c.below(parent) {
		if s.GetName() == name {
			found = s
		}
		if s.GetStartTimeUnixNano() > s.GetEndTimeUnixNano() || s.GetEndTimeUnixNano() > parent.GetEndTimeUnixNano() {
			t.Errorf("%s ends before it begins, or after its call", s.GetName())
		}
	}
	return found
}

// Optional OpenTelemetry traces by OTLP. One span a call with its stages below it, the questions to the
// model below the forge, and delegated calls below their caller, all in the client's trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	nest := rig.Program(`	o := call.Tool("helper").Call("half", 8)
	if !o.OK() { return nil, recurgent.Fail("x", "y") }
	return o.Value, nil`)
	m := rig.NewModel(t, rig.Script{"boss.halve": {nest}, "helper.half": {rig.Program(`	return 4, nil`)},
		"boss.explode": {rig.ProgPanic},
		"boss.refuse":  {rig.Program(`	return nil, recurgent.Fail("not_today", "secret words")`)}})
	c := &spanCollector{}
	collector := httptest.NewServer(c)
	defer collector.Close()
	d := traced(t, m, collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=blue",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_BSP_SCHEDULE_DELAY=1")
	s := d.Session("boss")
	const trace, client = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"halve"}`),
		map[string]string{"traceparent": "00-" + trace + "-" + client + "-01"})
	cold, _ := r.Object(t)["call_id"].(string)
	warm, panicked, refused := d.Call(s, "halve"), d.Call(s, "explode", "secret words"), d.Call(s, "refuse")
	d.WantValue(warm, 4, "persisted")
	rig.Until(t, "the spans of all calls, which end after those below them",
		func() bool { return c.has(cold, warm.CallID, panicked.CallID, refused.CallID) })

	c.mu.Lock()
	defer c.mu.Unlock()
	root := c.of(t, cold)
	if got := [2]string{hex.EncodeToString(root.GetTraceId()),
		hex.EncodeToString(root.GetParentSpanId())}; got != [2]string{trace, client} {
		t.Errorf("the call's trace and parent are %q", got)
	}
	wantStages := []string{"call helper.half", "commit", "forge", "judge", "queue", "run", "select"}
	if got := spanNames(c.below(root)); !slices.Equal(got, wantStages) {
		t.Errorf("below the cold call are %q, want %q", got, wantStages)
	}
	forge, nested := c.child(t, root, "forge"), c.child(t, root, "call helper.half")
	if got := spanNames(c.below(forge)); !slices.Equal(got, []string{"chat scripted", "gate"}) {
		t.Errorf("below the forge are %q", got)
	}
	if got := spanNames(c.below(nested)); !slices.Equal(got, []string{"commit", "forge", "judge", "run", "select"}) {
		t.Errorf("below the delegated call are %q", got)
	}
	c.wantSpans(t, []spanOf{
		{cold, "UNSET", map[string]string{"recurgent.role": "boss", "recurgent.method": "halve",
			"recurgent.status": "ok", "recurgent.source": "generated"}},
		{warm.CallID, "UNSET", map[string]string{"recurgent.source": "persisted", "recurgent.generation": "gen-1",
			"recurgent.session_id": s}},
		{panicked.CallID, "ERROR", map[string]string{"recurgent.status": "error",
			"recurgent.failure_class": "intrinsic", "error.type": "execution"}},
		{refused.CallID, "UNSET", map[string]string{"recurgent.status": "error", "recurgent.failure_class": "authored",
			"error.type": "not_today"}},
	})
	if got := hex.EncodeToString(c.of(t, warm.CallID).GetTraceId()); got != warm.TraceID {
		t.Errorf("a call without traceparent has the trace %s in its span and %s in its reply", got, warm.TraceID)
	}
	asked := m.Questions()[0].Header.Get("Traceparent")
	if chat := c.below(forge)[slices.IndexFunc(c.below(forge),
		func(s *otlp.Span) bool { return s.GetName() != "gate" })]; asked != "00-"+trace+"-"+hex.EncodeToString(chat.GetSpanId())+"-01" {
		t.Errorf("the model was asked within %q, not within the span %x", asked, chat.GetSpanId())
	}
	if c.resource["service.name"] != "recurgentd" || c.resource["service.version"] == "" ||
		c.resource["deployment.environment.name"] != "test" || c.headers.Get("X-Tenant") != "blue" {
		t.Errorf("resource %v, headers %v", c.resource, c.headers)
	}
	for _, s := range c.spans {
		if strings.Contains(s.String(), "secret") {
			t.Errorf("an argument or a message goes out: %s", s)
		}
	}
}

// What waits is sent before the daemon ends.
func TestTracesAreSentAtTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the second in which the last spans are to be sent")
	}
	t.Parallel()
	c := &spanCollector{}
	collector := httptest.NewServer(c)
	defer collector.Close()
	d := traced(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}), collector.URL,
		"OTEL_BSP_SCHEDULE_DELAY=3600000")
	call := d.Call(d.Session("calculator"), "add", 2, 3)
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !c.has(call.CallID) {
		t.Errorf("the call %s has no span", call.CallID)
	}
}

// lost finds spans that were counted as lost: refused ones failed, those behind a request that hangs are dropped.
var lost = regexp.MustCompile(`(?m)^recurgent_trace_spans_total\{result="(failed|dropped)"\} [1-9]`)

// A collector that is not there, and one that never answers, neither fail nor delay calls or the end, and are counted.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	nobody := "http://" + apptest.Address(t)
	end := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer hangs.Close()
	defer close(end)
	for name, url := range map[string]string{"nobody listens": nobody, "never answers": hangs.URL} {
		t.Run(name, func(t *testing.T) {
			// The queue has room for two spans: a call has more.
			d := traced(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}), url,
				"OTEL_BSP_MAX_QUEUE_SIZE=2", "OTEL_BSP_SCHEDULE_DELAY=1", "OTEL_EXPORTER_OTLP_TIMEOUT=60000")
			s := d.Session("calculator")
			for range 5 {
				d.WantValue(d.Call(s, "add", 2, 3), 5, "")
			}
			rig.Until(t, "a lost span to be counted", func() bool {
				metrics := string(d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)
				return lost.MatchString(metrics)
			})
			if code := d.Stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// openMetrics scrapes as Prometheus does with exemplars. The form is unknown to the client that compares with the
// document.
func openMetrics(t *testing.T, d *rig.Daemon) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/openmetrics-text") {
		t.Fatalf("%s: %v", res.Header.Get("Content-Type"), err)
	}
	return string(data)
}

// Stages of a call as histograms, and exemplars with the trace id where the scraper takes them.
func TestStagesAndExemplars(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	s := d.Session("calculator")
	cold := d.Call(s, "add", 1, 2)
	d.Call(s, "add", 1, 2)
	plain := string(d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)
	for _, stage := range strings.Fields("queue select forge gate run judge commit") {
		count := "recurgent_call_stage_duration_seconds_count{stage=\"" + stage + "\"} "
		if !strings.Contains(plain, count) || strings.Contains(plain, count+"0\n") {
			t.Errorf("the stage %s was not observed", stage)
		}
	}
	if strings.Contains(plain, "trace_id") {
		t.Error("the plain text format has exemplars")
	}
	open := openMetrics(t, d)
	exemplar := "# {trace_id=\"" + cold.TraceID + "\"}"
	for _, series := range []string{`recurgent_call_duration_seconds_bucket{source="generated"`,
		`recurgent_call_stage_duration_seconds_bucket{stage="forge"`,
		`recurgent_provider_request_duration_seconds_bucket{`} {
		found := false
		for line := range strings.Lines(open) {
			found = found || strings.HasPrefix(line, series) && strings.Contains(line, exemplar)
		}
		if !found {
			t.Errorf("no %s has the exemplar %s", series, exemplar)
		}
	}
	if !strings.HasSuffix(open, "# EOF\n") {
		t.Error("that is no OpenMetrics")
	}
}
