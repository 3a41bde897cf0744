package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// spawn starts a runner from the image and waits until it is confined. A returned Failure is the daemon's, never the
// program's.
func (p *Pool) spawn(ctx context.Context, from *image) (*runner, *Failure) {
	return p.tryStart(ctx, func() (*runner, error) { return p.spawnOnce(from) })
}

// tryStart starts a process, in up to three attempts.
func (p *Pool) tryStart(ctx context.Context, start func() (*runner, error)) (*runner, *Failure) {
	var last error
	for try := range 3 {
		if try > 0 {
			// EAGAIN and EMFILE are transient.
			t := time.NewTimer(time.Duration(try) * 50 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return nil, keptWaiting(ctx)
			case <-p.stop.Done():
				t.Stop()
				return nil, interrupted(p.stop)
			}
		}
		r, err := start()
		if err == nil {
			return r, nil
		}
		last = err
		// A start that Close interrupted is not a fault.
		if errors.Is(err, errShutdown) || p.stop.Err() != nil {
			return nil, interrupted(p.stop)
		}
		p.opts.Log.Error().Err(err).Msg("a runner could not be started")
	}
	return nil, notStarted(last)
}

// spawnOnce starts and configures a runner in a single attempt.
func (p *Pool) spawnOnce(from *image) (*runner, error) {
	r, err := p.start(from)
	if err != nil {
		return nil, err
	}
	cfg := p.childConfig(from, false)
	cfg.Put(&r.wr)
	return r, p.confirmed(r, from.build)
}

// confirmed sends the frame built in wr and waits until the process reports the expected build and the layers of the
// canary. Otherwise it ends the process and returns an error. An empty build accepts any.
func (p *Pool) confirmed(r *runner, build string) error {
	ready, err := r.confirm(p.readyTimeout)
	switch {
	case err != nil:
	case build != "" && ready.Build != build:
		err = errOtherBuild
	default:
		err = missingLayer(p.layers, ready)
	}
	if err == nil {
		return nil
	}
	r.bury("spawn")
	text := r.diary.text()
	if lacksThreads(text) {
		return fmt.Errorf("%w: the system allows no more threads", syscall.EAGAIN)
	}
	return fmt.Errorf("%w %s", err, wire.BoundText(text, 500))
}

// lacksThreads reports whether a process wrote that it could not create a thread. The first text is the Go runtime's,
// the second is cgo's.
func lacksThreads(said []byte) bool {
	return bytes.Contains(said, []byte("failed to create new OS thread")) ||
		bytes.Contains(said, []byte("pthread_create failed"))
}

// start starts a process from the image and registers it until it has been reaped.
func (p *Pool) start(from *image) (*runner, error) {
	if err := p.reserve(); err != nil {
		return nil, err
	}
	by := p.spawner
	if from.under != nil {
		by = from.under
	}
	c, err := by.start(from)
	if err != nil {
		p.mu.Lock()
		p.starting--
		p.mu.Unlock()
		p.work.Done()
		return nil, err
	}
	r := adopt(&p.opts, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	p.live[r] = true
	p.spawned++
	go r.reap(p.forget) // after registration: the process may already be dead
	if p.closed {
		r.kill("shutdown")
		return nil, errShutdown
	}
	return r, nil
}

// reserve takes one of the processes that the system allows. If all are taken, it evicts the least recently used idle
// runner, and fails with errMostRunners if there is none.
func (p *Pool) reserve() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.live)+p.starting >= p.most {
		old := p.warm.evict()
		if old == nil {
			return fmt.Errorf("%w: %d are running", errMostRunners, len(p.live))
		}
		p.mu.Unlock()
		old.bury("evicted")
		p.mu.Lock()
	}
	if p.closed {
		return errShutdown
	}
	p.starting++
	p.work.Add(1)
	return nil
}

// forget unregisters a reaped process. Whoever holds the runner notices at its next read.
func (p *Pool) forget(r *runner) {
	p.mu.Lock()
	delete(p.live, r)
	reason := "died"
	if why := r.reason.Load(); why != nil {
		reason = *why
	}
	p.killed[reason]++
	if p.drop(r) && !p.closed {
		p.refill()
	}
	p.mu.Unlock()
	r.in.Close()
	r.out.Close()
	if r.usage != nil {
		r.usage.Close()
	}
	p.work.Done()
}

// refill starts the missing blank runners in the background. The caller holds mu. It does not retry a failed start: the
// next taker of a runner tries again, and more attempts do not help a machine that is out of processes.
func (p *Pool) refill() {
	for !p.closed && len(p.blank)+p.spawning < p.spare() && len(p.live)+p.spawning < p.most {
		p.spawning++
		p.work.Add(1)
		go func() {
			defer p.work.Done()
			r, failure := p.spawn(p.stop, p.image)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.spawning--
			switch {
			case failure != nil:
			case p.closed:
				r.kill("shutdown")
			default:
				_, r.held, _ = r.resident()
				p.blank = append(p.blank, r)
			}
		}()
	}
}
