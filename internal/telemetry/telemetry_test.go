package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func newMetrics(t testing.TB) (*Metrics, *prometheus.Registry) {
	t.Helper()
	r := NewRegistry()
	return New(r, Build{"v1", "abc", "go1.26"}), r
}

func warmEntry() *agent.LogEntry {
	return &agent.LogEntry{Role: "calculator", Method: "add", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
		ProgramSource: agent.SourcePersisted, Generation: "gen-1",
		OutcomeStatus: agent.StatusOK, DurationMs: 0.4, HistoryRecordAppended: true, ConversationHistorySize: 3}
}

// value returns the sum of the samples of a counter or gauge whose labels include the wanted ones ("name=value").
func value(t *testing.T, r *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	sum, found := 0.0, false
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			have := map[string]bool{}
			for _, l := range m.GetLabel() {
				have[l.GetName()+"="+l.GetValue()] = true
			}
			for _, l := range labels {
				if !have[l] {
					continue metrics
				}
			}
			found = true
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	if !found {
		t.Fatalf("no sample of %s with %v", name, labels)
	}
	return sum
}

func TestLint(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	m.Route("/v1/calls", "GET", false).End(200, time.Millisecond)
	m.Problem("not_found")
	m.ObserveCall(warmEntry(), Stages{})
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "recurgent_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestClosedSetsStandAtZero(t *testing.T) {
	t.Parallel()
	_, r := newMetrics(t)
	for _, c := range []struct {
		name   string
		labels []string
	}{
		{"recurgent_calls_total", []string{"source=generated", "status=error", "class=intrinsic"}},
		{"recurgent_call_errors_total", []string{"error_type=contract_violation"}},
		{"recurgent_call_errors_total", []string{"error_type=other"}},
		{"recurgent_provider_requests_total", []string{"outcome=rate_limited"}},
		{"recurgent_contract_violations_total", []string{"mismatch=min_items_violation"}},
		{"recurgent_weak_successes_total", []string{"reason=success_no_parse"}},
		{"recurgent_history_query_patterns_total", []string{"pattern=group"}},
		{"recurgent_artifacts", []string{"state=durable"}},
		{"recurgent_runners", []string{"state=busy"}},
		{"recurgent_runners_killed_total", []string{"reason=deadline"}},
		{"recurgent_store_commits_total", nil},
		{"recurgent_saved_tokens_total", nil},
		{"recurgent_spend_used_ratio", []string{"window=owner_day"}},
		{"recurgent_spend_refused_total", []string{"window=month"}},
		{"recurgent_spend_reserved_tokens", nil},
		{"recurgent_ready", nil},
	} {
		if got := value(t, r, c.name, c.labels...); got != 0 {
			t.Errorf("%s%v = %v before anything happened", c.name, c.labels, got)
		}
	}
	if got := value(t, r, "recurgent_build_info", "version=v1", "revision=abc", "goversion=go1.26"); got != 1 {
		t.Errorf("build info = %v", got)
	}
}

