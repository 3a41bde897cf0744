package sandbox

import (
	"container/list"
	"iter"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A warmSet holds the warm runners, which are idle and have compiled a program, and sums their memory. Pool.mu guards
// it.
type warmSet struct {
	byKey   map[warmKey][]*runner // most recently used last
	byOwner map[agent.Owner]*holding
	count   int
	bytes   int64 // sum of the runners' held
}

// A warmKey identifies what a runner serves: a program, by checksum, for an owner.
type warmKey struct {
	program string
	owner   agent.Owner
}

// A holding is one owner's share of the set.
type holding struct {
	runners list.List // of *runner, least recently used first
	bytes   int64
}

func newWarmSet() warmSet {
	return warmSet{byKey: map[warmKey][]*runner{}, byOwner: map[agent.Owner]*holding{}}
}

func (w *warmSet) add(r *runner) {
	key := r.key()
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

// take removes and returns the most recently used runner of the key, or nil if there is none.
func (w *warmSet) take(key warmKey) *runner {
	list := w.byKey[key]
	if len(list) == 0 {
		return nil
	}
	r := list[len(list)-1]
	w.remove(r)
	return r
}

// remove removes the runner, and reports whether it was in the set.
func (w *warmSet) remove(r *runner) bool {
	if r.place == nil {
		return false
	}
	key := r.key()
	w.byKey[key] = slices.DeleteFunc(w.byKey[key], func(e *runner) bool { return e == r })
	own := w.byOwner[r.owner]
	own.runners.Remove(r.place)
	own.bytes -= r.held
	w.bytes -= r.held
	w.count--
	r.place = nil
	return true
}

// evict removes and returns the least recently used runner among those of owners who hold at least the mean, so that
// one owner's many programs do not displace another owner's few. It returns nil if the set is empty.
func (w *warmSet) evict() *runner {
	if w.count == 0 {
		return nil
	}
	w.sweep()
	share := w.bytes / int64(len(w.byOwner))
	var oldest *runner
	for _, own := range w.byOwner {
		r := own.runners.Front().Value.(*runner)
		// At least one owner holds the mean or more, so oldest is never nil.
		if own.bytes >= share && (oldest == nil || r.idleSince.Before(oldest.idleSince)) {
			oldest = r
		}
	}
	w.remove(oldest)
	return oldest
}

// sweep removes map entries of programs and owners without a runner. remove leaves these behind, because the next call
// usually needs them again.
func (w *warmSet) sweep() {
	maps.DeleteFunc(w.byKey, func(_ warmKey, list []*runner) bool { return len(list) == 0 })
	maps.DeleteFunc(w.byOwner, func(_ agent.Owner, own *holding) bool { return own.runners.Len() == 0 })
}

// all yields the runners. The loop body may remove the current one.
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
