package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Results of BeyondManifest.
const (
	EffectObserved = "observed"
	EffectDenied   = "denied"
)

// What became of a writing request.
const (
	WriteSent     = "sent"
	WriteRepeated = "repeated" // answered from the call's ledger
	WriteUnknown  = "unknown"  // sent, and its answer lost
	WriteDenied   = "denied"
	WriteFailed   = "failed" // it did not leave
)

var (
	effectKinds   = [...]string{"host", "method", "tool"}
	effectResults = [...]string{EffectObserved, EffectDenied}
	writeResults  = []string{WriteSent, WriteRepeated, WriteUnknown, WriteDenied, WriteFailed}
)

// effectMetrics are those of what programs reach.
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

// BeyondManifest counts what a run reached, or was denied (result), that the manifest of its method lacks.
func (m *Metrics) BeyondManifest(hosts, methods, tools int, result string) {
	i := indexOf(effectResults[:], result, 0)
	for k, n := range [...]int{hosts, methods, tools} {
		m.effects.beyond[i][k].Add(float64(n))
	}
}

// Write counts a writing request of a program by what became of it.
func (m *Metrics) Write(result string) { m.effects.writes.inc(result) }
