// Package telemetry provides the daemon's Prometheus metrics and OpenTelemetry traces. Metrics are registered with a
// registry that the caller passes in. Each name begins with recurgent_ and each unit is a base unit. Label values come
// from small closed sets whose series exist from the start, so rate() and alerts see the first event. Roles and methods
// are free text: only the metrics of the busiest artifacts have them, for at most 100 pairs in the life of a process.
//
// Observing a warm call takes no contended lock and no map access. It does not allocate, except for one call in 128,
// which carries an exemplar. Traces are optional: without a Tracer there are no spans, and a call pays for a nil check
// only. All methods may be called concurrently. The package knows nothing of stores, runners or HTTP handlers: it reads
// their figures through Sources at scrape time.
package telemetry

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Build is the content of recurgent_build_info.
type Build struct{ Version, Revision, GoVersion string }

// Stages has the time of each stage of a call. A stage that did not happen is 0 and is not observed.
type Stages struct{ Queue, Select, Forge, Gate, Run, Judge, Commit time.Duration }

// Metrics are the daemon's metrics, as seen by one namespace. New creates them; In returns those of another namespace.
type Metrics struct {
	*meters
	namespace *namespaceMeters // nil if no metrics have a namespace label
}

// meters are shared by all namespaces.
type meters struct {
	namespaces map[agent.Namespace]*namespaceMeters

	calls    [4][2][6]prometheus.Counter // by source, status and class: see the tables in labels.go
	errors   set
	duration [4]prometheus.Histogram // by source
	stages   [7]prometheus.Histogram
	depth    prometheus.Histogram

	provider, replies          set
	providerDuration           prometheus.Histogram
	modelRequests              prometheus.Counter
	promptTokens               prometheus.Counter
	completionTokens           prometheus.Counter
	savedRequests, savedTokens prometheus.Counter

	engineRuns    set
	native        nativeMetrics
	effects       effectMetrics
	access        accessMetrics
	spend         spendMetrics
	storage       set
	regenerations prometheus.Counter
	guardrails    set
	repairs       set
	verdicts      set
	fetches       set
	damagedFiles  prometheus.Counter

	contractChecks set
	mismatches     set
	weak           set
	weakCalls      prometheus.Counter
	unkeptCalls    prometheus.Counter
	corrections    set

	historyAppends  set
	historySize     prometheus.Histogram
	historyAccess   prometheus.Counter
	historyPatterns set

	httpRequests        *prometheus.CounterVec
	httpDuration        *prometheus.HistogramVec
	httpInFlight        prometheus.Gauge
	waiting             *prometheus.GaugeVec
	problems, throttled *prometheus.CounterVec

	spans   set
	busiest *busiest
	sources *sources
	warm    atomic.Uint32 // number of warm calls, to give one in 128 an exemplar
}

// Buckets in seconds. Warm calls take well under a millisecond; calls that forge a program take up to minutes.
var (
	callBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 8, 13,
		20, 30, 60, 120, 300}
	stageBuckets = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .1, .5, 1, 2,
		5, 10, 30, 60, 120, 300}
	modelBuckets = []float64{.05, .1, .25, .5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300}
	httpBuckets  = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
)

// NewRegistry returns a registry with the collectors of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// New creates the metrics and registers them with r. It panics if r has them already: each daemon in a process needs
// its own registry.
//
// Each of the namespaces gets its own series, labelled with its name; all other namespaces count as other. Without
// namespaces there are no such series.
func New(r prometheus.Registerer, b Build, namespaces ...agent.Namespace) *Metrics {
	f := factory{r}
	m := &Metrics{meters: &meters{}}
	m.newNamespaces(f, namespaces)
	m.newCalls(f)
	m.newModel(f)
	m.newQuality(f)
	m.newHTTP(f)
	m.access, m.spend, m.storage = newAccess(f), newSpend(f), newStorage(f)
	m.damagedFiles = f.counter("recurgent_damaged_files_total",
		"Reads of stored files that had other bytes than were stored, which were refused or cut off.")
	info := f.gaugeVec("recurgent_build_info", "The version that runs; always 1.", "version", "revision", "goversion")
	info.WithLabelValues(b.Version, b.Revision, b.GoVersion).Set(1)
	m.spans = f.set("recurgent_trace_spans_total",
		"Spans of traces, by what became of them: sent, failed at the collector, or dropped because too many waited for it.", "result", spanResults)
	m.busiest = newBusiest(maxPairs, maxShown)
	m.sources = newSources()
	r.MustRegister(m.busiest, m.sources)
	return m
}

