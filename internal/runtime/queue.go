package runtime

import (
	"context"
	"sync"
)

// queues lets one call of a session in at a time, in the order of arrival. The zero value is ready.
type queues struct {
	mu     sync.Mutex
	queues map[string]*queue // guarded by mu; a session nobody calls has none
}

type queue struct {
	waiting []chan struct{} // the head is told when it is its turn
}

// enter waits for the session's turn, and tells p when it has to, where p is not nil. It returns ErrQueueFull when most calls
// wait already, or the cause of ctx's end.
func (q *queues) enter(ctx context.Context, session string, most int, p *progress) error {
	q.mu.Lock()
	if q.queues == nil {
		q.queues = map[string]*queue{}
	}
	s, busy := q.queues[session]
	if !busy {
		q.queues[session] = &queue{}
		q.mu.Unlock()
		return nil
	}
	if len(s.waiting) >= most {
		q.mu.Unlock()
		return ErrQueueFull
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	ahead := len(s.waiting) // the one that has the turn, and those that wait
	q.mu.Unlock()
	if p != nil {
		p.tell(EventQueued, map[string]any{"ahead": ahead})
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	for i, w := range s.waiting {
		if w == turn {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			q.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	q.mu.Unlock()
	q.leave(session) // the turn came at the same moment: hand it on
	return context.Cause(ctx)
}

// leave gives the turn to the next.
func (q *queues) leave(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.queues[session]
	if len(s.waiting) == 0 {
		delete(q.queues, session)
		return
	}
	close(s.waiting[0])
	s.waiting = s.waiting[1:]
}

// keyLocks is a mutex for each key that is in use. The zero value is ready.
type keyLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock // guarded by mu
}

type keyLock struct {
	sync.Mutex
	users int // guarded by keyLocks.mu
}

// lock locks the key and returns its unlock.
func (k *keyLocks) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyLock{}
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
