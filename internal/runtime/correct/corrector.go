// Package correct replaces programs that gave an answer which a person judged wrong, in the background. A correction
// must hold every active example before it serves; until then the old program keeps answering. The package forges and
// proves as a call does, and knows nothing of calls.
package correct

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// Parts are what corrections use of the Runtime. All are required.
type Parts struct {
	Env      *env.Env
	Policy   func() *agent.Policy // in force
	Rules    func() *mask.Rules   // in force
	Life     context.Context      // ends, with a cause, when the daemon stops
	Forges   *forge.Forger
	Adoption *turns.Locks   // admits one new generation per artifact at a time
	Nester   attempt.Nester // makes the calls of the programs that proofs run
}

// A Corrector makes the corrections of a namespace, one per method at a time.
type Corrector struct {
	Parts

	running sync.WaitGroup

	mu      sync.Mutex
	pending map[turns.Method]*pending // guarded by mu
}

// New returns a Corrector without corrections; Resume queues those that a stop interrupted.
func New(p Parts) *Corrector { return &Corrector{Parts: p} }

// Wait waits until no correction runs, and none waits for its next attempt.
func (c *Corrector) Wait() { c.running.Wait() }

// A pending is a method's correction that runs or waits. Its fields are guarded by Corrector.mu.
type pending struct {
	actor string
	wake  chan struct{} // of capacity 1: a judgment or a change starts the next attempt at once
	next  chan struct{} // closed when the next attempt to start has ended
	// closed when the current or imminent attempt has ended; nil while the next one waits for its time
	now chan struct{}
}

// Pending reports whether a correction runs or waits for its next attempt.
func (c *Corrector) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// Correct starts a correction of the method in the background, in the name of the person who asked, regardless of
// earlier failures. It returns a channel that is closed once an attempt that began after this call has ended. The
// channel is closed at once if the daemon is stopping; the correction then resumes after the restart.
func (c *Corrector) Correct(role, method, actor string) (tried <-chan struct{}) {
	return c.from(role, method, actor, time.Time{})
}

// from is Correct with the first attempt at the time begin; zero means now.
func (c *Corrector) from(role, method, actor string, begin time.Time) (tried <-chan struct{}) {
	k := turns.Method{Role: role, Method: method}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[k]; p != nil {
		p.actor = actor
		select {
		case p.wake <- struct{}{}:
		default:
		}
		if p.now == nil {
			p.now = p.next
		}
		return p.next
	}
	p := &pending{actor: actor, wake: make(chan struct{}, 1), next: make(chan struct{})}
	// A stopping daemon starts nothing new. The artifact still has the correction as pending, which Resume
	// finds.
	if c.Life.Err() != nil {
		close(p.next) // resumed after the restart
		return p.next
	}
	if c.pending == nil {
		c.pending = map[turns.Method]*pending{}
	}
	c.pending[k] = p
	if begin.IsZero() {
		p.now = p.next
	}
	tried = p.next
	c.running.Go(func() { c.run(k, p, begin) })
	return tried
}

// run makes attempts, the first at next, until a correction is adopted, waits for approval or is given up, or
// until the daemon stops.
func (c *Corrector) run(k turns.Method, p *pending, next time.Time) {
	for c.wait(p, next) {
		c.mu.Lock()
		actor, tried := p.actor, p.next
		p.now, p.next = tried, make(chan struct{})
		select {
		case <-p.wake: // consume the wake-up: this attempt answers it
		default:
		}
		c.mu.Unlock()
		next = c.attempt(sandbox.Background(c.Life), k, actor)
		c.mu.Lock()
		p.now = nil
		if len(p.wake) > 0 {
			p.now = p.next
		}
		close(tried)
		if next.IsZero() && p.now == nil {
			delete(c.pending, k)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	close(p.next)
	delete(c.pending, k)
	c.mu.Unlock()
}

// wait waits until the time of the next attempt; zero means now. It returns false if the daemon stops first.
func (c *Corrector) wait(p *pending, until time.Time) bool {
	if until.IsZero() {
		return true
	}
	timer := time.NewTimer(max(0, until.Sub(c.Env.Now())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
	case <-c.Life.Done():
		return false
	}
	return true
}

// Correcting returns a channel that is closed when the running attempt at a correction of the method has ended, in this
// replica or another, or when ctx ends. It returns nil if no attempt is running.
func (c *Corrector) Correcting(ctx context.Context, a *agent.Artifact) (tried <-chan struct{}) {
	k := turns.Method{Role: a.Role, Method: a.MethodName}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[k]; p != nil && p.now != nil {
		return p.now
	}
	if !c.Env.Shared || a.Correction == nil || a.Correction.State != agent.CorrectionRunning {
		return nil
	}
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		for now := a; now.Correction != nil && now.Correction.State == a.Correction.State &&
			now.Correction.Attempts == a.Correction.Attempts; {
			select {
			case <-time.After(poll):
			case <-ctx.Done():
				return
			}
			if read, err := c.Env.Store.Artifact(ctx, k.Role, k.Method); err == nil {
				now = read
			}
		}
	}()
	return ended
}

// poll is the interval of checking whether another replica's attempt has ended.
const poll = 100 * time.Millisecond

// Resume queues the corrections that a stop interrupted; one that waited for its next attempt keeps waiting
// until then. It reads every artifact. The attempts run in the background.
func (c *Corrector) Resume(ctx context.Context) error {
	for after := ""; ; {
		tools, err := c.Env.Store.ListTools(ctx, after, 100)
		if err != nil || len(tools) == 0 {
			return err
		}
		for _, t := range tools {
			all, err := c.Env.Store.ListArtifacts(ctx, t.Role)
			if err != nil {
				return err
			}
			for _, a := range all {
				if wrong := a.Corrections(); a.Correction.Pending() && len(wrong) > 0 &&
					c.Policy().Correction == agent.CorrectBackground {
					var begin time.Time
					if at := a.Correction.NextTryAt; at != nil {
						begin = *at
					}
					c.from(a.Role, a.MethodName, wrong[0].By, begin)
				}
			}
			after = t.Role
		}
	}
}
