package fair

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An owner that is alone gets its full share. However much it requests, there is room for others.
func TestShareLeavesRoom(t *testing.T) {
	t.Parallel()
	for alone := int64(1); alone <= 2000; alone++ {
		s := NewShare[string](alone)
		n := int64(0)
		for s.Try("flood", 1) {
			n++
		}
		if n != alone {
			t.Fatalf("of a share of %d one owner alone got %d", alone, n)
		}
		if !s.Try("other", 1) {
			t.Fatalf("of a share of %d another owner got nothing", alone)
		}
	}
	s := NewShare[int](1024)
	got := map[int]int{}
	for owner := range 4 { // one flood after the other
		for s.Try(owner, 1) {
			got[owner]++
		}
	}
	if got[0] != 1024 || got[1] != 256 || got[2] != 64 || got[3] < 16 {
		t.Errorf("four floods got %v", got)
	}
	if !s.Try(4, 1) {
		t.Error("nothing is left for a fifth owner")
	}
}

// Enter reduces requests for more than one owner may have. Try refuses them.
func TestShareOfLargeRequests(t *testing.T) {
	t.Parallel()
	s := NewShare[string](64)
	if s.Try("a", 65) {
		t.Error("an owner got more than it may hold alone")
	}
	if err := s.Enter(t.Context(), "a", 1000); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.Used(); n != 64 {
		t.Errorf("%d units are held", n)
	}
	if !s.Try("b", 16) || s.Try("a", 1) {
		t.Error("another owner found too little, or the first one more than it may have")
	}
	s.Leave("a", 1000)
	s.Leave("b", 16)
	if n, waiting := s.Used(); n != 0 || waiting != 0 || len(s.held)+len(s.waiting) != 0 {
		t.Errorf("left over: %d units, %d wait, %v, %v", n, waiting, s.held, s.waiting)
	}
}

// While ten thousand requests of one owner wait, another owner's requests are granted at once within its share, and in
// turn after that.
func TestShareByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShare[string](6) // 8 units in total
		var mu sync.Mutex
		var order []string
		ask := func(owner string) {
			go func() {
				if s.Enter(t.Context(), owner, 1) == nil {
					mu.Lock()
					order = append(order, owner)
					mu.Unlock()
				}
			}()
		}
		for range 10_000 {
			ask("flood")
		}
		synctest.Wait()
		ask("other")
		synctest.Wait()
		if want := append(slices.Repeat([]string{"flood"}, 6), "other"); !slices.Equal(order, want) {
			t.Fatalf("granted were %v", order)
		}
		for range 5 {
			ask("other")
		}
		synctest.Wait()
		order = nil
		for range 6 {
			s.Leave("flood", 1)
			synctest.Wait()
		}
		if len(order) < 4 || order[0] != "other" || order[1] != "other" || !slices.Contains(order, "flood") {
			t.Errorf("granted were %v; want the one who holds less first, then both", order)
		}
		if _, waiting := s.Used(); waiting != 10_000-6+5-len(order) {
			t.Errorf("%d wait", waiting)
		}
		held := func(owner string) int64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.held[owner]
		}
		for range 20_000 { // all are granted eventually
			owner := "flood"
			if held(owner) == 0 {
				owner = "other"
			}
			if held(owner) == 0 {
				break
			}
			s.Leave(owner, 1)
			synctest.Wait()
		}
		if n, waiting := s.Used(); n != 0 || waiting != 0 || len(s.held)+len(s.waiting) != 0 {
			t.Errorf("left over: %d units, %d wait, %v", n, waiting, s.held)
		}
	})
}

// Random operations violate no rule: bounds hold, each owner's requests are granted in order, requests that fit do not
// wait, requests for one unit do not starve while units are given back, and no state is left at the end.
func TestShareKeepsItsRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 19))
		synctest.Test(t, func(t *testing.T) {
			m := model{t: t, seed: seed, s: NewShare[int](1 + r.Int64N(20)), held: map[int][]int64{},
				waiting: map[int][]ask{}}
			for range 300 {
				m.step(r)
			}
			m.end()
		})
	}
}

type ask struct {
	units  int64
	got    chan struct{}
	cancel context.CancelFunc
}

type model struct {
	t       *testing.T
	seed    uint64
	s       *Share[int]
	held    map[int][]int64
	waiting map[int][]ask
}

