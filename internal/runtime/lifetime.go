package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A lifetime is the context of a call. It ends with its parent, when the call's time is over, or when cancel is called, and its cause says
// which. As long as it is only asked whether it has ended, as by most warm calls, it needs neither a timer nor a place in its parent's
// list of children: seven allocations.
//
// A call that is to outlive its client does so once a model was asked for a program: that is paid for, and the next call is to find it.
type lifetime struct {
	context.Context // the parent: the client's, or that of the call above

	stays *atomic.Bool // the call goes on when its client goes; nil: it never does

	until time.Time // when the call's time is over; zero: with the parent's
	begun bool      // the call is under way, so that the store has to be waited for; set before others have the context

	mu    sync.Mutex
	over  bool            // the call has ended while nobody waited; guarded by mu, as all below
	inner context.Context // the context that is waited for; nil until somebody waits, and not replaced then
	end   context.CancelCauseFunc
	timer *time.Timer // ends inner; nil where until is zero
	leave func() bool // stops to look whether the client goes; nil where nobody looks
}

// begin sets the parent and how long the call may take, 0 for as long as the parent. It is called once, before any other method.
func (l *lifetime) begin(parent context.Context, timeout time.Duration) {
	l.Context = parent
	if timeout > 0 {
		l.until = time.Now().Add(timeout)
	}
}

// cancel ends the context, for the cause unless it has ended already; nil is the end of the call itself.
func (l *lifetime) cancel(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.over || cause == nil
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

// watch makes the context that can be waited for. The caller holds mu.
func (l *lifetime) watch() {
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

// above returns the parent context, which can be waited for. The caller holds mu.
func (l *lifetime) above() context.Context {
	if l.stays == nil || l.over || l.gone() {
		return l.Context
	}
	l.leave = context.AfterFunc(l.Context, func() {
		if l.gone() {
			l.cancel(context.Cause(l.Context))
		}
	})
	return context.WithoutCancel(l.Context)
}

// gone reports whether the parent has ended and the call ends with it.
func (l *lifetime) gone() bool {
	cause := context.Cause(l.Context)
	clientGone := cause == context.Canceled //nolint:errorlint // what wraps it says who canceled the call
	return cause != nil && !(clientGone && l.stays.Load())
}

// Done is part of context.Context.
func (l *lifetime) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch()
	return l.inner.Done()
}

// Err is part of context.Context.
func (l *lifetime) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Context == nil {
		return nil // it has not begun, as that of a replay, which has none
	}
	if l.inner == nil && !l.over && l.Context.Err() == nil && (l.until.IsZero() || time.Now().Before(l.until)) {
		return nil
	}
	l.watch()
	return l.inner.Err()
}

// Value is part of context.Context. Package context finds the cause through it.
func (l *lifetime) Value(key any) any {
	if l.begun && key == (store.Patience{}) {
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