func TestObserveCall(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	m.ObserveCall(warmEntry(), Stages{Queue: time.Millisecond, Run: time.Millisecond, Commit: time.Millisecond})
	failed := warmEntry()
	failed.ProgramSource, failed.OutcomeStatus, failed.OutcomeErrorType = agent.SourceGenerated, agent.StatusError,
		"movie_not_found"
	failed.FailureClass, failed.HistoryRecordAppended = agent.ClassAuthored, false
	failed.ContractValidationApplied, failed.ContractValidationMismatch = true, "min_items_violation"
	failed.WeakSuccess, failed.WeakSuccessReasons = true, []string{"empty_array:/movies", "weak_status:/status=partial",
		"an operator's own"}
	failed.UserCorrectionDetected, failed.UserCorrectionSignal = true, "temporal_reask"
	failed.HistoryAccessDetected, failed.HistoryQueryPatterns = true, []string{"filter", "count"}
	m.ObserveCall(failed, Stages{Forge: time.Second})
	m.ObserveProvider("ok", time.Second, agent.Usage{ModelRequests: 2, PromptTokens: 100, CompletionTokens: 10}, "")
	m.ObserveProvider("something new", time.Second, agent.Usage{}, "")
	m.ObserveReply("text_call")
	m.ObserveReply("")
	m.Saved(1, 1750)
	m.ObserveRepair(true)
	m.ObserveRepair(false)
	m.ObserveRegeneration()
	m.Guardrail("tool_registry_violation")
	m.Guardrail("a rule nobody knows")

	for _, c := range []struct {
		name   string
		labels string
		want   float64
	}{
		{"recurgent_calls_total", "source=persisted status=ok class=ok", 1},
		{"recurgent_calls_total", "source=generated status=error class=authored", 1},
		{"recurgent_calls_total", "", 2},
		{"recurgent_model_replies_total", "form=text_call", 1},
		{"recurgent_model_replies_total", "", 1},
		{"recurgent_call_errors_total", "error_type=other", 1},
		{"recurgent_call_duration_seconds", "source=persisted", 1},
		{"recurgent_call_stage_duration_seconds", "stage=queue", 1},
		{"recurgent_call_stage_duration_seconds", "stage=forge", 1},
		{"recurgent_call_stage_duration_seconds", "stage=judge", 0},
		{"recurgent_contract_checks_total", "result=failed", 1},
		{"recurgent_contract_violations_total", "mismatch=min_items_violation", 1},
		{"recurgent_weak_successes_total", "reason=empty_array", 1},
		{"recurgent_weak_successes_total", "reason=partial", 1},
		{"recurgent_weak_successes_total", "reason=other", 1},
		{"recurgent_user_corrections_total", "signal=temporal_reask", 1},
		{"recurgent_history_appends_total", "result=ok", 1},
		{"recurgent_history_appends_total", "result=failed", 1},
		{"recurgent_history_access_total", "", 1},
		{"recurgent_history_query_patterns_total", "", 2},
		{"recurgent_provider_requests_total", "outcome=ok", 1},
		{"recurgent_provider_requests_total", "outcome=other", 1},
		{"recurgent_model_requests_total", "", 2},
		{"recurgent_provider_tokens_total", "direction=prompt", 100},
		{"recurgent_saved_model_requests_total", "", 1},
		{"recurgent_saved_tokens_total", "", 1750},
		{"recurgent_repairs_total", "result=ok", 1},
		{"recurgent_repairs_total", "result=failed", 1},
		{"recurgent_regenerations_total", "", 1},
		{"recurgent_guardrails_total", "type=tool_registry_violation", 1},
		{"recurgent_guardrails_total", "type=other", 1},
		{"recurgent_artifact_calls_total", "role=calculator method=add status=ok", 1},
		{"recurgent_artifact_calls_total", "role=calculator method=add status=error", 1},
	} {
		if got := value(t, r, c.name, strings.Fields(c.labels)...); got != c.want {
			t.Errorf("%s{%s} = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// Configured namespaces have their own series, which start at 0. All others count together. Without configuration there
// are no such series.
func TestNamespaceFigures(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := New(r, Build{}, "acme", "beta")
	for _, name := range []agent.Namespace{"acme", "acme", "gamma", agent.DefaultNamespace} {
		m.In(name).ObserveCall(warmEntry(), Stages{})
	}
	failed := warmEntry()
	failed.OutcomeStatus = agent.StatusError
	m.In("acme").ObserveCall(failed, Stages{})
	m.In("acme").ObserveProvider("ok", time.Second, agent.Usage{ModelRequests: 2, PromptTokens: 100,
		CompletionTokens: 10}, "")
	m.In("gamma").ObserveProvider("ok", time.Second, agent.Usage{ModelRequests: 1, PromptTokens: 7}, "")
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"recurgent_namespace_calls_total", "namespace=acme status=ok", 2},
		{"recurgent_namespace_calls_total", "namespace=acme status=error", 1},
		{"recurgent_namespace_calls_total", "namespace=beta status=ok", 0},
		{"recurgent_namespace_calls_total", "namespace=other", 2},
		{"recurgent_namespace_model_requests_total", "namespace=acme", 2},
		{"recurgent_namespace_model_requests_total", "namespace=other", 1},
		{"recurgent_namespace_tokens_total", "namespace=acme direction=prompt", 100},
		{"recurgent_namespace_tokens_total", "namespace=acme direction=completion", 10},
		{"recurgent_namespace_tokens_total", "namespace=other direction=prompt", 7},
		{"recurgent_namespace_tokens_total", "namespace=beta direction=prompt", 0},
		{"recurgent_calls_total", "", 5}, {"recurgent_model_requests_total", "", 3},
	} {
		if got := value(t, r, c.name, strings.Fields(c.labels)...); got != c.want {
			t.Errorf("%s{%s} = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	_, plain := newMetrics(t)
	families, err := plain.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if l.GetName() == "namespace" {
					t.Errorf("%s has the label namespace=%s that nobody asked for", f.GetName(), l.GetValue())
				}
			}
		}
	}
}

// The two signals that a call can have are counted separately.
func TestCorrectionSignals(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	for _, signal := range []string{"temporal_reask", "temporal_reask_dispatch"} {
		e := warmEntry()
		e.UserCorrectionDetected, e.UserCorrectionSignal = true, signal
		m.ObserveCall(e, Stages{})
		if got := value(t, r, "recurgent_user_corrections_total", "signal="+signal); got != 1 {
			t.Errorf("%s counted %v times, want once", signal, got)
		}
	}
}

func TestCallExemplarsCarryTheTrace(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	m.ObserveCall(warmEntry(), Stages{})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "recurgent_call_duration_seconds" {
			continue
		}
		for _, metric := range f.GetMetric() {
			for _, b := range metric.GetHistogram().GetBucket() {
				for _, l := range b.GetExemplar().GetLabel() {
					if l.GetName() == "trace_id" && l.GetValue() == warmEntry().TraceID {
						return
					}
				}
			}
		}
	}
	t.Error("no exemplar with the call's trace id")
}

func TestSourcesAreReadAtScrapeTime(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	ready := errors.New("replaying")
	m.Watch(Sources{
		Store: func() Store { return Store{Commits: 7, Sessions: 3, Tools: 2, CheckpointLag: 5} },
		Runners: func() Runners {
			return Runners{Busy: 1, Idle: 2, Warm: 3, WarmBytes: 5000, Spawned: 9, EngineFailures: 2,
				Killed: map[string]int64{"deadline": 4, "a new reason": 1, "busy while idle": 2}}
		},
		Artifacts:       func() map[string]int { return map[string]int{"durable": 6, "a state nobody knows": 1} },
		Calls:           func() (int, int) { return 8, 9 },
		Recommendations: func() int { return 1 },
		Ready:           func() error { return ready },
	})
	check := func(name, labels string, want float64) {
		t.Helper()
		if got := value(t, r, name, strings.Fields(labels)...); got != want {
			t.Errorf("%s{%s} = %v, want %v", name, labels, got, want)
		}
	}
	check("recurgent_store_commits_total", "", 7)
	check("recurgent_sessions", "", 3)
	check("recurgent_tools", "", 2)
	check("recurgent_store_checkpoint_lag_entries", "", 5)
	check("recurgent_runners", "state=warm", 3)
	check("recurgent_runners_spawned_total", "", 9)
	check("recurgent_engine_failures_total", "", 2)
	check("recurgent_runners_killed_total", "reason=deadline", 4)
	check("recurgent_runners_killed_total", "reason=other", 1)
	check("recurgent_runners_killed_total", "reason=busy_while_idle", 2)
	check("recurgent_artifacts", "", 6)
	check("recurgent_calls_in_flight", "", 8)
	check("recurgent_calls_waiting", "", 9)
	check("recurgent_recommendations_open", "", 1)
	check("recurgent_ready", "", 0)
	ready = nil
	check("recurgent_ready", "", 1)
}

func TestRoute(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	route := m.Route("/v1/sessions/{id}", "GET", false)
	route.Begin()
	if got := value(t, r, "recurgent_http_requests_in_flight"); got != 1 {
		t.Errorf("in flight = %v, want 1", got)
	}
	route.End(404, time.Millisecond)
	m.Route("/v1/events", "GET", true).Begin()
	if got := value(t, r, "recurgent_http_requests_total", "route=/v1/sessions/{id}", "code=4xx"); got != 1 {
		t.Errorf("requests = %v, want 1", got)
	}
	if got := value(t, r, "recurgent_http_request_duration_seconds", "method=GET"); got != 1 {
		t.Errorf("durations = %v, want 1", got)
	}
}

// The series of a route appear when it is used: those of the status classes that occurred, and that of failures, which
// alerts watch.
func TestRoutesAppearWhenUsed(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	routes := func() (classes []string) {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "recurgent_http_requests_total" {
				continue
			}
			for _, one := range f.GetMetric() {
				for _, l := range one.GetLabel() {
					if l.GetName() == "code" {
						classes = append(classes, fmt.Sprint(l.GetValue(), " ", one.GetCounter().GetValue()))
					}
				}
			}
		}
		return classes
	}
	route := m.Route("/v1/calls", "GET", false)
	if got := routes(); len(got) > 0 {
		t.Errorf("before it is used: %q", got)
	}
	if got := value(t, r, "recurgent_http_problems_total"); got != 0 {
		t.Errorf("%v problems", got)
	}
	route.End(200, time.Millisecond)
	route.End(201, time.Millisecond)
	if got, want := routes(), []string{"2xx 2", "5xx 0"}; !slices.Equal(got, want) {
		t.Errorf("used: %q, want %q", got, want)
	}
	route.End(503, time.Millisecond)
	if got, want := routes(), []string{"2xx 2", "5xx 1"}; !slices.Equal(got, want) {
		t.Errorf("failed: %q, want %q", got, want)
	}
}