func (m *Metrics) newCalls(f factory) {
	calls := f.counterVec("recurgent_calls_total",
		"Calls that ended, nested ones included, by where the program came from, outcome status and failure class.",
		"source", "status", "class")
	durations := f.histogramVec("recurgent_call_duration_seconds",
		"Time of a whole call, from its admission to its commit.", callBuckets, "source")
	for i, source := range callSources {
		for j, status := range callStatuses {
			for k, class := range callClasses {
				m.calls[i][j][k] = calls.WithLabelValues(source, status, class)
			}
		}
		m.duration[i] = durations.WithLabelValues(source).(prometheus.Histogram)
	}
	stages := f.histogramVec("recurgent_call_stage_duration_seconds",
		"Time of a call by stage; a stage that did not take place is not observed, and forge includes the gating of what was written.", stageBuckets, "stage")
	for i, stage := range stageNames {
		m.stages[i] = stages.WithLabelValues(stage).(prometheus.Histogram)
	}
	m.engineRuns = f.set("recurgent_engine_runs_total", "Runs of programs for calls, by the engine that ran them.",
		"engine", engines)
	m.native, m.effects = newNative(f), newEffects(f)
	m.depth = f.histogram("recurgent_call_depth", "Delegation depth of calls; 0 is a client's.",
		[]float64{0, 1, 2, 3, 4, 6, 8})
	m.errors = f.set("recurgent_call_errors_total", "Error outcomes by type; types that only programs use are other.",
		"error_type", append(agent.ErrorTypes(), other))
}

func (m *Metrics) newQuality(f factory) {
	m.contractChecks = f.set("recurgent_contract_checks_total", "Values checked against a contract.", "result", results)
	m.mismatches = f.set("recurgent_contract_violations_total", "Contract violations by mismatch.", "mismatch",
		mismatches)
	m.weak = f.set("recurgent_weak_successes_total",
		"Ok values that say of themselves that they achieved little, by reason; a value with two reasons counts under both.", "reason", weakReasons)
	m.weakCalls = f.counter("recurgent_weak_success_calls_total",
		"Calls whose ok value says of itself that it achieved little, each once whatever its reasons.")
	m.unkeptCalls = f.counter("recurgent_unkept_calls_total",
		"Calls that a new program answered which was not kept: what is stored was switched off or quarantined, and the program is no match for it.")
	m.corrections = f.set("recurgent_user_corrections_total",
		"Corrections by users: questions asked again soon after a weak or wrong answer, and answers called wrong, by signal.", "signal", correctionSignals)
	m.historyAppends = f.set("recurgent_history_appends_total",
		"Calls that ended, by whether their history record was appended. Where it could not be, the call has no line in the log either, and its client gets an error.", "result", results)
	m.historySize = f.histogram("recurgent_history_size_records", "Records in the session's history after a call.",
		[]float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000})
	m.historyAccess = f.counter("recurgent_history_access_total", "Calls whose program reads the conversation history.")
	m.historyPatterns = f.set("recurgent_history_query_patterns_total", "Calls by how their program reads the history.",
		"pattern", historyPatterns)
}

