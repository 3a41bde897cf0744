package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nativeMetrics are those of compiled programs.
type nativeMetrics struct {
	tierRuns    set
	compiled    set
	compileTime prometheus.Histogram
}

const was = "Kept for dashboards of before: 0."

func newNative(f factory) nativeMetrics {
	// An earlier daemon compiled programs in the background and compared them with an engine. Dashboards of then go on to find these, at 0.
	f.set("recurgent_native_builds_total", was, "outcome", nativeBuilds)
	f.histogram("recurgent_native_build_duration_seconds", was,
		[]float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120})
	f.set("recurgent_native_faults_total", was, "kind", nativeFaults)
	f.counter("recurgent_engine_differences_total", was)
	return nativeMetrics{
		tierRuns: f.set("recurgent_tier_runs_total",
			"Runs of programs for calls, by what answered: an interpreter (engine), or the compiled program (native).",
			"tier", tiers),
		compiled: f.set("recurgent_builds_total",
			"Programs compiled, by how that ended: refused, the compiler found something wrong with the program, or it needs more than a build may have.", "outcome", builds),
		compileTime: f.histogram("recurgent_build_duration_seconds",
			"Time of compiling a program, without the wait for a turn.",
			[]float64{.05, .1, .15, .25, .5, 1, 2, 5, 10, 30, 60}),
	}
}

// Run counts a run of a program: by the tier, engine or native, and by the engine, go, ssa or yaegi, which is "" for a compiled program.
func (m *Metrics) Run(engine, tier string) {
	m.native.tierRuns.inc(tier)
	if engine != "" {
		m.engineRuns.inc(engine)
	}
}

// Build counts a program that was compiled, by outcome: ok, refused, failed or canceled.
func (m *Metrics) Build(outcome string, d time.Duration) {
	m.native.compiled.inc(outcome)
	m.native.compileTime.Observe(d.Seconds())
}
