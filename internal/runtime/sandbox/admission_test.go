package sandbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// TestAdmission checks that only running programs hold places, that owners take turns, and that an owner without a
// running program is admitted.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(2, 6)
		of := func(owner string) *Request { return &Request{Owner: agent.Owner{Name: owner}} }
		entered := make(chan string, 100)
		enter := func(owner string) {
			go func() {
				if a.enter(t.Context(), of(owner)) == nil {
					entered <- owner
				}
			}()
			synctest.Wait()
		}
		got := func() string {
			s := ""
			for len(entered) > 0 {
				s += <-entered
			}
			return s
		}
		want := func(what, w string) {
			t.Helper()
			synctest.Wait()
			if g := got(); g != w {
				t.Errorf("%s: %q entered, want %q", what, g, w)
			}
		}
		for range 5 {
			enter("a")
		}
		want("five calls of one owner", "aa")
		enter("b")
		want("another owner", "b")
		enter("b")
		want("the other owner's second", "")
		a.leave(of("a"))
		want("a place is free, but three run on two places", "")
		a.leave(of("a"))
		want("two places are free for two owners", "a")
		a.leave(of("b"))
		want("who has less goes first", "b")
		a.pause(of("a"))
		want("a waits for another program", "a")
		nested := &Request{Owner: agent.Owner{Name: "a"}, Depth: 1}
		go func() {
			if a.enter(t.Context(), nested) == nil {
				entered <- "nested"
			}
		}()
		want("a nested call beside two programs that run", "")
		a.leave(of("b"))
		want("a nested call goes before a new one", "nested")
		go func() {
			a.resume(t.Context(), of("a"))
			entered <- "on"
		}()
		want("a program that would go on beside two that run", "")
		a.leave(nested)
		want("it goes on before a new call begins", "on")
		if busy, queued := a.counts(); busy != 2 || queued != 1 {
			t.Errorf("%d run, %d wait", busy, queued)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- a.enter(ctx, of("a")) }()
		synctest.Wait()
		cancel()
		if <-gone == nil {
			t.Error("a caller that has gone got a place")
		}
		if _, queued := a.counts(); queued != 1 {
			t.Errorf("%d wait", queued)
		}
		a.pause(of("a"))
		want("the rest", "a")
		a.resume(ctx, of("a")) // canceled: it continues without a place, to end
		if busy, queued := a.counts(); busy != 3 || queued != 0 {
			t.Errorf("with one that is given up %d run, %d wait", busy, queued)
		}
		for range 3 {
			a.leave(of("a"))
		}
		if busy, queued := a.counts(); busy != 0 || queued != 0 || len(a.byOwner) != 0 || a.under != 0 {
			t.Errorf("left over: %d run, %d wait, %v, %d chains", busy, queued, a.byOwner, a.under)
		}
	})
}

// Calls that wait for external sources are bounded too.
func TestAdmissionBoundsChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, 2)
		r := &Request{Owner: agent.Owner{Name: "a"}}
		for range 2 {
			if err := a.enter(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			a.pause(r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		blocked := make(chan error, 1)
		go func() { blocked <- a.enter(ctx, r) }()
		synctest.Wait()
		if len(blocked) != 0 {
			t.Error("a third chain began")
		}
		cancel()
		<-blocked
	})
}

// TestAdmissionOfChecks checks that a waiting check takes a place of running programs, in addition to calls that wait
// for others, and is not part of a chain.
func TestAdmissionOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(2, 2)
		call, check := &Request{Owner: agent.Owner{Name: "a"}}, &Request{Owner: agent.Owner{Name: "a"}, Depth: 1}
		for range 2 {
			if err := a.enter(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
		in := make(chan error, 1)
		go func() { in <- a.enter(t.Context(), check) }()
		synctest.Wait()
		if len(in) != 0 {
			t.Error("a check runs beside two calls on two places")
		}
		other := &Request{Owner: agent.Owner{Name: "b"}, Depth: 1}
		if err := a.enter(t.Context(), other); err != nil {
			t.Errorf("another owner's check: %v", err)
		}
		a.leave(other)
		a.pause(call)
		synctest.Wait()
		if len(in) != 1 || <-in != nil {
			t.Error("a check does not run while a call waits for another")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { in <- a.enter(ctx, check) }()
		synctest.Wait()
		cancel()
		if err := <-in; err == nil {
			t.Error("a check that nobody waits for any more has a place")
		}
		a.leave(check)
		a.resume(t.Context(), call)
		a.leave(call)
		a.leave(call)
		if busy, queued := a.counts(); busy != 0 || queued != 0 || a.under != 0 {
			t.Errorf("%d run, %d wait, %d chains", busy, queued, a.under)
		}
	})
}

