// Package lifetime provides the context of a call, which costs nothing while nobody waits for its end. The package
// knows only the deadlines and the clients of calls.
package lifetime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Context is the context of a call. It ends with its parent, at the call's deadline, or when Cancel is called; its
// cause states which. While callers only poll Err, as in most warm calls, it needs neither a timer nor an entry among
// its parent's children. This saves seven allocations.
//
// A call outlives its client once a model was asked for a program: the request is paid for, and the next call can use
// the program.
type Context struct {
	context.Context // parent context: the client's, or that of the calling call

	// true if the call continues when its client leaves; nil in a nested call, which ends with its caller
	Stays *atomic.Bool

	until time.Time // the call's deadline; zero means the parent's
	Begun bool      // the call is running, so it waits for the store; set before the context is shared

	mu    sync.Mutex
	over  bool            // the call ended while nobody waited; guarded by mu, as are the fields below
	inner context.Context // nil until somebody waits, then never replaced
	end   context.CancelCauseFunc
	timer *time.Timer // ends inner; nil if until is zero
	leave func() bool // stops watching the parent; nil if nothing watches
}

// Begin sets the parent and the call's timeout; 0 means no timeout of its own. It must be called once, before any other
// method.
func (l *Context) Begin(parent context.Context, timeout time.Duration) {
	l.Context = parent
	if timeout > 0 {
		l.until = time.Now().Add(timeout)
	}
}

// Cancel ends the context with the given cause, unless it has ended already. A nil cause marks the normal end of the
// call.
func (l *Context) Cancel(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.over || cause == nil
	// Nobody waits, so there is nothing to cancel: watch will return an ended context.
	if l.inner == nil && l.over {
		return
	}
	l.watch()
	l.end(cause)
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.leave != nil {
		l.leave()
	}
}

// watch creates the context that can be waited for, unless it exists. The caller holds mu.
func (l *Context) watch() {
	if l.inner != nil {
		return
	}
	l.inner, l.end = context.WithCancelCause(l.above())
	switch end, rest := l.end, time.Until(l.until); {
	case l.over:
		end(nil)
	case l.until.IsZero():
	case rest <= 0:
		end(interrupt.ErrCallTimeout)
	default:
		l.timer = time.AfterFunc(rest, func() { end(interrupt.ErrCallTimeout) })
	}
}

// above returns the parent for the inner context. The caller holds mu.
func (l *Context) above() context.Context {
	if l.Stays == nil || l.over || l.gone() {
		return l.Context
	}
	l.leave = context.AfterFunc(l.Context, func() {
		if l.gone() {
			l.Cancel(context.Cause(l.Context))
		}
	})
	return context.WithoutCancel(l.Context)
}

// gone reports whether the parent has ended and the call must end with it.
func (l *Context) gone() bool {
	cause := context.Cause(l.Context)
	clientGone := cause == context.Canceled // what wraps it says who canceled the call
	return cause != nil && !(clientGone && l.Stays.Load())
}

// Done implements context.Context.
func (l *Context) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch()
	return l.inner.Done()
}

// Err implements context.Context.
func (l *Context) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Context == nil {
		return nil // not begun: the zero call of a replay has no lifetime
	}
	// The common case of a warm call: decide without creating the inner context.
	if l.inner == nil && !l.over && l.Context.Err() == nil && (l.until.IsZero() || time.Now().Before(l.until)) {
		return nil
	}
	l.watch()
	return l.inner.Err()
}

// Value implements context.Context. Package context looks up the cause through it.
func (l *Context) Value(key any) any {
	if l.Begun && key == (store.Patience{}) {
		return true
	}
	l.mu.Lock()
	c := l.inner
	l.mu.Unlock()
	if c == nil {
		c = l.Context
	}
	return c.Value(key)
}
