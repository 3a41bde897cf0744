package sandbox

import (
	"context"
	"time"
)

// takeBlank returns a blank runner: one of the pool, or a new one.
func (p *Pool) takeBlank(ctx context.Context) (*runner, *Failure) {
	for {
		p.mu.Lock()
		n := len(p.blank)
		if n == 0 {
			p.mu.Unlock()
			r, failure := p.spawn(ctx)
			p.mu.Lock()
			p.refill()
			p.mu.Unlock()
			return r, failure
		}
		r := p.blank[n-1]
		p.blank = p.blank[:n-1]
		p.refill()
		p.mu.Unlock()
		if r.quiet() {
			return r, nil
		}
		r.kill("protocol")
	}
}

// takeWarm returns an idle runner that has compiled the program for the owner, or nil.
func (p *Pool) takeWarm(checksum, owner string) *runner {
	for {
		var r *runner
		p.mu.Lock()
		for i := len(p.warm) - 1; i >= 0; i-- {
			if p.warm[i].program == checksum && p.warm[i].owner == owner {
				r = p.warm[i]
				p.warm = append(p.warm[:i], p.warm[i+1:]...)
				break
			}
		}
		p.mu.Unlock()
		if r == nil || r.quiet() {
			return r
		}
		r.kill("protocol")
	}
}

// putBack keeps the runner warm, or ends it after any doubt, and drops the least recently used beyond the bound.
func (p *Pool) putBack(r *runner, now time.Time) {
	if p.opts.Isolation == IsolationCall {
		r.kill("spent")
		return
	}
	if r.reason.Load() != nil {
		return
	}
	if r.calls >= p.opts.RunnerCalls || now.Sub(r.born) > p.opts.RunnerAge {
		r.kill("age")
		return
	}
	if p.bloated(r) {
		r.kill("memory")
		return
	}
	p.keep(r, now)
}

// bloated reports whether a runner holds more memory than an idle one may. What a program left, the runner itself looks for; this is for
// a program that has broken out of its interpreter.
func (p *Pool) bloated(r *runner) bool {
	n, ok := r.resident()
	return !ok || n > p.opts.IdleMemory()
}

// keep puts a runner among the warm ones.
func (p *Pool) keep(r *runner, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.idleSince, r.idleCPU = now, 0
	if p.closed {
		r.kill("shutdown")
		return
	}
	p.warm = append(p.warm, r)
	for len(p.warm) > p.opts.Warm {
		old := p.warm[0]
		p.warm = append(p.warm[:0], p.warm[1:]...)
		old.kill("evicted")
	}
}

// tidy ends runners that have been idle for long, and those that work while they are idle.
func (p *Pool) tidy() {
	defer p.work.Done()
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop.Done():
			return
		case now := <-tick.C:
			p.tidyOnce(now)
		}
	}
}

const (
	tidyEvery = 2 * time.Second
	// idleWork is the processor time in which an idle Go process may collect its garbage.
	idleWork = 250 * time.Millisecond
)

func (p *Pool) tidyOnce(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range append(append([]*runner(nil), p.warm...), p.blank...) {
		cpu := r.cpuTime()
		switch {
		case r.program != "" && now.Sub(r.idleSince) > p.opts.Idle:
			r.kill("idle")
		case r.idleCPU != 0 && cpu-r.idleCPU > idleWork:
			r.kill("busy while idle")
		case cpu > p.opts.RunnerCPU/2:
			r.kill("age")
		case p.bloated(r):
			r.kill("memory")
		default:
			r.idleCPU = cpu
			continue
		}
		remove(&p.warm, r)
		remove(&p.blank, r)
	}
	p.refill()
}
