package sandbox

import (
	"context"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// admission decides which calls may run now. A place is taken by a program that runs, not by one that waits for
// another program or for the network: so programs that wait for each other cannot block one another, although nested calls and programs that
// go on wait for a place, too. These come before their owner's new calls, so that what has begun ends. Owners take turns, and an owner of whom nothing
// runs gets a place beyond the usual number, so that nobody's spinning programs keep another waiting. Work in the background comes behind all
// others. Client calls under way, those that wait for something included, are divided as fair.Share divides.
type admission struct {
	running int // places for programs that run
	chains  int // client calls under way at once, of all owners

	mu      sync.Mutex
	busy    int                   // guarded by mu
	under   int                   // client calls under way; guarded by mu
	byOwner map[agent.Owner]int   // programs running; guarded by mu
	underOf map[agent.Owner]int   // client calls under way; guarded by mu
	queues  map[lineKey][]*waiter // none is empty; guarded by mu
	last    uint64                // number of the latest waiter; guarded by mu
}

// A lineKey names those who wait in order: calls of an owner, or what is part of those under way: nested calls, programs that go on, checks. Work in the background has lines of its own.
type lineKey struct {
	owner      agent.Owner
	part       bool
	background bool
}

type waiter struct {
	number uint64
	ready  chan struct{} // closed when admitted
}

// allChains is how many client calls of all owners may be under way where those of one may be so many.
func allChains(waiting int) int { return waiting + (waiting+2)/3 }

// newAdmission returns places for so many programs that run, and for so many client calls of one owner under way.
func newAdmission(running, waiting int) *admission {
	return &admission{running: running, chains: allChains(waiting), byOwner: map[agent.Owner]int{},
		underOf: map[agent.Owner]int{}, queues: map[lineKey][]*waiter{}}
}

// fits reports whether a client's call of the owner may start, or a part of one go on. The caller holds mu.
func (a *admission) fits(k lineKey) bool {
	if !k.part && !fair.Fits(int64(a.chains), int64(a.under), int64(a.underOf[k.owner]), 1) {
		return false
	}
	return a.busy < a.running || !k.background && a.byOwner[k.owner] == 0 && len(a.byOwner) < 2*a.running
}

func (a *admission) take(k lineKey) {
	a.busy++
	a.byOwner[k.owner]++
	if !k.part {
		a.under++
		a.underOf[k.owner]++
	}
}

func (a *admission) give(k lineKey) {
	a.busy--
	less(a.byOwner, k.owner)
	if !k.part {
		a.under--
		less(a.underOf, k.owner)
	}
}

func less(counts map[agent.Owner]int, owner agent.Owner) {
	if n := counts[owner]; n > 1 {
		counts[owner] = n - 1
	} else {
		delete(counts, owner)
	}
}

func lineOf(r *Request) lineKey { return lineKey{owner: r.Owner, part: r.Depth > 0} }

// enter waits for a place. It returns ctx's error when that comes first.
func (a *admission) enter(ctx context.Context, r *Request) error {
	k := lineOf(r)
	k.background = InBackground(ctx)
	return a.await(ctx, k)
}

func (a *admission) await(ctx context.Context, k lineKey) error {
	a.mu.Lock()
	if len(a.queues[k]) == 0 && a.fits(k) {
		a.take(k)
		a.mu.Unlock()
		return nil
	}
	a.last++
	w := &waiter{number: a.last, ready: make(chan struct{})}
	a.queues[k] = append(a.queues[k], w)
	a.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.queues[k], w); i >= 0 {
		a.setQueue(k, slices.Delete(a.queues[k], i, i+1))
	} else { // admitted in the same moment
		a.give(k)
		a.wake()
	}
	return ctx.Err()
}

func (a *admission) setQueue(k lineKey, q []*waiter) {
	if len(q) == 0 {
		delete(a.queues, k)
		return
	}
	a.queues[k] = q
}

// wake admits who fits: work in the background last, the owner with the least running first, then parts of calls under way, then who came first. It looks at the first of each
// line only. The caller holds mu.
func (a *admission) wake() {
	for {
		var best *waiter
		var line lineKey
		for k, q := range a.queues {
			if a.fits(k) && (best == nil || a.before(k, q[0], line, best)) {
				best, line = q[0], k
			}
		}
		if best == nil {
			return
		}
		a.setQueue(line, a.queues[line][1:])
		a.take(line)
		close(best.ready)
	}
}

// before reports whether the first waiter of the line k comes before that of another one.
func (a *admission) before(k lineKey, w *waiter, other lineKey, than *waiter) bool {
	if k.background != other.background {
		return other.background
	}
	if mine, theirs := a.byOwner[k.owner], a.byOwner[other.owner]; mine != theirs {
		return mine < theirs
	}
	if k.part != other.part {
		return k.part
	}
	return w.number < than.number
}

func (a *admission) leave(r *Request) {
	a.mu.Lock()
	a.give(lineOf(r))
	a.wake()
	a.mu.Unlock()
}

// pause frees the place of a program that begins to wait; resume waits for one again. Who is given up meanwhile gets one at once, to end.
func (a *admission) pause(r *Request) {
	a.mu.Lock()
	a.give(lineKey{owner: r.Owner, part: true})
	a.wake()
	a.mu.Unlock()
}

func (a *admission) resume(ctx context.Context, r *Request) {
	k := lineKey{owner: r.Owner, part: true, background: InBackground(ctx)}
	if a.await(ctx, k) != nil {
		a.mu.Lock()
		a.take(k)
		a.mu.Unlock()
	}
}

// counts returns programs running and calls waiting for a place.
func (a *admission) counts() (busy, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.queues {
		queued += len(q)
	}
	return a.busy, queued
}
