package serve

import (
	"runtime/debug"
	"runtime/metrics"
)

// Bounds of debug.SetGCPercent.
const (
	usualGarbage = 100 // Go's default
	mostGarbage  = 400
	// busyRun is how many bytes a run must allocate to make more garbage worthwhile. The memory of other programs stays
	// small.
	busyRun = 512 << 10
)

// A Pace adapts the garbage collector to a process that runs one program. After a run that allocated much, it allows
// more garbage, up to a bound of the heap. That saves such programs a quarter of their time. Use NewPace; the zero
// value is not ready.
type Pace struct {
	heap    uint64 // most bytes of live data and garbage for which garbage is raised
	made    uint64 // bytes allocated until the end of the last run
	garbage int    // the current GC percentage
	figures []metrics.Sample
}

// NewPace returns a Pace for a process that may use memory bytes.
func NewPace(memory int64) *Pace {
	return &Pace{heap: uint64(memory / 8), garbage: usualGarbage,
		figures: []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}}
}

// Ran adjusts the collector. It must be called after each run.
func (p *Pace) Ran() {
	metrics.Read(p.figures)
	made, alive := p.figures[0].Value.Uint64(), max(p.figures[1].Value.Uint64(), 1)
	want := usualGarbage
	if made-p.made >= busyRun && alive < p.heap {
		want = int(min(max(100*(p.heap-alive)/alive, usualGarbage), mostGarbage))
	}
	p.made = made
	// SetGCPercent stops the world, so small changes are skipped.
	if change := want - p.garbage; change < -usualGarbage/4 || change > usualGarbage/4 {
		p.garbage = want
		debug.SetGCPercent(want)
	}
}
