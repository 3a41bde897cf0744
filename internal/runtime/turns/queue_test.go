package turns

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Calls of a session take their turns in the order of arrival; another session does not wait.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues
		var mu sync.Mutex
		var order []int
		if err := q.Enter(t.Context(), "s", 3); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if err := q.Enter(t.Context(), "s", 3); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				q.Leave("s")
			})
			synctest.Wait()
			if n := q.Length(); n != i+1 {
				t.Errorf("%d wait, want %d", n, i+1)
			}
		}
		if err := q.Enter(t.Context(), "s", 3); !errors.Is(err, ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		if err := q.Enter(t.Context(), "other", 0); err != nil {
			t.Errorf("another session: %v", err)
		}
		q.Leave("other")
		q.Leave("s")
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("the order was %v", order)
		}
		if q.Length() != 0 || len(q.waiting) != 0 {
			t.Errorf("%d sessions are remembered", len(q.waiting))
		}
	})
}

// A call that stops waiting leaves the queue intact, also when its turn comes at that moment.
func TestLeaveQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		for _, atOnce := range []bool{false, true} {
			var q Queues
			if err := q.Enter(t.Context(), "s", 2); err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithCancelCause(t.Context())
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- q.Enter(ctx, "s", 2) }()
			synctest.Wait()
			go func() { second <- q.Enter(t.Context(), "s", 2) }()
			synctest.Wait()
			giveUp(gone)
			if atOnce {
				q.Leave("s")
			} else {
				synctest.Wait()
				q.Leave("s")
			}
			err := <-first
			if err == nil && atOnce {
				q.Leave("s") // the turn won
			} else if !errors.Is(err, gone) {
				t.Errorf("the first got %v", err)
			}
			if err := <-second; err != nil {
				t.Errorf("the second got %v", err)
			}
			q.Leave("s")
			if len(q.waiting) != 0 {
				t.Errorf("%d sessions are remembered", len(q.waiting))
			}
		}
	})
}

// A call that has ended when its turn comes does not take the turn, even though it checks both only afterwards.
func TestEndedBeforeItsTurn(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for range 50 {
		var q Queues
		if _, err := q.Join("s", 1); err != nil {
			t.Fatal(err)
		}
		p, err := q.Join("s", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancelCause(t.Context())
		giveUp(gone)
		q.Leave("s")
		if err := q.Await(ctx, p); !errors.Is(err, gone) || len(q.waiting) != 0 {
			t.Fatalf("got %v, and %d sessions are remembered", err, len(q.waiting))
		}
	}
}

// The turn may come while its waiter gives up: it goes on to the next.
func TestTurnOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	var q Queues
	if err := q.Enter(t.Context(), "s", 1); err != nil {
		t.Fatal(err)
	}
	q.Leave("s")
	q.Leave("s") // as Await does with a turn that nobody takes
	if err := q.Enter(t.Context(), "s", 1); err != nil || len(q.waiting) != 1 {
		t.Errorf("after that: %v", err)
	}
}

// A key is held by one at a time, keys do not wait for each other, and none is remembered once nobody uses it.
func TestKeyLocks(t *testing.T) {
	t.Parallel()
	var k Locks
	one, other := Method{Role: "r", Method: "m"}, Method{Role: "r", Method: "n"}
	unlock := k.Lock(one)
	k.Lock(other)()
	if len(k.locks) != 1 || k.locks[one].users != 1 {
		t.Errorf("%d keys are remembered, want the one that is held", len(k.locks))
	}
	unlock()
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				release := k.Lock(one)
				if holders.Add(1) != 1 {
					t.Error("two hold the key")
				}
				goruntime.Gosched()
				holders.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if len(k.locks) != 0 {
		t.Errorf("%d keys are remembered", len(k.locks))
	}
}