func TestModelServer(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://eu.api.openai.com/v1": "openai",
		"https://API.OpenAI.com:443/v1": "openai", "https://notopenai.com/v1": "notopenai.com",
		"https://api.openai.com.evil.example/v1":                    "api.openai.com.evil.example",
		"https://acme.openai.azure.com/openai/v1?api-version=1":     "azure.ai.openai",
		"https://generativelanguage.googleapis.com/v1beta/openai":   "gcp.gemini",
		"https://us-central1-aiplatform.googleapis.com/v1":          "gcp.vertex_ai",
		"https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1": "aws.bedrock",
		"https://api.mistral.ai/v1":                                 "mistral_ai", "https://api.x.ai/v1": "x_ai",
		"https://api.groq.com/openai/v1": "groq", "https://api.deepseek.com": "deepseek",
		"https://api.cohere.ai/compatibility/v1": "cohere", "https://api.perplexity.ai": "perplexity",
		"https://api.anthropic.com/v1": "anthropic", "http://127.0.0.1:11434/v1": "127.0.0.1",
		"http://[::1]:8000/v1": "::1", "http://models.acme.example/v1": "models.acme.example", "": "", "::": "",
	} {
		if got := ModelServer(url); got != want {
			t.Errorf("%s is %q, want %q", url, got, want)
		}
	}
}