func (m *model) step(r *rand.Rand) {
	owner := r.IntN(5)
	switch r.IntN(5) {
	case 0, 1:
		m.ask(owner, 1+r.Int64N(1+r.Int64N(m.s.alone)))
	case 2:
		if n := 1 + r.Int64N(m.s.alone); m.s.Try(owner, n) {
			m.held[owner] = append(m.held[owner], n)
		}
	case 3:
		m.leave(owner)
	case 4:
		if w := m.waiting[owner]; len(w) > 0 {
			i := r.IntN(len(w))
			w[i].cancel()
			m.waiting[owner] = slices.Delete(w, i, i+1)
		}
	}
	m.settle()
}

func (m *model) ask(owner int, n int64) {
	ctx, cancel := context.WithCancel(m.t.Context())
	a := ask{units: n, got: make(chan struct{}), cancel: cancel}
	go func() {
		if m.s.Enter(ctx, owner, n) == nil {
			close(a.got)
		}
	}()
	synctest.Wait() // arrivals have an order
	m.waiting[owner] = append(m.waiting[owner], a)
}

func (m *model) leave(owner int) {
	if h := m.held[owner]; len(h) > 0 {
		m.held[owner] = h[1:]
		m.s.Leave(owner, h[0])
	}
}

// settle records what was granted and checks the rules.
func (m *model) settle() {
	synctest.Wait()
	for owner, w := range m.waiting {
		for len(w) > 0 && granted(w[0]) {
			m.held[owner] = append(m.held[owner], w[0].units)
			w[0].cancel()
			w = w[1:]
		}
		for _, a := range w {
			if granted(a) {
				m.t.Fatalf("seed %d: owner %d was served out of its order", m.seed, owner)
			}
		}
		m.waiting[owner] = w
	}
	var used int64
	sums := map[int]int64{}
	for owner, h := range m.held {
		for _, n := range h {
			sums[owner] += n
		}
		used += sums[owner]
		if sums[owner] > m.s.alone {
			m.t.Fatalf("seed %d: owner %d holds %d of %d", m.seed, owner, sums[owner], m.s.alone)
		}
	}
	if n, _ := m.s.Used(); n != used || used > m.s.total {
		m.t.Fatalf("seed %d: %d units are used, %d held, %d there", m.seed, n, used, m.s.total)
	}
	for owner, w := range m.waiting {
		if len(w) > 0 && Fits(m.s.total, used, sums[owner], w[0].units) {
			m.t.Fatalf("seed %d: owner %d waits for %d units that it may have", m.seed, owner, w[0].units)
		}
	}
}

func granted(a ask) bool {
	select {
	case <-a.got:
		return true
	default:
		return false
	}
}

// end gives everything back and checks that nobody waits any more.
func (m *model) end() {
	for range 10_000 {
		busy := false
		for owner := range 5 {
			busy = busy || len(m.held[owner]) > 0
			m.leave(owner)
			m.settle()
		}
		if !busy {
			break
		}
	}
	if n, waiting := m.s.Used(); n != 0 || waiting != 0 || len(m.s.held)+len(m.s.waiting) != 0 {
		m.t.Fatalf("seed %d: left over: %d units, %d wait", m.seed, n, waiting)
	}
}

// Callers above the limit wait in order. A new limit applies to those who wait. Owners do not affect each other.
// Callers that give up leave no state.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines[string]
		var mu sync.Mutex
		var order []int
		enter := func(i, most int) {
			go func() {
				if err := l.Enter(t.Context(), "a", most); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		for i := range 6 {
			enter(i, 2)
		}
		if !slices.Equal(order, []int{0, 1}) {
			t.Fatalf("%v have places", order)
		}
		if err := l.Enter(t.Context(), "b", 1); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancelCause(t.Context())
		why := errors.New("gone")
		ended := make(chan error)
		go func() { ended <- l.Enter(gone, "a", 2) }()
		synctest.Wait()
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("who gave up got %v", err)
		}
		l.Leave("a")
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("%v have had places", order)
		}
		enter(6, 4)
		slices.Sort(order[3:]) // both at once
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("with four places %v", order)
		}
		enter(7, 1)
		l.Leave("a")
		l.Leave("a")
		l.Leave("a")
		synctest.Wait()
		if len(order) != 5 {
			t.Errorf("with one place %v", order)
		}
		for range 4 {
			l.Leave("a")
			synctest.Wait()
		}
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("the order was %v", order)
		}
		l.Leave("b")
		if len(l.by) != 0 {
			t.Errorf("left over: %v", l.by)
		}
	})
}

