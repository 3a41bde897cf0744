package sandbox

import (
	"context"
	"errors"
	"os"
	"time"
)

const (
	// patience is how long a run waits for its answer before it watches ctx. Watching costs six allocations, and most
	// runs end before. Cancellation is noticed up to patience late.
	patience = 5 * time.Millisecond
	// surelyRoom is how many bytes an empty pipe accepts at once, even at the smallest capacity that the system may
	// give it.
	surelyRoom = 4 << 10
)

// interrupt makes pending and later reads and writes fail. It may be called concurrently.
func (r *runner) interrupt() {
	past := time.Unix(1, 0)
	r.in.SetWriteDeadline(past)
	r.out.SetReadDeadline(past)
}

// arm sets the deadline. If ctx has ended, pending and later reads fail at once. It sets the deadline first, because
// interrupt may have run before.
func (r *runner) arm(ctx context.Context, t time.Time) {
	r.setDeadline(t)
	if ctx.Err() != nil {
		r.interrupt()
	}
}

// watch makes the end of ctx interrupt the runner, until unwatched is called.
func (r *runner) watch(ctx context.Context) {
	if r.unwatch == nil {
		r.unwatch = context.AfterFunc(ctx, r.interrupt)
	}
}

// unwatched ends the watch, and kills the runner if ctx has ended.
func (r *runner) unwatched() {
	stop := r.unwatch
	r.unwatch = nil
	if stop != nil && !stop() {
		r.kill("canceled") // interrupt may still be running
	}
}

// send writes the frame of a run and sets the read deadline for its answer. If the write cannot block, the deadline is
// patience at first, and ctx is not watched yet.
func (r *runner) send(ctx context.Context, frame []byte, deadline time.Time) error {
	if len(frame) > surelyRoom {
		r.watch(ctx)
	}
	r.arm(ctx, deadline)
	if early := time.Now().Add(patience); r.unwatch == nil && early.Before(deadline) && ctx.Err() == nil {
		r.out.SetReadDeadline(early)
	}
	_, err := r.in.Write(frame)
	return err
}

// next reads a frame, until the deadline. After patience it begins to watch ctx.
func (r *runner) next(ctx context.Context, deadline time.Time) (kind byte, payload []byte, err error) {
	kind, payload, err = r.rd.Next(r.opts.frameBound())
	if r.unwatch != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return kind, payload, err
	}
	r.watch(ctx)
	r.arm(ctx, deadline)
	return r.rd.Next(r.opts.frameBound())
}

// A limit bounds gate, compilation and run together. The clock starts with the first call of start, because starting a
// process does not count as the program's time.
type limit struct {
	length   time.Duration
	deadline time.Time
}

// start returns the deadline, and starts the clock if it is the first call.
func (l *limit) start() time.Time {
	if l.deadline.IsZero() {
		l.deadline = time.Now().Add(l.length)
	}
	return l.deadline
}
