package fair

import (
	"context"
	"slices"
	"sync"
)

// Lines limits each owner to a number of places. An owner that has all its places waits, in order of arrival. Owners do
// not wait for each other. The methods may be called concurrently; the zero value is ready to use.
type Lines[K comparable] struct {
	mu sync.Mutex
	by map[K]*line // owners that hold or wait for a place; guarded by mu
}

type line struct {
	most    int // set by the latest Enter
	taken   int
	waiting []chan struct{} // closed when their turn comes
}

// Enter takes a place for the owner, who may hold up to most places; less than 1 counts as 1. A changed limit applies
// at once, also to those who wait. Leave must be called for each successful Enter. If ctx ends first, Enter returns its
// cause and has taken nothing.
func (l *Lines[K]) Enter(ctx context.Context, owner K, most int) error {
	l.mu.Lock()
	if l.by == nil {
		l.by = map[K]*line{}
	}
	q := l.by[owner]
	if q == nil {
		q = &line{}
		l.by[owner] = q
	}
	turn := make(chan struct{})
	q.most, q.waiting = max(1, most), append(q.waiting, turn)
	q.wake()
	l.mu.Unlock()
	// wake may have granted the place already. That counts even if ctx has ended.
	select {
	case <-turn:
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(q.waiting, turn); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else { // the place was granted as ctx ended
		l.leave(owner, q)
	}
	return context.Cause(ctx)
}

// Leave gives back one place of the owner.
func (l *Lines[K]) Leave(owner K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(owner, l.by[owner])
}

func (l *Lines[K]) leave(owner K, q *line) {
	q.taken--
	q.wake()
	if q.taken == 0 {
		delete(l.by, owner)
	}
}

func (q *line) wake() {
	for q.taken < q.most && len(q.waiting) > 0 {
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
		q.taken++
	}
}
