package store

import (
	"time"
)

// rankHeap is a heap of roles, best first. Its elements keep their own index.
type rankHeap []*ranked

func (h rankHeap) Len() int { return len(h) }

func (h rankHeap) Less(i, j int) bool { return h[i].before(h[j]) }

func (h rankHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *rankHeap) Push(x any) {
	e := x.(*ranked)
	e.at = len(*h)
	*h = append(*h, e)
}

func (h *rankHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}

// dueEntry schedules a check whether the entry has become stale.
type dueEntry struct {
	at    time.Time
	entry *ranked
}

// dueHeap is a heap of due entries, earliest first.
type dueHeap []dueEntry

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueEntry)) }

func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = dueEntry{}
	*h = old[:len(old)-1]
	return x
}

// frontier is a heap of indexes into all, best first. It walks the heap all in order without changing it.
type frontier struct {
	all  rankHeap
	open []int
}

func (f *frontier) Len() int { return len(f.open) }

func (f *frontier) Less(i, j int) bool { return f.all[f.open[i]].before(f.all[f.open[j]]) }

func (f *frontier) Swap(i, j int) { f.open[i], f.open[j] = f.open[j], f.open[i] }

func (f *frontier) Push(x any) { f.open = append(f.open, x.(int)) }

func (f *frontier) Pop() any {
	n := len(f.open) - 1
	x := f.open[n]
	f.open = f.open[:n]
	return x
}