// ObserveCall counts a finished call. It only reads the entry.
func (m *Metrics) ObserveCall(e *agent.LogEntry, st Stages) {
	source := indexOf(callSources[:], e.ProgramSource, 3)
	status := indexOf(callStatuses[:], e.OutcomeStatus, 1)
	class := indexOf(callClasses[:], string(e.FailureClass), 0)
	if class == 0 && status == 0 {
		class = 1 // the log has no failure class for a successful call
	}
	m.calls[source][status][class].Inc()
	if e.OutcomeErrorType != "" {
		m.errors.inc(e.OutcomeErrorType)
	}
	seconds := e.DurationMs / 1000
	exemplar := m.exemplar(source, e.TraceID)
	observe(m.duration[source], seconds, exemplar)
	m.depth.Observe(float64(e.Depth))
	for i, d := range [...]time.Duration{st.Queue, st.Select, st.Forge, st.Gate, st.Run, st.Judge, st.Commit} {
		if d > 0 {
			observe(m.stages[i], d.Seconds(), exemplar)
		}
	}
	m.observeQuality(e)
	if m.namespace != nil {
		m.namespace.calls[status].Inc()
	}
	if e.Generation != "" {
		m.busiest.count(e.Role, e.Method, status == 0, seconds)
	}
}

// exemplar returns labels with the trace for each call that asked a model and for one warm call in 128. It returns nil
// for the others.
func (m *Metrics) exemplar(source int, traceID string) prometheus.Labels {
	warm := callSources[source] == agent.SourcePersisted || callSources[source] == agent.SourceNone
	if warm && m.warm.Add(1)%128 != 1 {
		return nil
	}
	return traceLabel(traceID)
}

// traceLabel returns the exemplar's label, or nil if the trace id is empty or too long. Prometheus limits the length of
// exemplars.
func traceLabel(traceID string) prometheus.Labels {
	if traceID == "" || len(traceID) > 64 {
		return nil
	}
	return prometheus.Labels{"trace_id": traceID}
}

func observe(h prometheus.Histogram, seconds float64, exemplar prometheus.Labels) {
	if exemplar == nil {
		h.Observe(seconds)
		return
	}
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, exemplar)
}

func (m *Metrics) observeQuality(e *agent.LogEntry) {
	if e.ContractValidationApplied {
		m.contractChecks.inc(result(e.ContractValidationPassed))
		if !e.ContractValidationPassed {
			m.mismatches.inc(e.ContractValidationMismatch)
		}
	}
	for i := range e.AttemptFailures {
		if f := &e.AttemptFailures[i]; f.ErrorType == agent.ErrContractViolation && f.AttemptID != e.AttemptID {
			mismatch, _ := f.Metadata["mismatch"].(string)
			m.mismatches.inc(mismatch) // repaired within the call; the last attempt was counted above
		}
	}
	if e.WeakSuccess {
		m.weakCalls.Inc()
		for _, reason := range e.WeakSuccessReasons {
			m.weak.inc(weakReason(reason))
		}
	}
	if e.ProgramUnkept {
		m.unkeptCalls.Inc()
	}
	if e.UserCorrectionDetected {
		m.corrections.inc(e.UserCorrectionSignal)
	}
	m.historyAppends.inc(result(e.HistoryRecordAppended))
	if e.ConversationHistorySize > 0 {
		m.historySize.Observe(float64(e.ConversationHistorySize))
	}
	if e.HistoryAccessDetected {
		m.historyAccess.Inc()
		for _, p := range e.HistoryQueryPatterns {
			m.historyPatterns.inc(p)
		}
	}
}

// AppendFailed counts a finished call whose commit failed, so neither its history record nor its log entry was stored.
func (m *Metrics) AppendFailed() { m.historyAppends.inc(result(false)) }

// Saved counts the requests and tokens that a warm call saved, which is what forging its program took.
func (m *Metrics) Saved(requests, tokens int) {
	m.savedRequests.Add(float64(max(requests, 0)))
	m.savedTokens.Add(float64(max(tokens, 0)))
}

// ObserveRepair counts a repair by the model. ok means that the repaired program returned an answer.
func (m *Metrics) ObserveRepair(ok bool) { m.repairs.inc(result(ok)) }

// ObserveRegeneration counts a program that replaces an earlier generation.
func (m *Metrics) ObserveRegeneration() { m.regenerations.Inc() }

// Verdict counts a person's verdict on a call, right or wrong. A wrong one also counts as a user's correction.
func (m *Metrics) Verdict(verdict string) {
	m.verdicts.inc(verdict)
	if verdict == agent.VerdictWrong {
		m.corrections.inc(signalVerdict)
	}
}

// Fetch counts a program's fetch by its result.
func (m *Metrics) Fetch(result string) { m.fetches.inc(result) }

