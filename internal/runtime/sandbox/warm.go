package sandbox

import (
	"container/list"
	"iter"
	"maps"
	"slices"
)

// A warmSet holds the idle runners that have compiled a program, and the memory that they take. Pool.mu guards it.
type warmSet struct {
	byKey   map[warmKey][]*runner // the one used last at the end
	byOwner map[string]*holding
	count   int
	bytes   int64
}

// A warmKey says what a runner serves.
type warmKey struct{ program, owner string }

// A holding is what one owner's idle runners take.
type holding struct {
	runners list.List // of *runner, least recently used first
	bytes   int64
}

func newWarmSet() warmSet {
	return warmSet{byKey: map[warmKey][]*runner{}, byOwner: map[string]*holding{}}
}

func (w *warmSet) add(r *runner) {
	key := warmKey{r.program, r.owner}
	w.byKey[key] = append(w.byKey[key], r)
	own := w.byOwner[r.owner]
	if own == nil {
		own = &holding{}
		w.byOwner[r.owner] = own
	}
	r.place = own.runners.PushBack(r)
	own.bytes += r.held
	w.bytes += r.held
	w.count++
}

// take removes and returns the runner for the program and owner that was used last, nil when there is none.
func (w *warmSet) take(program, owner string) *runner {
	list := w.byKey[warmKey{program, owner}]
	if len(list) == 0 {
		return nil
	}
	r := list[len(list)-1]
	w.remove(r)
	return r
}

// remove reports whether the runner was there.
func (w *warmSet) remove(r *runner) bool {
	if r.place == nil {
		return false
	}
	key := warmKey{r.program, r.owner}
	w.byKey[key] = slices.DeleteFunc(w.byKey[key], func(e *runner) bool { return e == r })
	own := w.byOwner[r.owner]
	own.runners.Remove(r.place)
	own.bytes -= r.held
	w.bytes -= r.held
	w.count--
	r.place = nil
	return true
}

// evict removes and returns the runner whose place another one needs: the least recently used of the owners who hold more than their
// share of the room, so that nobody's many programs cost another owner a warm one. It returns nil when there is none.
func (w *warmSet) evict() *runner {
	if w.count == 0 {
		return nil
	}
	w.sweep()
	share := w.bytes / int64(len(w.byOwner))
	var oldest *runner
	for _, own := range w.byOwner {
		r := own.runners.Front().Value.(*runner)
		if own.bytes >= share && (oldest == nil || r.idleSince.Before(oldest.idleSince)) { // one owner at least has the mean or more
			oldest = r
		}
	}
	w.remove(oldest)
	return oldest
}

// sweep forgets programs and owners without a runner. Calls leave them, because their next one comes soon.
func (w *warmSet) sweep() {
	maps.DeleteFunc(w.byKey, func(_ warmKey, list []*runner) bool { return len(list) == 0 })
	maps.DeleteFunc(w.byOwner, func(_ string, own *holding) bool { return own.runners.Len() == 0 })
}

// all yields the runners. They may be removed meanwhile.
func (w *warmSet) all() iter.Seq[*runner] {
	return func(yield func(*runner) bool) {
		for _, list := range w.byKey {
			for _, r := range slices.Clone(list) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
