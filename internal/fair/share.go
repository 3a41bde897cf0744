// Package fair divides what a daemon has among those who use it. A Share is a number of units, such as bytes or places, of
// which no owner can take so much that the others find none; Heavy divides places for long work so. Rates and Lines hold single owners to limits of their own.
//
// Owners are named by any comparable key. What is known of an owner that holds nothing and waits for nothing is dropped.
// The package knows nothing of HTTP, of calls, or of what the units are.
package fair

import (
	"context"
	"slices"
	"sync"
)

// A Share divides a number of units among owners. Its methods may be called concurrently.
//
// An owner may hold at most three times what is left free, so that whoever comes next finds room, and how much each may
// hold follows from how many take part: one owner alone holds three quarters at most, each of two three sevenths. An owner
// that holds nothing may take whatever is free.
//
// Requests of one owner are served in the order of their arrival. Among owners the one that holds least is served first,
// then the one whose request is oldest; requests of EnterLast come behind all others. As long as units are given back, each request for one unit is served in the end; one
// for many units may wait for as long as others take the units that it would need, piece by piece.
type Share[K comparable] struct {
	alone, total int64 // set once by NewShare

	mu      sync.Mutex
	used    int64                  // guarded by mu
	held    map[K]int64            // by owners that hold any; guarded by mu
	waiting map[lane[K]][]*request // of owners that wait, in order of arrival; guarded by mu
	last    uint64                 // number of the latest request that had to wait; guarded by mu
}

// A lane has an owner's requests that are served in order. Those of EnterLast have their own.
type lane[K comparable] struct {
	owner K
	last  bool
}

type request struct {
	units   int64
	number  uint64
	granted chan struct{} // closed when it was granted
}

// NewShare returns a share of which one owner alone may hold that many units, at least 1. A third more is there for others.
func NewShare[K comparable](alone int64) *Share[K] {
	alone = max(1, alone)
	return &Share[K]{alone: alone, total: alone + (alone+2)/3, held: map[K]int64{}, waiting: map[lane[K]][]*request{}}
}

// Try takes n units for the owner if it may have them now. It takes none while an earlier request of the owner waits.
func (s *Share[K]) Try(owner K, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.try(lane[K]{owner: owner}, n)
}

func (s *Share[K]) try(in lane[K], n int64) bool {
	if len(s.waiting[in]) > 0 || !s.fits(in.owner, n) {
		return false
	}
	s.take(in.owner, n)
	return true
}

// Enter takes n units for the owner and waits for them where it must. More than one owner alone may hold count as that
// many; Leave counts them the same way. It returns the cause of ctx's end when that comes first, and has taken nothing then.
func (s *Share[K]) Enter(ctx context.Context, owner K, n int64) error {
	return s.enter(ctx, lane[K]{owner: owner}, n)
}

// EnterLast is Enter for a request that comes behind those of Enter, of all owners, as long as one of these can be served.
func (s *Share[K]) EnterLast(ctx context.Context, owner K, n int64) error {
	return s.enter(ctx, lane[K]{owner, true}, n)
}

func (s *Share[K]) enter(ctx context.Context, in lane[K], n int64) error {
	n = min(n, s.alone)
	s.mu.Lock()
	if s.try(in, n) {
		s.mu.Unlock()
		return nil
	}
	s.last++
	r := &request{units: n, number: s.last, granted: make(chan struct{})}
	s.waiting[in] = append(s.waiting[in], r)
	s.mu.Unlock()
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting[in], r); i >= 0 {
		s.setWaiting(in, slices.Delete(s.waiting[in], i, i+1))
	} else { // granted at the same moment
		s.take(in.owner, -n)
	}
	s.wake() // whoever waited behind it
	return context.Cause(ctx)
}

// Leave gives n units of the owner back.
func (s *Share[K]) Leave(owner K, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(owner, -min(n, s.alone))
	s.wake()
}

// Used returns how many units all owners hold together, and how many requests wait.
func (s *Share[K]) Used() (units int64, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, requests := range s.waiting {
		waiting += len(requests)
	}
	return s.used, waiting
}

// Fits reports whether an owner that holds so many of the used units may take n more of the total: see Share.
func Fits(total, used, held, n int64) bool {
	free := total - used - n
	return free >= 0 && (held == 0 || held+n <= 3*free)
}

// fits reports whether the owner may take n more. The caller holds mu.
func (s *Share[K]) fits(owner K, n int64) bool {
	return n <= s.alone && Fits(s.total, s.used, s.held[owner], n)
}

// take adds n to what the owner holds. The caller holds mu.
func (s *Share[K]) take(owner K, n int64) {
	s.used += n
	if s.held[owner] += n; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

// setWaiting sets who waits in the lane. The caller holds mu.
func (s *Share[K]) setWaiting(in lane[K], requests []*request) {
	if len(requests) == 0 {
		delete(s.waiting, in)
		return
	}
	s.waiting[in] = requests
}

// wake grants what fits. The caller holds mu.
func (s *Share[K]) wake() {
	for {
		var best *request
		var whose lane[K]
		for in, requests := range s.waiting {
			if r := requests[0]; s.fits(in.owner, r.units) && (best == nil || s.before(in, r, whose, best)) {
				best, whose = r, in
			}
		}
		if best == nil {
			return
		}
		s.setWaiting(whose, s.waiting[whose][1:])
		s.take(whose.owner, best.units)
		close(best.granted)
	}
}

// before reports whether a's request r goes before b's request q. The caller holds mu.
func (s *Share[K]) before(a lane[K], r *request, b lane[K], q *request) bool {
	if a.last != b.last {
		return b.last
	}
	if s.held[a.owner] != s.held[b.owner] {
		return s.held[a.owner] < s.held[b.owner]
	}
	return r.number < q.number
}