// With a thousand callers of one owner, many of whom give up, the limit is never exceeded.
func TestLinesUnderRace(t *testing.T) {
	t.Parallel()
	var l Lines[string]
	var mu sync.Mutex
	taken, most := 0, 0
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			if l.Enter(ctx, "a", 4) != nil {
				return
			}
			mu.Lock()
			taken++
			most = max(most, taken)
			mu.Unlock()
			mu.Lock()
			taken--
			mu.Unlock()
			l.Leave("a")
		})
	}
	all.Wait()
	if most > 4 || len(l.by) != 0 {
		t.Errorf("%d places were taken at once, %d lines are left", most, len(l.by))
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := NewRates[string](func() time.Time { return now })
	for i := range 5 {
		q := r.Take("a", 5)
		if want := (Quota{OK: true, Burst: 5, Window: time.Second, Left: 4 - i,
			Reset: time.Duration(i+1) * time.Second / 5}); q != want {
			t.Errorf("request %d: %+v, want %+v", i, q, want)
		}
	}
	for range 3 { // refused requests do not count
		if q := r.Take("a", 5); q.OK || q.Left != 0 || q.Reset != time.Second/5 {
			t.Errorf("over the rate: %+v", q)
		}
	}
	if q := r.Take("b", 0.5); !q.OK || q.Burst != 1 || q.Window != 2*time.Second || q.Left != 0 ||
		q.Reset != 2*time.Second {
		t.Errorf("another owner: %+v", q)
	}
	now = now.Add(time.Second / 5)
	if q := r.Take("a", 5); !q.OK {
		t.Errorf("a fifth of a second later: %+v", q)
	}
	if q := r.Take("a", 5); q.OK {
		t.Errorf("two requests a fifth of a second later: %+v", q)
	}
	if q := r.Take("a", 100); q.OK || q.Reset != 10*time.Millisecond { // from now on, not for the past
		t.Errorf("with another rate: %+v", q)
	}
	now = now.Add(10 * time.Millisecond)
	if q := r.Take("a", 100); !q.OK || q.Burst != 100 {
		t.Errorf("after a while: %+v", q)
	}
	if len(r.by) != 2 {
		t.Errorf("%d owners are known, want 2", len(r.by))
	}
	now = now.Add(time.Hour)
	r.Take("c", 1)
	if len(r.by) != 1 {
		t.Errorf("%d owners are known after an hour, want the one", len(r.by))
	}
	if q := r.Take("slow", 1e-12); !q.OK || q.Reset < 0 || q.Window < 0 {
		t.Errorf("a very small rate: %+v", q)
	}
}

// With any number of concurrent callers, no second grants more than the rate and the burst.
func TestRatesUnderRace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := NewRates[int](func() time.Time { return now })
	var mu sync.Mutex
	granted := 0
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if r.Take(1, 50).OK {
				mu.Lock()
				granted++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if granted != 50 {
		t.Errorf("%d of 1000 requests passed a rate of 50/s", granted)
	}
}

func BenchmarkShare(b *testing.B) {
	s := NewShare[string](1024)
	for b.Loop() {
		if s.Try("a", 1) {
			s.Leave("a", 1)
		}
	}
}

// EnterLast requests are granted in order, and only if no other request can be, no matter how little their owner holds.
func TestShareServesTheLastLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShare[string](1)
		if !s.Try("a", 1) || !s.Try("b", 1) { // all there is
			t.Fatal("no unit is free at the start")
		}
		var order []string
		ask := func(enter func(context.Context, string, int64) error, owner, name string) {
			go func() {
				if enter(t.Context(), owner, 1) == nil {
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		ask(s.EnterLast, "c", "last")
		ask(s.EnterLast, "c", "last of all")
		ask(s.Enter, "b", "first")
		ask(s.Enter, "d", "second")
		for _, owner := range []string{"b", "a", "b", "d", "c"} {
			s.Leave(owner, 1)
			synctest.Wait()
		}
		if want := []string{"first", "second", "last", "last of all"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if err := s.EnterLast(t.Context(), "d", 1); err != nil {
			t.Error(err)
		}
		s.Leave("d", 1)
		s.Leave("c", 1)
		if n, waiting := s.Used(); n != 0 || waiting != 0 || len(s.held)+len(s.waiting) != 0 {
			t.Errorf("left over: %d units, %d wait", n, waiting)
		}
	})
}
