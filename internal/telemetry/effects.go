package telemetry

import "github.com/prometheus/client_golang/prometheus"

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