// Roles are free text. 10,000 invented ones must not become series.
func TestCardinality(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	m.ObserveCall(warmEntry(), Stages{})
	before := seriesWithout(t, r, "recurgent_artifact_")
	ever := map[string]bool{}
	for i := range 10000 {
		e := warmEntry()
		e.Role, e.Method = fmt.Sprintf("role-%d", i), fmt.Sprintf("method \"%d\"\n", i)
		e.OutcomeErrorType, e.FailureClass = fmt.Sprintf("type_%d", i), agent.Class(fmt.Sprint(i))
		e.ProgramSource, e.ContractValidationApplied, e.ContractValidationMismatch = fmt.Sprint(i), true, fmt.Sprint(i)
		e.WeakSuccess, e.WeakSuccessReasons, e.HistoryQueryPatterns = true, []string{fmt.Sprint(i)},
			[]string{fmt.Sprint(i)}
		for range 1 + i/100 { // new pairs keep becoming the busiest
			m.busiest.count(e.Role, e.Method, true, 0)
		}
		m.ObserveCall(e, Stages{Run: time.Second})
		m.ObserveProvider(fmt.Sprint(i), 0, agent.Usage{}, "")
		m.Guardrail(fmt.Sprint(i))
		if i%50 == 0 {
			shown := 0
			for _, p := range m.busiest.top() {
				ever[p.role] = true
				shown++
			}
			if shown > maxShown {
				t.Fatalf("%d pairs in one scrape, want at most %d", shown, maxShown)
			}
		}
	}
	if after := seriesWithout(t, r, "recurgent_artifact_"); after != before {
		t.Errorf("series of closed sets grew from %d to %d", before, after)
	}
	if len(ever) != maxPairs {
		t.Errorf("%d pairs were shown, want %d: all that may be", len(ever), maxPairs)
	}
	if tracked := len(m.busiest.pairs); tracked > maxTracked {
		t.Errorf("%d pairs in memory, want at most %d", tracked, maxTracked)
	}
	if got := value(t, r, "recurgent_artifact_pairs_refused_total"); got == 0 {
		t.Error("the cut is not visible")
	}
}

