package sandbox

import (
	"context"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// admission decides which calls may run now.
//
// Running programs hold places. A program that waits for another program or the network gives its place back, so
// programs that wait for each other cannot deadlock. Nested calls and resuming programs wait for a place, too. They
// precede new calls of their owner, so work in progress finishes first.
//
// Owners take turns. An owner without a running program may get a place beyond the usual number, so other owners'
// spinning programs cannot keep it waiting. Background work comes last. fair.Share divides the client calls in flight,
// which include waiting ones, among the owners.
type admission struct {
	running int // places for running programs
	chains  int // client calls in flight at once, of all owners

	mu      sync.Mutex
	busy    int                   // guarded by mu; programs running
	under   int                   // guarded by mu; client calls in flight
	byOwner map[agent.Owner]int   // guarded by mu; programs running
	underOf map[agent.Owner]int   // guarded by mu; client calls in flight
	queues  map[lineKey][]*waiter // guarded by mu; contains no empty queue
	last    uint64                // guarded by mu; number of the latest waiter
}

// A lineKey identifies a queue of waiters. Each owner has one for new calls and one for parts of calls in flight:
// nested calls, resuming programs and checks. Background work has separate queues.
type lineKey struct {
	owner      agent.Owner
	part       bool
	background bool
}

type waiter struct {
	number uint64
	ready  chan struct{} // closed when admitted
}

// allChains returns how many client calls of all owners may be in flight if one owner may have waiting of them.
func allChains(waiting int) int { return waiting + (waiting+2)/3 }

// newAdmission returns an admission with running places for programs, and waiting client calls in flight per owner.
func newAdmission(running, waiting int) *admission {
	return &admission{running: running, chains: allChains(waiting), byOwner: map[agent.Owner]int{},
		underOf: map[agent.Owner]int{}, queues: map[lineKey][]*waiter{}}
}

// fits reports whether a waiter of the line may be admitted now. The caller holds mu.
func (a *admission) fits(k lineKey) bool {
	if !k.part && !fair.Fits(int64(a.chains), int64(a.under), int64(a.underOf[k.owner]), 1) {
		return false
	}
	return a.busy < a.running || !k.background && a.byOwner[k.owner] == 0 && len(a.byOwner) < 2*a.running
}

// take books an admitted program. give is its reverse. The caller holds mu.
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

// enter waits for a place, which leave returns. It returns ctx's error if ctx ends first; then no place is held.
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

// wake admits all waiters that fit, in the order of before. It considers only the first of each line. The caller holds
// mu.
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

// before reports whether w, the first waiter of line k, is admitted before than, the first of the other line.
// Foreground work precedes background work, then the owner with the fewest running programs, then parts of calls in
// flight, then the earlier waiter.
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

// pause releases the place of a program that begins to wait.
func (a *admission) pause(r *Request) {
	a.mu.Lock()
	a.give(lineKey{owner: r.Owner, part: true})
	a.wake()
	a.mu.Unlock()
}

// resume waits for a place again. If ctx ends first it takes one beyond the limit, so that the call can end.
func (a *admission) resume(ctx context.Context, r *Request) {
	k := lineKey{owner: r.Owner, part: true, background: InBackground(ctx)}
	if a.await(ctx, k) != nil {
		a.mu.Lock()
		a.take(k)
		a.mu.Unlock()
	}
}

// counts returns the number of running programs and the number of waiters.
func (a *admission) counts() (busy, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.queues {
		queued += len(q)
	}
	return a.busy, queued
}

type backgroundKey struct{}

// Background returns a context for work that no caller waits for, such as correcting a program after it has answered.
// With it, Load, Fix and Run wait behind foreground work for a place to run and for the compiler.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// InBackground reports whether ctx comes from Background.
func InBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }
