package serve

import (
	"runtime"
	"runtime/debug"
	"testing"
)

var sink [][]byte

// After a run that allocated much, more garbage is allowed, within the bound of the heap. A run that allocated little
// ends that.
func TestPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usualGarbage))
	defer func() { sink = nil }()
	allocate := func(n int) {
		for range n {
			sink = append(sink, make([]byte, 64<<10))
		}
	}
	const memory = 256 << 20
	p := NewPace(memory)
	p.Ran()
	for _, step := range []struct {
		what string
		run  func()
		most int // garbage in percent
		more bool
	}{
		{"a small run", func() { allocate(1) }, usualGarbage, false},
		{"a large run", func() { allocate(64); sink = nil; runtime.GC() }, mostGarbage, true},
		{"another", func() { allocate(64); sink = nil; runtime.GC() }, mostGarbage, true},
		{"a large run that keeps 20 MiB", func() { allocate(320); runtime.GC() }, mostGarbage / 2, false},
		{"a large run that keeps 40 MiB", func() { allocate(320); runtime.GC() }, usualGarbage, false},
		{"a small run again", func() { sink = nil; runtime.GC() }, usualGarbage, false},
	} {
		step.run()
		p.Ran()
		got := debug.SetGCPercent(usualGarbage)
		debug.SetGCPercent(got)
		if got != p.garbage || got > step.most || got > usualGarbage != step.more {
			t.Errorf("%s: %d %% of garbage, noted %d, want at most %d, more than usual: %v", step.what, got, p.garbage,
				step.most, step.more)
		}
	}
}
