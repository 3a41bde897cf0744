package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// places limits concurrent fetches by owner.
type places = fair.Share[agent.Owner]

// A hold is one place, or none yet. It must not be used concurrently, except for release.
type hold struct {
	places *places
	owner  agent.Owner
	taken  bool
	once   sync.Once
}

// take waits for a place.
func (h *hold) take(ctx context.Context) error {
	if h.taken {
		return nil
	}
	err := h.places.Enter(ctx, h.owner, 1)
	h.taken = err == nil
	return err
}

// release returns the place. It may be called more than once.
func (h *hold) release() {
	if h.taken {
		h.once.Do(func() { h.places.Leave(h.owner, 1) })
	}
}

// A limit cancels a context after some time. The time stands still while it is paused.
type limit struct {
	timer *time.Timer
	all   time.Duration
	left  time.Duration
	since time.Time
	end   context.CancelCauseFunc
}

func withLimit(ctx context.Context, d time.Duration) (context.Context, *limit) {
	ctx, end := context.WithCancelCause(ctx)
	l := &limit{all: d, left: d, since: time.Now(), end: end}
	l.timer = time.AfterFunc(d, func() { end(context.DeadlineExceeded) })
	return ctx, l
}

// pause stops the time while f runs.
func (l *limit) pause(f func() error) error {
	l.timer.Stop()
	l.left -= time.Since(l.since)
	err := f()
	l.since = time.Now()
	l.timer.Reset(max(0, l.left))
	return err
}

// renew restarts the time.
func (l *limit) renew() {
	l.left, l.since = l.all, time.Now()
	l.timer.Reset(l.left)
}

func (l *limit) stop() {
	l.timer.Stop()
	l.end(context.Canceled)
}
