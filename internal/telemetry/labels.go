package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Other is the label value for everything outside of a closed set.
const Other = "other"

const other = Other

// signalVerdict is the signal of a correction by a person who called an answer wrong.
const signalVerdict = "verdict"

// The closed label sets. If a value may come from a person or a program, the set ends with other.
var (
	callSources  = [...]string{agent.SourceGenerated, agent.SourcePersisted, agent.SourceRepaired, agent.SourceNone}
	callStatuses = [...]string{agent.StatusOK, agent.StatusError}
	callClasses  = [...]string{"none", string(agent.ClassOK), string(agent.ClassAuthored), string(agent.ClassIntrinsic),
		string(agent.ClassAdaptive), string(agent.ClassExtrinsic)}
	stageNames = [...]string{"queue", "select", "forge", "gate", "run", "judge", "commit"}
	results    = []string{"ok", "failed"}

	providerOutcomes = []string{"ok", "rate_limited", "server_error", "network", "timeout", "rejected", "no_answer",
		"invalid_payload", "cut_off", "canceled", "not_sent", other}
	replyForms     = []string{"tool", "text_call", "fence", "none", other}
	verdictKinds   = []string{agent.VerdictRight, agent.VerdictWrong}
	guardrailTypes = []string{agent.ErrInvalidCode, agent.ErrToolRegistry, agent.ErrDependencyPolicy, other}
	mismatches     = []string{"type_mismatch", "missing_required_key", "min_items_violation",
		"property_type_mismatch", "nil_required_input", "schema_violation", other}
	// Only the statuses of the default policy: those that an operator adds count as other.
	weakReasons       = append(slices.Clone(agent.DefaultPolicy().WeakSuccess.Statuses), emptyArray, other)
	correctionSignals = []string{"temporal_reask", "temporal_reask_dispatch", signalVerdict, other}
	historyPatterns   = []string{"filter", "map", "slice", "count", "group", other}

	engines = []string{"go", "ssa", "yaegi"}

	tiers        = []string{"engine", "native"}
	builds       = []string{"ok", "refused", "failed", "canceled"}
	nativeBuilds = []string{"ok", "failed", "unsupported", "canceled"}
	nativeFaults = []string{"busy", "missing", "broken"}
	spendWindows = []string{"day", "month", "method_day", "owner_day", "daemon_day"}
	storedKinds  = []string{"files", "contexts", "histories", "values", "tools", "examples"}
	nativeStates = []string{"idle", "building", "checking", "native", "off"}

	fetchResults = []string{"live", "cached", "revalidated", "stale", "recorded", "dns", "refused", "timeout", "denied",
		"redirect_denied", "redirects", "too_large", "incomplete", "encoding", "network",
		"connection", other}

	spanResults = []string{"sent", "failed", "dropped"}

	artifactStates = []string{agent.StateCandidate, agent.StateProbation, agent.StateDurable, agent.StateDegraded}
	// The pool's reasons, with _ instead of spaces.
	runnerKills = []string{"died", "deadline", "canceled", "protocol", "flood", "leftovers", "refused", "failed",
		"busy_while_idle", "memory", "call_over",
		"spent", "age", "evicted", "idle", "shutdown", other}
)

// Kinds of weak success reasons.
const (
	emptyArray = "empty_array"
	weakStatus = "weak_status"
)

// weakReason maps a reason such as empty_array:/movies or weak_status:/status=partial to the closed set. Reasons
// contain a path within the value, which must not become a label.
func weakReason(reason string) string {
	kind, detail, _ := strings.Cut(reason, ":")
	if kind != weakStatus {
		return kind
	}
	return detail[strings.LastIndexByte(detail, '=')+1:]
}

func result(ok bool) string {
	if ok {
		return results[0]
	}
	return results[1]
}

// indexOf returns the index of v, or fallback. It searches linearly, because the sets are tiny.
func indexOf(values []string, v string, fallback int) int {
	for i := range values {
		if values[i] == v {
			return i
		}
	}
	return fallback
}

// set is a counter with one label from a closed set. Unknown values count as the last one.
type set struct {
	values   []string
	counters []prometheus.Counter
}

func (s set) inc(v string) { s.counters[indexOf(s.values, v, len(s.values)-1)].Inc() }

func (s set) add(v string, n int) { s.counters[indexOf(s.values, v, len(s.values)-1)].Add(float64(n)) }

// factory creates metrics and registers them.
type factory struct{ r prometheus.Registerer }

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.r.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	f.r.MustRegister(g)
	return g
}

func (f factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(g)
	return g
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(c)
	return c
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	f.r.MustRegister(h)
	return h
}

func (f factory) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.r.MustRegister(h)
	return h
}

func (f factory) set(name, help, label string, values []string) set {
	vec := f.counterVec(name, help, label)
	s := set{values: values, counters: make([]prometheus.Counter, len(values))}
	for i, v := range values {
		s.counters[i] = vec.WithLabelValues(v)
	}
	return s
}
