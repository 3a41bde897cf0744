package sandbox

import (
	"context"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// admission decides which calls may run now. A place is taken by a program that runs, not by one that waits for
// another program or for the network: so programs that wait for each other cannot block one another, and nested calls,
// of which each chain has one at most, are never made to wait. Owners take turns, and an owner of whom nothing
// runs gets a place beyond the usual number, so that nobody's spinning programs keep another waiting.
type admission struct {
	running int // places for programs that run
	waiting int // client calls under way, those that wait included

	mu      sync.Mutex
	busy    int                 // guarded by mu
	chains  int                 // guarded by mu
	byOwner map[agent.Owner]int // programs running, guarded by mu
	queue   []*waiter           // guarded by mu, in order of arrival
}

type waiter struct {
	owner agent.Owner
	depth int
	ready chan struct{} // closed when admitted
	in    bool          // guarded by admission.mu
}

func newAdmission(running, waiting int) *admission {
	return &admission{running: running, waiting: waiting, byOwner: map[agent.Owner]int{}}
}

// fits reports whether a client's call of the owner may start, or at a depth a check that waits. The caller holds mu.
func (a *admission) fits(owner agent.Owner, depth int) bool {
	if depth > 0 {
		return a.busy < a.running
	}
	if a.chains >= a.waiting {
		return false
	}
	return a.busy < a.running || a.byOwner[owner] == 0 && a.busy < 2*a.running
}

func (a *admission) take(owner agent.Owner, depth int) {
	a.busy++
	a.byOwner[owner]++
	if depth == 0 {
		a.chains++
	}
}

func (a *admission) give(owner agent.Owner, depth int) {
	a.busy--
	if n := a.byOwner[owner]; n > 1 {
		a.byOwner[owner] = n - 1
	} else {
		delete(a.byOwner, owner)
	}
	if depth == 0 {
		a.chains--
	}
}

// enter waits for a place, as a client's call does and nothing nested. It returns ctx's error when that comes first.
func (a *admission) enter(ctx context.Context, r *Request) error {
	return a.await(ctx, r, r.Depth == 0)
}

// await takes a place, and waits for it where waits is set.
func (a *admission) await(ctx context.Context, r *Request, waits bool) error {
	a.mu.Lock()
	if !waits || len(a.queue) == 0 && a.fits(r.Owner, r.Depth) {
		a.take(r.Owner, r.Depth)
		a.mu.Unlock()
		return nil
	}
	w := &waiter{owner: r.Owner, depth: r.Depth, ready: make(chan struct{})}
	a.queue = append(a.queue, w)
	a.wake()
	a.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.in { // admitted in the same moment
		a.give(r.Owner, r.Depth)
		a.wake()
		return ctx.Err()
	}
	for i := range a.queue {
		if a.queue[i] == w {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			break
		}
	}
	return ctx.Err()
}

// wake admits who fits, the owner with the least running first. The caller holds mu.
func (a *admission) wake() {
	for {
		best := -1
		for i, w := range a.queue {
			if a.fits(w.owner, w.depth) && (best < 0 || a.byOwner[w.owner] < a.byOwner[a.queue[best].owner]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := a.queue[best]
		a.queue = append(a.queue[:best], a.queue[best+1:]...)
		a.take(w.owner, w.depth)
		w.in = true
		close(w.ready)
	}
}

func (a *admission) leave(r *Request) {
	a.mu.Lock()
	a.give(r.Owner, r.Depth)
	if len(a.queue) > 0 {
		a.wake()
	}
	a.mu.Unlock()
}

// pause frees the place of a program that begins to wait; resume takes one again, at once.
func (a *admission) pause(r *Request) {
	a.mu.Lock()
	a.give(r.Owner, 1)
	if len(a.queue) > 0 {
		a.wake()
	}
	a.mu.Unlock()
}

func (a *admission) resume(r *Request) {
	a.mu.Lock()
	a.take(r.Owner, 1)
	a.mu.Unlock()
}

// counts returns programs running and calls waiting for a place.
func (a *admission) counts() (busy, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy, len(a.queue)
}