// Guardrail counts a program that a guardrail rejected.
func (m *Metrics) Guardrail(kind string) { m.guardrails.inc(kind) }

// FileDamaged counts a read of a stored file whose bytes had changed.
func (m *Metrics) FileDamaged() { m.damagedFiles.Inc() }

// Results of BeyondManifest.
const (
	EffectObserved = "observed"
	EffectDenied   = "denied"
)

// Results of Write.
const (
	WriteSent     = "sent"
	WriteRepeated = "repeated" // answered from the call's ledger, without sending it again
	WriteUnknown  = "unknown"  // sent, but the answer was lost
	WriteDenied   = "denied"
	WriteFailed   = "failed" // it could not be sent
)

var (
	effectKinds   = [...]string{"host", "method", "tool"}
	effectResults = [...]string{EffectObserved, EffectDenied}
	writeResults  = []string{WriteSent, WriteRepeated, WriteUnknown, WriteDenied, WriteFailed}
)

// effectMetrics are the metrics about what programs access.
type effectMetrics struct {
	beyond [2][3]prometheus.Counter // by result and kind
	writes set
}

func newEffects(f factory) effectMetrics {
	m := effectMetrics{writes: f.set("recurgent_writes_total",
		"Requests of programs that write (POST, PUT, PATCH, DELETE, OPTIONS), by what became of them: sent; repeated, answered from an earlier attempt of the same call; unknown, sent and its answer lost; denied; failed, it did not leave.", "result", writeResults)}
	vec := f.counterVec("recurgent_effects_beyond_manifest_total",
		"Hosts, HTTP methods and tools that a run of a program reached, or tried to reach, although the effects manifest of its method lacks them.", "kind", "result")
	for i, result := range effectResults {
		for k, kind := range effectKinds {
			m.beyond[i][k] = vec.WithLabelValues(kind, result)
		}
	}
	return m
}

// BeyondManifest counts the hosts, HTTP methods and tools that a run accessed, or was denied, although its method's
// manifest lacks them. result is EffectObserved or EffectDenied.
func (m *Metrics) BeyondManifest(hosts, methods, tools int, result string) {
	i := indexOf(effectResults[:], result, 0)
	for k, n := range [...]int{hosts, methods, tools} {
		m.effects.beyond[i][k].Add(float64(n))
	}
}

// Write counts a program's writing request by its result, one of the Write constants.
func (m *Metrics) Write(result string) { m.effects.writes.inc(result) }

// Spend has the current figures of the caps on token use.
type Spend struct {
	Ratios   map[string]float64 // highest used share of any cap, by kind of window; 1 means all of it
	Reserved int64              // tokens reserved by requests in flight
}

// spendMetrics are the counters of caps.
type spendMetrics struct{ refused set }

func newSpend(f factory) spendMetrics {
	return spendMetrics{f.set("recurgent_spend_refused_total",
		"Requests to the model that were not sent because of a cap of tokens, by kind of window.", "window",
		append(slices.Clone(spendWindows), other))}
}

// SpendRefused counts a request to the model that was not sent because of a cap with that kind of window.
func (m *Metrics) SpendRefused(window string) { m.spend.refused.inc(window) }

// collectSpend sends the figures of caps. A nil read means zero figures.
func (s *sources) collectSpend(ch chan<- prometheus.Metric, read func() Spend) {
	var now Spend
	if read != nil {
		now = read()
	}
	for _, window := range spendWindows {
		ch <- prometheus.MustNewConstMetric(s.spendRatio, prometheus.GaugeValue, now.Ratios[window], window)
	}
	ch <- prometheus.MustNewConstMetric(s.reserved, prometheus.GaugeValue, float64(now.Reserved))
}

func newStorage(f factory) set {
	return f.set("recurgent_storage_refused_total",
		"Requests that were refused, and calls that ended, because a share of what may be stored is full, by kind.",
		"kind", append(slices.Clone(storedKinds), other))
}

// StorageRefused counts data that was not stored because its owner's share of that kind is full.
func (m *Metrics) StorageRefused(kind string) { m.storage.inc(kind) }

