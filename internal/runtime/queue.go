package runtime

import (
	"context"
	"slices"
	"sync"
)

// queues admits one call per session at a time, in the order of arrival. The zero value is ready.
type queues struct {
	mu sync.Mutex
	// keyed by sessions with a running call. The channels are closed when their turns come; guarded by mu
	waiting map[string][]chan struct{}
}

// A place is a call's position in its session's queue.
type place struct {
	session string
	turn    chan struct{} // closed when the turn comes; nil if it came at once
	ahead   int           // calls before this one, including the running one
}

// join takes the next place in the session's queue. It returns ErrQueueFull if most calls wait already. The caller must
// await the turn of its place.
func (q *queues) join(session string, most int) (place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	waiting, busy := q.waiting[session]
	if !busy {
		q.waiting[session] = nil
		return place{session: session}, nil
	}
	if len(waiting) >= most {
		return place{}, ErrQueueFull
	}
	p := place{session: session, turn: make(chan struct{}), ahead: len(waiting) + 1}
	q.waiting[session] = append(waiting, p.turn)
	return p, nil
}

// await waits for the turn of the place. When ctx ends, it gives up the place and returns the cause, even if the turn
// has just come.
func (q *queues) await(ctx context.Context, p place) error {
	if p.turn == nil {
		return nil
	}
	select {
	case <-p.turn:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[p.session]
	if i := slices.Index(waiting, p.turn); i >= 0 {
		q.waiting[p.session] = slices.Delete(waiting, i, i+1)
	} else {
		q.next(p.session) // the turn has come already: hand it on
	}
	return context.Cause(ctx)
}

// enter takes a place and awaits its turn.
func (q *queues) enter(ctx context.Context, session string, most int) error {
	p, err := q.join(session, most)
	if err != nil {
		return err
	}
	return q.await(ctx, p)
}

// leave passes the turn to the next call.
func (q *queues) leave(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next(session)
}

// next passes the turn on. The caller holds mu.
func (q *queues) next(session string) {
	waiting := q.waiting[session]
	if len(waiting) == 0 {
		delete(q.waiting, session)
		return
	}
	close(waiting[0])
	q.waiting[session] = waiting[1:]
}

// length returns the number of calls that wait for their session's turn.
func (q *queues) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}

// methodKey identifies a role's method, and its artifact.
type methodKey struct{ role, method string }

// keyLocks holds a mutex for each method in use. The zero value is ready.
type keyLocks struct {
	mu    sync.Mutex
	locks map[methodKey]*keyLock // guarded by mu
}

// A keyLock exists while somebody holds or awaits it, so the map does not grow with the number of methods.
type keyLock struct {
	sync.Mutex
	users int // guarded by keyLocks.mu
}

// lock locks the key and returns its unlock function.
func (k *keyLocks) lock(key methodKey) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[methodKey]*keyLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyLock{}
		k.locks[key] = l
	}
	// Count the user before waiting for the lock, so the entry is not removed in between.
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
		k.mu.Unlock()
	}
}
