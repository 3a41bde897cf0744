// Package fair divides a daemon's resources among those who use it. A Share is a number of units, such as bytes or
// places; it keeps any one owner from taking so much that others find none. Heavy uses a Share to divide places for
// long work. Rates and Lines limit each owner on its own.
//
// Owners are identified by any comparable key. The state of an owner that holds nothing and waits for nothing is
// dropped. The package knows nothing about HTTP, calls, or the meaning of the units.
package fair

import (
	"context"
	"slices"
	"sync"
)

// A Share divides a number of units among owners. Its methods may be called concurrently.
//
// An owner may hold at most three times the units that remain free, which leaves room for the next owner. The limit
// therefore depends on how many take part: an owner that is alone holds at most three quarters, each of two at most
// three sevenths. An owner that holds nothing may take whatever is free.
//
// Requests of one owner are granted in order of arrival. Among owners, the one that holds least comes first, then the
// one whose request is oldest. Requests of EnterLast come after all others. As long as units are given back, each
// request for one unit is granted eventually. A request for many units may wait for as long as others take the free
// units piece by piece.
type Share[K comparable] struct {
	// the most that one owner may hold; all units
	alone, total int64 // set once by NewShare

	mu      sync.Mutex
	used    int64                  // guarded by mu
	held    map[K]int64            // units by owner; only owners that hold any; guarded by mu
	waiting map[lane[K]][]*request // in order of arrival; no empty lanes; guarded by mu
	last    uint64                 // number of the latest waiting request; guarded by mu
}

// A lane is a queue of one owner's requests that are granted in order. Requests of EnterLast have a lane of their own.
type lane[K comparable] struct {
	owner K
	last  bool
}

type request struct {
	units   int64
	number  uint64        // order of arrival among all owners
	granted chan struct{} // closed when the units are granted
}

// NewShare returns a Share in which an owner that is alone may hold that many units; less than 1 counts as 1. A third
// more is reserved for others.
func NewShare[K comparable](alone int64) *Share[K] {
	alone = max(1, alone)
	return &Share[K]{alone: alone, total: alone + (alone+2)/3, held: map[K]int64{}, waiting: map[lane[K]][]*request{}}
}

// Try takes n units for the owner if they are available now, and reports whether it did. It takes none while an earlier
// request of the owner waits.
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

// Enter takes n units for the owner, waiting for them if necessary. A number above the most that one owner may hold
// counts as that most, in Leave as well. If ctx ends first, Enter returns its cause and has taken nothing.
func (s *Share[K]) Enter(ctx context.Context, owner K, n int64) error {
	return s.enter(ctx, lane[K]{owner: owner}, n)
}

// EnterLast is Enter with the lowest priority: it is granted only if no waiting request of Enter, of any owner, can be
// granted.
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
	} else { // granted as ctx ended
		s.take(in.owner, -n)
	}
	// Requests that waited behind this one may fit now.
	s.wake()
	return context.Cause(ctx)
}

// Leave gives back n units of the owner.
func (s *Share[K]) Leave(owner K, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(owner, -min(n, s.alone))
	s.wake()
}

// Used returns how many units are held, and how many requests wait.
func (s *Share[K]) Used() (units int64, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, requests := range s.waiting {
		waiting += len(requests)
	}
	return s.used, waiting
}

// Fits reports whether an owner that holds held of the used units may take n more, where total is the number of all
// units. See Share for the rule.
func Fits(total, used, held, n int64) bool {
	free := total - used - n
	return free >= 0 && (held == 0 || held+n <= 3*free)
}

// fits reports whether the owner may take n more units. The caller holds mu.
func (s *Share[K]) fits(owner K, n int64) bool {
	return n <= s.alone && Fits(s.total, s.used, s.held[owner], n)
}

// take adds n, which may be negative, to the units that the owner holds. The caller holds mu.
func (s *Share[K]) take(owner K, n int64) {
	s.used += n
	if s.held[owner] += n; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

// setWaiting sets the requests that wait in a lane. The caller holds mu.
func (s *Share[K]) setWaiting(in lane[K], requests []*request) {
	if len(requests) == 0 {
		delete(s.waiting, in)
		return
	}
	s.waiting[in] = requests
}

// wake grants all waiting requests that fit. The caller holds mu.
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
