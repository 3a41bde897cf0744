// Package turns orders work within the process: the calls of one session run one at a time, in the order in which they
// joined, and one holder at a time has the lock of a method. It knows nothing about the work of a turn.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Queues admits one call per session at a time, in the order of arrival. The zero value is ready.
type Queues struct {
	mu sync.Mutex
	// keyed by sessions with a running call. The channels are closed when their turns come; guarded by mu
	waiting map[string][]chan struct{}
}

// A Place is a call's position in its session's queue.
type Place struct {
	session string
	turn    chan struct{} // closed when the turn comes; nil if it came at once
	Ahead   int           // calls before this one, including the running one
}

// Join takes the next place in the session's queue. It returns ErrFull if the given number of calls waits already. The
// caller must await the turn of its place.
func (q *Queues) Join(session string, most int) (Place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	waiting, busy := q.waiting[session]
	if !busy {
		q.waiting[session] = nil
		return Place{session: session}, nil
	}
	if len(waiting) >= most {
		return Place{}, ErrFull
	}
	p := Place{session: session, turn: make(chan struct{}), Ahead: len(waiting) + 1}
	q.waiting[session] = append(waiting, p.turn)
	return p, nil
}

// Await waits for the turn of the place. When ctx ends, it gives up the place and returns the cause, even if the turn
// has just come.
func (q *Queues) Await(ctx context.Context, p Place) error {
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

// Enter takes a place and awaits its turn.
func (q *Queues) Enter(ctx context.Context, session string, most int) error {
	p, err := q.Join(session, most)
	if err != nil {
		return err
	}
	return q.Await(ctx, p)
}

// Leave passes the turn to the next call.
func (q *Queues) Leave(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next(session)
}

// next passes the turn on. The caller holds mu.
func (q *Queues) next(session string) {
	waiting := q.waiting[session]
	if len(waiting) == 0 {
		delete(q.waiting, session)
		return
	}
	close(waiting[0])
	q.waiting[session] = waiting[1:]
}

// Length returns the number of calls that wait for their session's turn.
func (q *Queues) Length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}

// Method identifies a role's method, and its artifact.
type Method struct{ Role, Method string }

// Locks holds a mutex for each method in use. The zero value is ready.
type Locks struct {
	mu    sync.Mutex
	locks map[Method]*keyLock // guarded by mu
}

// A keyLock exists while somebody holds or awaits it, so the map does not grow with the number of methods.
type keyLock struct {
	sync.Mutex
	users int // guarded by Locks.mu
}

// Lock locks the key and returns its unlock function.
func (k *Locks) Lock(key Method) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[Method]*keyLock{}
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

var ErrFull = errors.New("too many calls are waiting")
