package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Options configures a Pool. Start from DefaultOptions.
type Options struct {
	Runners int // programs running at once, without those waiting for a host call
	// Waiting is the most client calls in runners at once, including those waiting for a host call. It is at least
	// Runners.
	Waiting   int
	Blank     int    // blank runners kept ready
	Isolation string // "program": a runner serves one program and one owner; "call": a runner serves one call
	// Require is the lowest level that New accepts: "full", "reduced", "process" or "auto", which is reduced on Linux
	// and process elsewhere.
	Require string
	// Engine is one of report.Engines. With report.EngineGo, runners only check programs and a compiler builds them.
	// With any other value yaegi runs what it can.
	Engine string

	MaxValue   int // bytes of a result
	MaxContext int // bytes of what a call may change in its context
	MaxDepth   int // levels of arrays and objects in a result
	MaxJournal int // bytes of a call's effect journal; a call that exceeds it cannot be replayed
	MaxAsks    int // host calls that one call may make
	MaxSource  int // bytes of a program

	MaxHostBytes int64 // bytes of all host calls of one call, parameters and answers together

	// Memory is how many bytes a runner may use: RLIMIT_DATA, less the data that every process has and never touches.
	// The heap limit is two thirds of it. IdleMemory derives the bound of a warm runner.
	Memory       int64
	RunnerMemory int64         // bytes that all idle runners, warm and blank, may hold together
	RunnerCalls  int           // calls after which a runner is replaced
	RunnerAge    time.Duration // age at which a runner is replaced
	// RunnerCPU is the processor time that a runner may use in its life. A longer call is bounded by its own deadline.
	RunnerCPU time.Duration
	Idle      time.Duration // idle time after which a warm runner is ended

	Dir string // directory for the runner executable, as an unnamed file; "" keeps it in memory only

	Native bool // New also checks the confinement of executables and tools

	Fetch *fetch.Client // performs programs' fetches; the caller closes it; nil denies fetches

	Log zerolog.Logger // receives runners' deaths and the observed confinement
}

// DefaultOptions returns the daemon's defaults.
func DefaultOptions() Options {
	n := runtime.NumCPU()
	return Options{
		Runners: n, Waiting: 8 * n, Blank: 2, Isolation: IsolationProgram, Require: "auto", Engine: report.EngineAuto,
		MaxValue: 4 << 20, MaxContext: 4 << 20, MaxDepth: 128, MaxJournal: 2 << 20, MaxAsks: 1000, MaxSource: 64 << 10,
		MaxHostBytes: 128 << 20,
		Memory:       256 << 20, RunnerMemory: 512 << 20, RunnerCalls: 100_000, RunnerAge: time.Hour,
		RunnerCPU: 10 * time.Minute, Idle: 10 * time.Minute,
		Log: zerolog.Nop(),
	}
}

// IdleMemory returns how many resident bytes a runner may hold between calls: a quarter of Memory for the heap, and the
// footprint of an empty runner.
func (o Options) IdleMemory() int64 { return o.Memory/4 + 32<<20 }

// leastHeld is roughly the least memory of an idle runner, in bytes. It bounds the number of idle runners.
const leastHeld = 4 << 20

// mostWarm returns the largest number of runners that fit RunnerMemory.
func (o Options) mostWarm() int { return int(o.RunnerMemory / leastHeld) }

// Values of Options.Isolation.
const (
	IsolationProgram = "program"
	IsolationCall    = "call"
)

// validate returns an error that names the first bad option.
func (o *Options) validate() error {
	for _, f := range []struct {
		name       string
		value, min int64
	}{
		{"Runners", int64(o.Runners), 1}, {"Waiting", int64(o.Waiting), int64(o.Runners)}, {"Blank", int64(o.Blank), 0},
		{"RunnerMemory", o.RunnerMemory, 0},
		{"MaxValue", int64(o.MaxValue), 1}, {"MaxContext", int64(o.MaxContext), 1}, {"MaxDepth", int64(o.MaxDepth), 1},
		{"MaxJournal", int64(o.MaxJournal), 1}, {"MaxAsks", int64(o.MaxAsks), 1}, {"MaxSource", int64(o.MaxSource), 1},
		{"MaxHostBytes", o.MaxHostBytes, 1},
		{"Memory", o.Memory, 128 << 20}, {"RunnerCalls", int64(o.RunnerCalls), 1}, {"RunnerAge", int64(o.RunnerAge), 1},
		{"RunnerCPU", int64(o.RunnerCPU), int64(time.Second)}, {"Idle", int64(o.Idle), 1},
	} {
		if f.value < f.min {
			return fmt.Errorf("sandbox: %s is %d, the least is %d", f.name, f.value, f.min)
		}
	}
	if o.Isolation != IsolationProgram && o.Isolation != IsolationCall {
		return fmt.Errorf("sandbox: Isolation %q is neither %q nor %q", o.Isolation, IsolationProgram, IsolationCall)
	}
	if !slices.Contains(report.Engines(), o.Engine) {
		return fmt.Errorf("sandbox: Engine %q is not one of %s", o.Engine, strings.Join(report.Engines(), ", "))
	}
	switch o.Require {
	case "auto", string(LevelFull), string(LevelReduced), string(LevelProcess):
	default:
		return fmt.Errorf("sandbox: Require %q is not one of auto, full, reduced, process", o.Require)
	}
	return nil
}

// required resolves Require to a level for this system.
func (o *Options) required() Level {
	if o.Require == "auto" {
		if strings.HasPrefix(runtime.GOOS, "linux") {
			return LevelReduced
		}
		return LevelProcess
	}
	return Level(o.Require)
}

// limits returns the bounds of a runner's answer.
func (o *Options) limits() wire.Limits {
	return wire.Limits{MaxValue: o.MaxValue, MaxContext: o.MaxContext, MaxDepth: o.MaxDepth}
}

// frameBound returns the largest answer frame accepted from a runner, in bytes.
func (o *Options) frameBound() int { return o.MaxValue + o.MaxContext + wire.MaxFacts }
