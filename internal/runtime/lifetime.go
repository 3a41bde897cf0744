package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A lifetime is the context of a call. It ends with its parent, when the call's time is over, or when cancel is called, and its cause says
// which. As long as it is only asked whether it has ended, as by most warm calls, it needs neither a timer nor a place in its parent's
// list of children: seven allocations.
type lifetime struct {
	context.Context // the parent: the client's, or that of the call above

	until time.Time // when the call's time is over; zero: with the parent's
	begun bool      // the call is under way, so that the store has to be waited for; set before others have the context

	mu    sync.Mutex
	over  bool            // the call has ended while nobody waited; guarded by mu, as all below
	inner context.Context // the context that is waited for; nil until somebody waits, and not replaced then
	end   context.CancelCauseFunc
	timer *time.Timer // ends inner; nil where until is zero
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
}

// watch makes the context that can be waited for. The caller holds mu.
func (l *lifetime) watch() {
	if l.inner != nil {
		return
	}
	l.inner, l.end = context.WithCancelCause(l.Context)
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
