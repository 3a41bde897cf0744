package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nativeMetrics are those of compiled programs.
type nativeMetrics struct {
	tierRuns      set
	builds        set
	buildDuration prometheus.Histogram
	faults        set
	differences   prometheus.Counter
	compiled      set
	compileTime   prometheus.Histogram
}

func newNative(f factory) nativeMetrics {
	return nativeMetrics{
		tierRuns:      f.set("recurgent_tier_runs_total", "Runs of programs for calls, by what answered: an engine, or the compiled program.", "tier", tiers),
		builds:        f.set("recurgent_native_builds_total", "Programs compiled in the background, by how that ended.", "outcome", nativeBuilds),
		buildDuration: f.histogram("recurgent_native_build_duration_seconds", "Time of compiling a program.", []float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120}),
		compiled:      f.set("recurgent_builds_total", "Programs compiled under --engine go, by how that ended: refused, the compiler found something wrong with the program.", "outcome", builds),
		compileTime:   f.histogram("recurgent_build_duration_seconds", "Time of compiling a program under --engine go, without the wait for a turn.", []float64{.05, .1, .15, .25, .5, 1, 2, 5, 10, 30, 60}),
		faults:        f.set("recurgent_native_faults_total", "Runs that a compiled program could not end: busy, the machine lacked something; missing, its file was gone or damaged; broken, it failed.", "kind", nativeFaults),
		differences:   f.counter("recurgent_engine_differences_total", "Compiled programs that ended otherwise than on the engine, which is a fault of the daemon."),
	}
}

// Run counts a run of a program: by the tier, engine or native, and by the engine, go, ssa or yaegi, which is "" for a compiled program.
func (m *Metrics) Run(engine, tier string) {
	m.native.tierRuns.inc(tier)
	if engine != "" {
		m.engineRuns.inc(engine)
	}
}

// NativeBuild counts a program that was compiled, by outcome: ok, failed, unsupported or canceled.
func (m *Metrics) NativeBuild(outcome string, d time.Duration) {
	m.native.builds.inc(outcome)
	m.native.buildDuration.Observe(d.Seconds())
}

// Build counts a program that was compiled under --engine go, by outcome: ok, refused, failed or canceled.
func (m *Metrics) Build(outcome string, d time.Duration) {
	m.native.compiled.inc(outcome)
	m.native.compileTime.Observe(d.Seconds())
}

// NativeFault counts a run that a compiled program could not end, by kind: busy, missing or broken.
func (m *Metrics) NativeFault(kind string) { m.native.faults.inc(kind) }

// EngineDifference counts a compiled program that ended otherwise than on the engine.
func (m *Metrics) EngineDifference() { m.native.differences.Inc() }
