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
