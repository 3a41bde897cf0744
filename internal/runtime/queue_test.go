package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Calls of a session take their turns in the order of arrival; another session does not wait.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		var mu sync.Mutex
		var order []int
		if err := q.enter(t.Context(), "s", 3); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if err := q.enter(t.Context(), "s", 3); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				q.leave("s")
			})
			synctest.Wait()
			if n := q.length(); n != i+1 {
				t.Errorf("%d wait, want %d", n, i+1)
			}
		}
		if err := q.enter(t.Context(), "s", 3); !errors.Is(err, ErrQueueFull) {
			t.Errorf("one too many: %v", err)
		}
		if err := q.enter(t.Context(), "other", 0); err != nil {
			t.Errorf("another session: %v", err)
		}
		q.leave("other")
		q.leave("s")
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("the order was %v", order)
		}
		if q.length() != 0 || len(q.waiting) != 0 {
			t.Errorf("%d sessions are remembered", len(q.waiting))
		}
	})
}

// Asynchronous calls take their turns in the order in which they were started. One call too many is rejected; none is
// started and lost.
func TestStartedCallsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		waits := func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
			<-hold
			return runtimetest.Value("1")
		}
		r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"waits": waits}},
			map[string][]string{"r.m": {"waits"}}, func(o *Options) { o.MaxQueue = 20 })
		id, _ := conversation(t, r, SessionRequest{Role: "r"})
		q := CallRequest{SessionID: id, Method: "m"}
		var ends []<-chan CallResult
		for i := range 21 {
			callID, done, err := r.Start(q)
			if err != nil {
				t.Fatal(err)
			}
			if events, _, _ := r.Progress(callID).Next(0); i > 0 &&
				(len(events) == 0 || events[0].Type != progress.Queued ||
					string(events[0].Data) != fmt.Sprintf(`{"ahead":%d}`, i)) {
				t.Errorf("call %d got the events %+v", i, events)
			}
			ends = append(ends, done)
			q.Method, q.Args = "n=", []json.RawMessage{json.RawMessage(strconv.Itoa(i + 1))}
		}
		q.IdempotencyKey = "again"
		if _, _, err := r.Start(q); !errors.Is(err, ErrQueueFull) {
			t.Errorf("one too many: %v", err)
		}
		if n := len(r.RunningCalls()); n != 21 {
			t.Errorf("%d calls are under way", n)
		}
		close(hold)
		for _, done := range ends {
			if res := <-done; !res.OK {
				t.Errorf("got %s", res.Body)
			}
		}
		if memory, err := r.Context(t.Context(), id); err != nil || string(memory["n"]) != "20" {
			t.Errorf("the last setter wrote %s, %v", memory["n"], err)
		}
		_, done, err := r.Start(q)
		if err != nil {
			t.Fatal(err)
		}
		if res := <-done; !res.OK {
			t.Errorf("once there is room: %s", res.Body)
		}
	})
}

// A call that stops waiting leaves the queue intact, also when its turn comes at that moment.
func TestLeaveQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		for _, atOnce := range []bool{false, true} {
			var q queues
			if err := q.enter(t.Context(), "s", 2); err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithCancelCause(t.Context())
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- q.enter(ctx, "s", 2) }()
			synctest.Wait()
			go func() { second <- q.enter(t.Context(), "s", 2) }()
			synctest.Wait()
			giveUp(gone)
			if atOnce {
				q.leave("s")
			} else {
				synctest.Wait()
				q.leave("s")
			}
			err := <-first
			if err == nil && atOnce {
				q.leave("s") // the turn won
			} else if !errors.Is(err, gone) {
				t.Errorf("the first got %v", err)
			}
			if err := <-second; err != nil {
				t.Errorf("the second got %v", err)
			}
			q.leave("s")
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
		var q queues
		if _, err := q.join("s", 1); err != nil {
			t.Fatal(err)
		}
		p, err := q.join("s", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancelCause(t.Context())
		giveUp(gone)
		q.leave("s")
		if err := q.await(ctx, p); !errors.Is(err, gone) || len(q.waiting) != 0 {
			t.Fatalf("got %v, and %d sessions are remembered", err, len(q.waiting))
		}
	}
}

// The turn may come while its waiter gives up: it goes on to the next.
func TestTurnOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	var q queues
	if err := q.enter(t.Context(), "s", 1); err != nil {
		t.Fatal(err)
	}
	q.leave("s")
	q.leave("s") // as enter does for a turn that nobody takes
	if err := q.enter(t.Context(), "s", 1); err != nil || len(q.waiting) != 1 {
		t.Errorf("after that: %v", err)
	}
}

// A key is held by one at a time, keys do not wait for each other, and none is remembered once nobody uses it.
func TestKeyLocks(t *testing.T) {
	t.Parallel()
	var k keyLocks
	one, other := methodKey{"r", "m"}, methodKey{"r", "n"}
	unlock := k.lock(one)
	k.lock(other)()
	if len(k.locks) != 1 || k.locks[one].users != 1 {
		t.Errorf("%d keys are remembered, want the one that is held", len(k.locks))
	}
	unlock()
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				release := k.lock(one)
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
