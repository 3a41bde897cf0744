package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nativeMetrics are the metrics of compiled programs.
type nativeMetrics struct {
	tierRuns    set
	compiled    set
	compileTime prometheus.Histogram
}

// was is the help text of metrics that earlier versions had.
const was = "Kept for dashboards of before: 0."

func newNative(f factory) nativeMetrics {
	// An earlier version compiled programs in the background and compared them with an engine. Old dashboards still
	// find these metrics, at 0.
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

// Run counts a run of a program. tier is engine or native. engine is go, ssa or yaegi, or "" for a compiled program.
func (m *Metrics) Run(engine, tier string) {
	m.native.tierRuns.inc(tier)
	if engine != "" {
		m.engineRuns.inc(engine)
	}
}

// Build counts the compilation of a program. outcome is ok, refused, failed or canceled.
func (m *Metrics) Build(outcome string, d time.Duration) {
	m.native.compiled.inc(outcome)
	m.native.compileTime.Observe(d.Seconds())
}
