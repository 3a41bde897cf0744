package contexts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
)

var errEnough = errors.New("enough")

// A deadline passes while the program sleeps, for the context and all below it, also those that a library derived.
func TestDeadlinesFollowSleeps(t *testing.T) {
	waiting = nil
	type key struct{}
	short, stop := WithTimeoutCause(context.WithValue(t.Context(), key{}, "v"), time.Second, errEnough)
	defer stop()
	long, stopLong := WithTimeout(t.Context(), time.Hour)
	defer stopLong()
	below, stopBelow := WithCancel(short)
	defer stopBelow()
	derived, stopDerived := context.WithCancel(short)
	defer stopDerived()
	later, stopLater := WithTimeout(short, time.Hour)
	defer stopLater()
	done := below.Done()
	support.Sleep(time.Second - 1)
	for _, c := range []context.Context{short, long, below, derived, later} {
		if c.Err() != nil {
			t.Errorf("%v: ended before its deadline: %v", c, c.Err())
		}
	}
	support.Sleep(1)
	select {
	case <-done:
	default:
		t.Error("the channel of a context below is open")
	}
	for _, c := range []context.Context{short, below, derived, later} {
		if !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("%v: got %v", c, c.Err())
		}
	}
	if long.Err() != nil || Cause(below) != errEnough || Cause(long) != nil || len(waiting) != 1 {
		t.Errorf("got %v, %v, %v, %d waiting", long.Err(), Cause(below), Cause(long), len(waiting))
	}
	if d, ok := later.Deadline(); !ok || !d.Equal(mustDeadline(t, short)) {
		t.Errorf("got the deadline %v", d)
	}
	if below.Value(key{}) != "v" || !strings.HasSuffix(fmt.Sprint(below), ".WithCancel") {
		t.Errorf("got %v, %v", below.Value(key{}), below)
	}
}

func mustDeadline(t *testing.T, c context.Context) time.Time {
	t.Helper()
	d, ok := c.Deadline()
	if !ok {
		t.Fatal("no deadline")
	}
	return d
}

// closing is a context whose channel its owner closes.
type closing struct {
	context.Context
	done chan struct{}
	err  error
}

func (c *closing) Done() <-chan struct{} { return c.done }
func (c *closing) Err() error            { return c.err }

// A context below one of another type ends when it is next asked after that one has ended.
func TestUnderAnotherType(t *testing.T) {
	parent := &closing{Context: t.Context(), done: make(chan struct{})}
	c, stop := WithCancel(parent)
	defer stop()
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	parent.err = errEnough
	close(parent.done)
	if c.Err() != errEnough || Cause(c) != errEnough {
		t.Errorf("got %v, %v", c.Err(), Cause(c))
	}
}

// What a context that ended leaves with its parent is nothing.
func TestChildrenLeave(t *testing.T) {
	parent, stop := WithCancelCause(t.Context())
	ended := 0
	leave := parent.(*cancelable).AfterFunc(func() { ended++ })
	child, stopChild := WithCancel(parent)
	stopChild()
	if !leave() || leave() {
		t.Error("a function left twice, or not at all")
	}
	parent.(*cancelable).AfterFunc(func() { ended += 10 })
	stop(errEnough)
	stop(nil)
	if ended != 10 || !errors.Is(child.Err(), context.Canceled) || Cause(child) != context.Canceled ||
		Cause(parent) != errEnough {
		t.Errorf("got %d, %v, %v, %v", ended, child.Err(), Cause(child), Cause(parent))
	}
	parent.(*cancelable).AfterFunc(func() { ended += 100 })
	if ended != 110 {
		t.Error("a function for a context that has ended is not called")
	}
}
