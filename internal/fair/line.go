package fair

import (
	"context"
	"slices"
	"sync"
)

// Lines hold owners to a number of places each: whoever comes when all of them are taken waits, in the order of arrival.
// Owners do not wait for each other. Its methods may be called concurrently; the zero value is ready.
type Lines[K comparable] struct {
	mu sync.Mutex
	by map[K]*line // of owners that have a place; guarded by mu
}

type line struct {
	most    int // as the latest Enter said
	taken   int
	waiting []chan struct{} // closed when their turn comes
}

// Enter takes a place of the owner, who may have most of them, at least 1. Another number than before holds from now on, for
// those who wait too. It returns the cause of ctx's end when that comes first, and has taken nothing then.
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
	} else { // its turn came at the same moment
		l.leave(owner, q)
	}
	return context.Cause(ctx)
}

// Leave gives a place of the owner back.
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