func TestBusiestCountersNeverGoBack(t *testing.T) {
	t.Parallel()
	b := newBusiest(2, 1)
	b.count("a", "m", true, 1)
	b.top()
	for i := range 3 * maxTracked {
		b.count(fmt.Sprint("r", i), "m", true, 1)
	}
	b.count("a", "m", true, 1)
	if got := b.pairs[pair{"a", "m"}].ok.Load(); got != 2 {
		t.Errorf("a pair that was shown counts %d calls, want 2", got)
	}
}

func seriesWithout(t *testing.T, r *prometheus.Registry, prefix string) int {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "recurgent_") && !strings.HasPrefix(f.GetName(), prefix) {
			n += len(f.GetMetric())
		}
	}
	return n
}

func TestConcurrentObservers(t *testing.T) {
	t.Parallel()
	m, r := newMetrics(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				m.ObserveCall(warmEntry(), Stages{Run: 1})
			}
		})
		wg.Go(func() {
			if _, err := r.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := value(t, r, "recurgent_artifact_calls_total", "status=ok"); got != 1600 {
		t.Errorf("calls of the artifact = %v, want 1600", got)
	}
}

// Observing a warm call must not allocate anything except for an occasional exemplar.
func TestWarmCallAllocatesNothing(t *testing.T) {
	m, _ := newMetrics(t)
	e := warmEntry()
	m.ObserveCall(e, Stages{})
	if n := testing.AllocsPerRun(100,
		func() { m.ObserveCall(e, Stages{Queue: 1, Select: 1, Run: 1, Judge: 1, Commit: 1}) }); n != 0 {
		t.Errorf("%v allocations a warm call, want 0", n)
	}
}

func BenchmarkObserveWarmCall(b *testing.B) {
	m, _ := newMetrics(b)
	e := warmEntry()
	b.ReportAllocs()
	for b.Loop() {
		m.ObserveCall(e, Stages{Queue: 1, Select: 1, Run: 1, Judge: 1, Commit: 1})
	}
}
