package sandbox

import (
	"context"
	"errors"
	"os"
	"time"
)

const (
	// patience is how long a run waits for its answer before the end of its context is watched for: to watch costs six allocations, and most
	// runs are over by then. What ends a call is so noticed a little later.
	patience = 5 * time.Millisecond
	// surelyRoom is what an empty pipe takes at once, however small the system makes it.
	surelyRoom = 4 << 10
)

// interrupt makes a pending read or write return. It may be called from any goroutine.
func (r *runner) interrupt() {
	past := time.Unix(1, 0)
	r.in.SetWriteDeadline(past)
	r.out.SetReadDeadline(past)
}

// arm sets the deadline, unless ctx has ended already: then pending and coming reads fail at once. The order
// matters: interrupt may have run before.
func (r *runner) arm(ctx context.Context, t time.Time) {
	r.setDeadline(t)
	if ctx.Err() != nil {
		r.interrupt()
	}
}

// watch has the end of ctx interrupt the runner, until unwatched.
func (r *runner) watch(ctx context.Context) {
	if r.unwatch == nil {
		r.unwatch = context.AfterFunc(ctx, r.interrupt)
	}
}

// unwatched ends the watch, and kills the runner where ctx ended before.
func (r *runner) unwatched() {
	stop := r.unwatch
	r.unwatch = nil
	if stop != nil && !stop() {
		r.kill("canceled") // interrupt may be running still
	}
}

// send writes the frame of a run, and sets the time to wait for what comes back: patience at first, where the write cannot block.
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

// next reads a frame. It waits until the deadline, and watches for the end of ctx after patience.
func (r *runner) next(ctx context.Context, deadline time.Time) (kind byte, payload []byte, err error) {
	kind, payload, err = r.rd.Next(r.opts.frameBound())
	if r.unwatch != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return kind, payload, err
	}
	r.watch(ctx)
	r.arm(ctx, deadline)
	return r.rd.Next(r.opts.frameBound())
}

// A limit is the time of gate, compilation and run together. It begins when it is first asked for: the start of a process is not the program's.
type limit struct {
	length   time.Duration
	deadline time.Time
}

// start returns the deadline.
func (l *limit) start() time.Time {
	if l.deadline.IsZero() {
		l.deadline = time.Now().Add(l.length)
	}
	return l.deadline
}
