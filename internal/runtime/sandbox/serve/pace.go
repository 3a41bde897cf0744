package serve

import (
	"runtime/debug"
	"runtime/metrics"
)

// Bounds of the garbage that programs may leave before it is collected, in percent of what is alive.
const (
	usualGarbage = 100 // as Go has it
	mostGarbage  = 400
	// busyRun is how many bytes a run allocates to whose program more garbage is worth it. The memory of the others stays small.
	busyRun = 512 << 10
)

// A Pace adapts the collector to a process that runs one program: after a run that allocated much there may be more garbage, up to a size
// of the heap, which saves such programs a quarter of their time. The zero value is not ready; see NewPace.
type Pace struct {
	heap    uint64 // bytes that live data and garbage together may take for that
	made    uint64 // bytes allocated until the last run ended
	garbage int    // as it is set, in percent
	figures []metrics.Sample
}

// NewPace returns a Pace for a process that may use memory bytes.
func NewPace(memory int64) *Pace {
	return &Pace{heap: uint64(memory / 8), garbage: usualGarbage,
		figures: []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}}
}

// Ran is called after each run.
func (p *Pace) Ran() {
	metrics.Read(p.figures)
	made, alive := p.figures[0].Value.Uint64(), max(p.figures[1].Value.Uint64(), 1)
	want := usualGarbage
	if made-p.made >= busyRun && alive < p.heap {
		want = int(min(max(100*(p.heap-alive)/alive, usualGarbage), mostGarbage))
	}
	p.made = made
	// to set it stops the program for a moment
	if change := want - p.garbage; change < -usualGarbage/4 || change > usualGarbage/4 {
		p.garbage = want
		debug.SetGCPercent(want)
	}
}
