package progress

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func publish(f *Feed, from, to int) {
	for i := from; i <= to; i++ {
		f.Announce(&agent.LogEntry{CallID: fmt.Sprint(i), UserPrompt: "of others"})
	}
}

func ids(calls []*Call) string {
	var all []string
	for _, c := range calls {
		all = append(all, c.CallID)
	}
	return strings.Join(all, " ")
}

// Readers get what was published since they subscribed, in order and together, and share what is made of it.
func TestFeed(t *testing.T) {
	var f Feed
	publish(&f, 1, 1) // nobody reads
	one, stop, _ := f.Subscribe()
	other, stopOther, _ := f.Subscribe()
	defer stopOther()
	publish(&f, 2, 4)
	calls, behind, err := one.Next(t.Context())
	if got := ids(calls); got != "2 3 4" || behind || err != nil {
		t.Errorf("got %q, behind %v, %v", got, behind, err)
	}
	theirs, _, _ := other.Next(t.Context())
	if theirs[0] != calls[0] {
		t.Error("each reader has a copy of its own")
	}
	whole, err := calls[0].JSON()
	own, err2 := calls[0].OwnJSON()
	if err != nil || err2 != nil || !strings.Contains(string(whole), "of others") ||
		strings.Contains(string(own), "of others") {
		t.Errorf("the call is %s, without others' %s: %v, %v", whole, own, err, err2)
	}
	if again, _ := theirs[0].JSON(); &again[0] != &whole[0] {
		t.Error("it is encoded again for each reader")
	}
	stop()
	publish(&f, 5, 5)
	if one.Waiting() != 0 || other.Waiting() != 1 {
		t.Errorf("%d and %d wait", one.Waiting(), other.Waiting())
	}
}

// A reader that is too slow learns so once, and goes on with what is published afterwards.
func TestBehind(t *testing.T) {
	var f Feed
	r, stop, _ := f.Subscribe()
	defer stop()
	publish(&f, 1, feedKept)
	if calls, behind, _ := r.Next(t.Context()); len(calls) != feedKept || behind {
		t.Errorf("%d calls, behind %v", len(calls), behind)
	}
	publish(&f, 1, feedKept+1)
	if calls, behind, _ := r.Next(t.Context()); len(calls) > 0 || !behind {
		t.Errorf("%d calls, behind %v", len(calls), behind)
	}
	publish(&f, 7, 8)
	if calls, behind, _ := r.Next(t.Context()); ids(calls) != "7 8" || behind {
		t.Errorf("%s, behind %v", ids(calls), behind)
	}
}

// Calls that are lost while a reader takes calls precede the calls that it takes later: it receives none of the later
// ones before it has caught up.
func TestLostAmidTaking(t *testing.T) {
	const most = 20_000
	var f Feed
	r, stop, _ := f.Subscribe()
	defer stop()
	var logged atomic.Int64
	go func() {
		for i := 1; i <= most; i++ {
			logged.Store(int64(i))
			if i%10 == 0 {
				f.Lose()
			} else {
				publish(&f, i, i)
			}
		}
		f.Lose()
	}()
	for last := 0; last < most; {
		calls, behind, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if behind {
			last = int(logged.Load()) // as who reads the log
		}
		for _, c := range calls {
			n, _ := strconv.Atoi(c.CallID) // ours are numbers
			if n > last+1 {
				t.Fatalf("%d came after %d", n, last)
			}
			last = max(last, n)
		}
	}
}

// Few readers take each call at once; many rest in between, but never long, and end at once with their context.
func TestReadersRest(t *testing.T) {
	for readers, want := range map[int]time.Duration{1: 0, 8: 0, 108: 10 * time.Millisecond,
		2000: 50 * time.Millisecond} {
		t.Run(fmt.Sprint(readers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f Feed
				r, stop, _ := f.Subscribe()
				defer stop()
				for range readers - 1 {
					_, stop, _ := f.Subscribe()
					defer stop()
				}
				publish(&f, 1, 1)
				start := time.Now()
				_, _, _ = r.Next(t.Context())
				if took := time.Since(start); took != 0 {
					t.Errorf("the first taking waited %v", took)
				}
				publish(&f, 2, 3)
				if calls, _, _ := r.Next(t.Context()); ids(calls) != "2 3" || time.Since(start) != want {
					t.Errorf("took %s after %v, want after %v", ids(calls), time.Since(start), want)
				}
			})
		})
	}
}

func TestReadersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Feed
		gone := errors.New("gone")
		var all sync.WaitGroup
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 100 {
			r, stop, _ := f.Subscribe()
			defer stop()
			all.Go(func() {
				_, _, _ = r.Next(ctx) // what is published below
				if _, _, err := r.Next(ctx); !errors.Is(err, gone) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		publish(&f, 1, 1)
		synctest.Wait()
		start := time.Now()
		cancel(gone)
		all.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("they ended after %v", took)
		}
	})
}
