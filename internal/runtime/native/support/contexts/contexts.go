// Package contexts replaces the functions of package context that cancel. The deadlines follow the clock of the run,
// which only sleeps move: a context whose deadline has passed when a sleep ends is done then. There are no goroutines
// and no timers.
package contexts

import (
	"context"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// waiting are the contexts of this run with a deadline that has not passed, in the order in which they were made.
var waiting []*cancelable

func init() {
	support.OnRun(func(*recurgent.Call) { waiting = nil })
	support.OnAdvance(expire)
}

// expire ends the contexts whose deadlines have passed, the earliest first.
func expire(now time.Time) {
	due := slices.Clone(waiting)
	slices.SortStableFunc(due, func(a, b *cancelable) int { return a.deadline.Compare(b.deadline) })
	for _, c := range due {
		if !c.deadline.After(now) {
			c.cancel(context.DeadlineExceeded, c.late)
		}
	}
}

// A cancelable is a context that can be cancelled.
type cancelable struct {
	context.Context // the parent

	done     chan struct{}
	err      error // why it is done; nil before
	cause    error
	deadline time.Time // zero if it has none
	late     error     // cause once the deadline passes

	above    *cancelable // the nearest ancestor of this type that is cancelled with it
	leave    func() bool // has above forget this one
	children []func()    // called when it is cancelled, in their order; nil for one that left
}

// own is the key under which a cancelable finds itself among its descendants' values.
type own struct{}

// under returns a context below parent that is done when parent is.
func under(parent context.Context) *cancelable {
	if parent == nil {
		panic("cannot create context from nil parent")
	}
	c := &cancelable{Context: parent, done: make(chan struct{})}
	if p, ok := parent.Value(own{}).(*cancelable); ok && parent.Done() == p.Done() {
		c.above = p
		c.leave = p.AfterFunc(func() { c.cancel(p.err, p.cause) })
	}
	c.follow()
	return c
}

// follow ends the context if its parent, which may be of a type that the program declares, has ended.
func (c *cancelable) follow() {
	if c.err != nil {
		return
	}
	select {
	case <-c.Context.Done():
		c.cancel(c.Context.Err(), Cause(c.Context))
	default:
	}
}

// cancel ends the context and those below it. It does nothing if the context has ended.
func (c *cancelable) cancel(err, cause error) {
	if c.err != nil {
		return
	}
	if cause == nil {
		cause = err
	}
	c.err, c.cause = err, cause
	close(c.done)
	if c.leave != nil {
		c.leave()
	}
	waiting = slices.DeleteFunc(waiting, func(w *cancelable) bool { return w == c })
	children := c.children
	c.children = nil
	for _, end := range children {
		if end != nil {
			end()
		}
	}
}

// Done implements context.Context.
func (c *cancelable) Done() <-chan struct{} {
	if c.above == nil {
		c.follow()
	}
	return c.done
}

// Err implements context.Context.
func (c *cancelable) Err() error {
	if c.above == nil {
		c.follow()
	}
	return c.err
}

// Deadline implements context.Context.
func (c *cancelable) Deadline() (time.Time, bool) {
	if !c.deadline.IsZero() {
		return c.deadline, true
	}
	return c.Context.Deadline()
}

// Value implements context.Context.
func (c *cancelable) Value(key any) any {
	if key == (own{}) {
		return c
	}
	return c.Context.Value(key)
}

// String implements fmt.Stringer, as package context does.
func (c *cancelable) String() string {
	name := "context"
	if s, ok := c.Context.(interface{ String() string }); ok {
		name = s.String()
	}
	if c.deadline.IsZero() {
		return name + ".WithCancel"
	}
	return name + ".WithDeadline(" + c.deadline.String() + ")"
}

// AfterFunc has f called when the context ends. Package context calls it for contexts that libraries derive, in place
// of a goroutine.
func (c *cancelable) AfterFunc(f func()) (stop func() bool) {
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	i := len(c.children)
	c.children = append(c.children, f)
	return func() bool {
		left := c.err == nil && c.children[i] != nil
		if left {
			c.children[i] = nil
		}
		return left
	}
}

// WithCancel replaces context.WithCancel.
func WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	c := under(parent)
	return c, func() { c.cancel(context.Canceled, nil) }
}

// WithCancelCause replaces context.WithCancelCause.
func WithCancelCause(parent context.Context) (context.Context, context.CancelCauseFunc) {
	c := under(parent)
	return c, func(cause error) { c.cancel(context.Canceled, cause) }
}

// WithDeadline replaces context.WithDeadline.
func WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return WithDeadlineCause(parent, d, nil)
}

// WithDeadlineCause replaces context.WithDeadlineCause.
func WithDeadlineCause(parent context.Context, d time.Time, cause error) (context.Context, context.CancelFunc) {
	c := under(parent)
	if earlier, ok := parent.Deadline(); !ok || d.Before(earlier) {
		c.deadline, c.late = d, cause
		if !d.After(support.Now()) {
			c.cancel(context.DeadlineExceeded, cause)
		} else if c.err == nil {
			waiting = append(waiting, c)
		}
	}
	return c, func() { c.cancel(context.Canceled, nil) }
}

// WithTimeout replaces context.WithTimeout.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause replaces context.WithTimeoutCause.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return WithDeadlineCause(parent, support.Now().Add(d), cause)
}

// Cause replaces context.Cause.
func Cause(c context.Context) error {
	if p, ok := c.Value(own{}).(*cancelable); ok && p.Done() == c.Done() {
		return p.cause
	}
	return context.Cause(c)
}