// Whatever one owner's calls do (thousands waiting for a place, as many as allowed waiting for others, or all of these
// resuming at once), another owner's call begins at once, and that owner's second call before the next one of the
// flood.
func TestAdmissionDuringAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(2, 16)
		flood, other := &Request{Owner: agent.Owner{Name: "flood"}}, &Request{Owner: agent.Owner{Name: "other"}}
		ctx, stop := context.WithCancel(t.Context())
		var begun atomic.Int64
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() {
				if a.enter(ctx, flood) == nil {
					begun.Add(1)
				}
			})
		}
		synctest.Wait()
		for range 15 { // they wait for a slow host one after the other, and the next ones begin
			a.pause(flood)
			synctest.Wait()
		}
		if n := begun.Load(); n != 16 {
			t.Errorf("%d calls are under way, want as many as one owner may have", n)
		}
		enter := func(what string) {
			t.Helper()
			in := make(chan error, 1)
			go func() { in <- a.enter(ctx, other) }()
			synctest.Wait()
			if len(in) != 1 {
				t.Errorf("%s: another owner's call waits", what)
			}
		}
		enter("while they wait")
		a.leave(other)
		for range 15 {
			all.Go(func() { a.resume(ctx, flood) })
		}
		synctest.Wait()
		if busy, _ := a.counts(); busy != 2 {
			t.Errorf("%d of its programs run on two places", busy)
		}
		enter("while all of them would go on")
		second := make(chan error, 1)
		go func() { second <- a.enter(ctx, other) }()
		synctest.Wait()
		before := begun.Load()
		a.leave(other)
		synctest.Wait()
		if len(second) != 1 || begun.Load() != before {
			t.Errorf("the next place went to the flood: %d of its calls began, %d of the other's", begun.Load()-before,
				len(second))
		}
		stop()
		all.Wait()
	})
}

// Nested chains of calls keep to the limit of places, both going down and coming back, and all of them end.
func TestAdmissionOfChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(2, 16)
		var most atomic.Int64
		var all sync.WaitGroup
		run := func() { // a moment in which others run
			busy, _ := a.counts()
			for n := most.Load(); int64(busy) > n && !most.CompareAndSwap(n, int64(busy)); n = most.Load() {
			}
			time.Sleep(time.Millisecond)
		}
		var nest func(depth int)
		nest = func(depth int) {
			r := &Request{Owner: agent.Owner{Name: "a"}, Depth: depth}
			if err := a.enter(t.Context(), r); err != nil {
				t.Error(err)
				return
			}
			defer a.leave(r)
			run()
			if depth < 6 {
				a.pause(r)
				nest(depth + 1)
				a.resume(t.Context(), r)
				run()
			}
		}
		for range 100 {
			all.Go(func() { nest(0) })
		}
		all.Wait()
		if n := most.Load(); n != 2 {
			t.Errorf("%d programs ran at once on two places", n)
		}
		if busy, queued := a.counts(); busy != 0 || queued != 0 || len(a.byOwner) != 0 || a.under != 0 {
			t.Errorf("left over: %d run, %d wait, %v, %d chains", busy, queued, a.byOwner, a.under)
		}
	})
}

// Background work comes after everything that callers wait for, regardless of owner and order of arrival. It never gets
// a place beyond the usual number.
func TestBackgroundComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, 4)
		part := func(owner string) *Request { return &Request{Owner: agent.Owner{Name: owner}, Depth: 1} }
		var order []string
		enter := func(ctx context.Context, owner, name string) {
			go func() {
				if a.enter(ctx, part(owner)) == nil {
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		behind := Background(t.Context())
		enter(t.Context(), "a", "running")
		enter(behind, "b", "first in the background")
		enter(behind, "b", "second in the background")
		enter(t.Context(), "a", "caller")
		enter(t.Context(), "a", "next caller")
		for _, owner := range []string{"a", "a", "a", "b", "b"} {
			a.leave(part(owner))
			synctest.Wait()
		}
		if want := []string{"running", "caller", "next caller", "first in the background",
			"second in the background"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if busy, queued := a.counts(); busy != 0 || queued != 0 {
			t.Errorf("left over: %d run, %d wait", busy, queued)
		}
	})
}
