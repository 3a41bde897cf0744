package runtime

import (
	"context"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// queues lets one call of a session in at a time, in the order of arrival. The zero value is ready.
type queues struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // by session that has a running call: the channel of whoever comes next is closed; guarded by mu
}

// enter waits for the session's turn. If it has to wait and p is not nil, it adds an event to p. It returns ErrQueueFull when
// most calls wait already, or the cause of ctx's end.
func (q *queues) enter(ctx context.Context, session string, most int, p *progress.Log) error {
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	waiting, busy := q.waiting[session]
	if !busy {
		q.waiting[session] = nil
		q.mu.Unlock()
		return nil
	}
	if len(waiting) >= most {
		q.mu.Unlock()
		return ErrQueueFull
	}
	turn := make(chan struct{})
	q.waiting[session] = append(waiting, turn)
	ahead := len(waiting) + 1 // the one that has the turn, and those that wait
	q.mu.Unlock()
	if p != nil {
		p.Add(progress.Queued, map[string]any{"ahead": ahead})
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = q.waiting[session]
	if i := slices.Index(waiting, turn); i >= 0 {
		q.waiting[session] = slices.Delete(waiting, i, i+1)
	} else {
		q.next(session) // the turn came at the same moment: hand it on
	}
	return context.Cause(ctx)
}

// leave gives the turn to the next.
func (q *queues) leave(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next(session)
}

// next is called with mu held.
func (q *queues) next(session string) {
	waiting := q.waiting[session]
	if len(waiting) == 0 {
		delete(q.waiting, session)
		return
	}
	close(waiting[0])
	q.waiting[session] = waiting[1:]
}

// length counts the calls that wait for their session's turn.
func (q *queues) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}

// methodKey names an artifact, or what is known of a role's method.
type methodKey struct{ role, method string }

// keyLocks is a mutex for each artifact that is in use. The zero value is ready.
type keyLocks struct {
	mu    sync.Mutex
	locks map[methodKey]*keyLock // guarded by mu
}

type keyLock struct {
	sync.Mutex
	users int // guarded by keyLocks.mu
}

// lock locks the key and returns its unlock.
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