// collectStored sends the sizes of stored data and their limits.
func (s *sources) collectStored(ch chan<- prometheus.Metric, st *Store) {
	for _, kind := range storedKinds {
		ch <- prometheus.MustNewConstMetric(s.stored, prometheus.GaugeValue, float64(st.Stored[kind]), kind)
		ch <- prometheus.MustNewConstMetric(s.storedMost, prometheus.GaugeValue, float64(st.StoredMost[kind]), kind)
	}
}

// Model is when requests to the model last ended. A zero time means never.
type Model struct{ LastOK, LastFailed time.Time }

func newModelFigure() *prometheus.Desc {
	return prometheus.NewDesc("recurgent_model_last_request_timestamp_seconds",
		"When a request to the daemon's model ended last, by how, in seconds since 1970; 0 where none did.",
		[]string{"outcome"}, nil)
}

// collectModel sends the figures. A nil read means zero figures.
func collectModel(ch chan<- prometheus.Metric, d *prometheus.Desc, read func() Model) {
	var now Model
	if read != nil {
		now = read()
	}
	for outcome, at := range map[string]time.Time{"ok": now.LastOK, "failed": now.LastFailed} {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.UnixMilli()) / 1000
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, seconds, outcome)
	}
}

func (m *Metrics) newModel(f factory) {
	m.provider = f.set("recurgent_provider_requests_total",
		"Questions put to the model, retries not counted apart, by how they ended.", "outcome", providerOutcomes)
	m.providerDuration = f.histogram("recurgent_provider_request_duration_seconds",
		"Time of a question to the model, retries included.", modelBuckets)
	m.replies = f.set("recurgent_model_replies_total",
		"Replies to requests for a program, by where the program was: the arguments of a tool call, a call written into the text, a fence or bare source, or nowhere.", "form", replyForms)
	m.modelRequests = f.counter("recurgent_model_requests_total",
		"Requests sent to the model's server, retries included.")
	tokens := f.counterVec("recurgent_provider_tokens_total", "Tokens which the provider counted.", "direction")
	m.promptTokens, m.completionTokens = tokens.WithLabelValues("prompt"), tokens.WithLabelValues("completion")
	m.savedRequests = f.counter("recurgent_saved_model_requests_total",
		"Model requests that warm calls did not need, by what forging their programs took.")
	m.savedTokens = f.counter("recurgent_saved_tokens_total",
		"Tokens that warm calls did not need, by what forging their programs took.")
	m.repairs = f.set("recurgent_repairs_total", "Repairs by the model, by whether the repaired program answered.",
		"result", results)
	m.regenerations = f.counter("recurgent_regenerations_total", "Programs forged anew over an earlier generation.")
	m.verdicts = f.set("recurgent_verdicts_total", "What people said of calls, by verdict.", "verdict", verdictKinds)
	m.fetches = f.set("recurgent_fetches_total",
		"Fetches of programs, by where the answer came from (live, or of the answers that are kept), or by what went wrong.", "result", fetchResults)
	m.guardrails = f.set("recurgent_guardrails_total", "Programs refused by a guardrail, by type.", "type",
		guardrailTypes)
}

// ObserveProvider counts a question to the model. outcome is one of ok, rate_limited, server_error, network, timeout,
// rejected, no_answer, invalid_payload, cut_off, canceled and not_sent. d includes retries. traceID is the trace of the
// call that asked; "" means none.
func (m *Metrics) ObserveProvider(outcome string, d time.Duration, u agent.Usage, traceID string) {
	m.provider.inc(outcome)
	observe(m.providerDuration, d.Seconds(), traceLabel(traceID))
	m.modelRequests.Add(float64(max(u.ModelRequests, 0)))
	m.promptTokens.Add(float64(max(u.PromptTokens, 0)))
	m.completionTokens.Add(float64(max(u.CompletionTokens, 0)))
	if m.namespace != nil {
		m.namespace.ask(u)
	}
}

// ObserveReply counts a model's reply to a request for a program by its form. "" is not counted.
func (m *Metrics) ObserveReply(form string) {
	if form != "" {
		m.replies.inc(form)
	}
}
