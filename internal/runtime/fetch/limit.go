package fetch

import (
	"context"
	"sync"
	"time"
)

// places are for so many at once.
type places chan struct{}

// A hold is one place, or none yet. It is for one goroutine, release excepted.
type hold struct {
	places places
	taken  bool
	once   sync.Once
}

// take waits for a place.
func (h *hold) take(ctx context.Context) error {
	if h.taken {
		return nil
	}
	select {
	case h.places <- struct{}{}:
		h.taken = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives the place back. It may be called twice.
func (h *hold) release() {
	if h.taken {
		h.once.Do(func() { <-h.places })
	}
}

// A limit ends a context after some time; while it is paused the time stands still.
type limit struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
	end   context.CancelCauseFunc
}

func withLimit(ctx context.Context, d time.Duration) (context.Context, *limit) {
	ctx, end := context.WithCancelCause(ctx)
	l := &limit{left: d, since: time.Now(), end: end}
	l.timer = time.AfterFunc(d, func() { end(context.DeadlineExceeded) })
	return ctx, l
}

// pause stops the time for as long as f takes.
func (l *limit) pause(f func() error) error {
	l.timer.Stop()
	l.left -= time.Since(l.since)
	err := f()
	l.since = time.Now()
	l.timer.Reset(max(0, l.left))
	return err
}

func (l *limit) stop() {
	l.timer.Stop()
	l.end(context.Canceled)
}
