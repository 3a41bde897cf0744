package tier

import (
	"errors"
	"os"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// work builds and compares, one program or call at a time, until Stop.
func (t *Tier) work() {
	defer close(t.done)
	t.ChangedAll("") // what went while the daemon was stopped
	for {
		select {
		case <-t.life.Done():
			return
		case p := <-t.builds:
			t.build(p)
		case s := <-t.samples:
			t.check(s)
		}
	}
}

// Delays before a build that failed is tried again: the first, doubled with each failure up to the last.
const (
	firstDelay = 10 * time.Minute
	lastDelay  = 24 * time.Hour
)

// build compiles the program and compares it on its fixtures and examples.
func (t *Tier) build(p *Program) {
	if p.phase.Load() != building {
		return
	}
	if t.life.Err() != nil {
		p.phase.CompareAndSwap(building, idle)
		return
	}
	g, _, err := t.generation(p.key)
	if err != nil || g == nil {
		p.phase.CompareAndSwap(building, idle)
		return
	}
	began := time.Now()
	x, err := t.compile(p, g)
	outcome := "ok"
	switch {
	case t.life.Err() != nil:
		outcome = "canceled"
		p.phase.CompareAndSwap(building, idle)
	case errors.Is(err, ErrUnsupported):
		outcome = "unsupported"
		p.turnOff("", err.Error(), 0)
	case err != nil:
		outcome = "failed"
		p.turnOff("", "it could not be compiled: "+err.Error(), p.delay())
	}
	t.o.Metrics.NativeBuild(outcome, time.Since(began))
	if outcome != "ok" {
		return
	}
	if p.phase.Load() == dropped && !t.shared(p) { // meanwhile, and nobody else has use for it
		_ = ignoreMissing(os.Remove(x.Path))
		return
	}
	t.prepare(p, x)
}

// delay returns how long to wait after another build that failed.
func (p *Program) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	return min(firstDelay<<min(p.failed-1, 16), lastDelay)
}

// compile returns the generation's executable. One from the cache that has other bytes than were proved may be damaged, and is built again.
func (t *Tier) compile(p *Program, g *agent.Generation) (*sandbox.Executable, error) {
	p.mu.Lock()
	x, was := &sandbox.Executable{Facts: p.facts}, p.verdict
	p.mu.Unlock()
	for try := range 2 {
		var err error
		if x.Path, x.Digest, err = t.o.Builder.Build(t.life, g.Code); err != nil {
			return nil, err
		}
		if try > 0 || was.Verdict != proved || was.Executable == x.Digest {
			break
		}
		if err := os.Remove(x.Path); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// prepare puts an executable to use that an earlier process proved, and compares any other on what is known of the program.
func (t *Tier) prepare(p *Program, x *sandbox.Executable) {
	p.mu.Lock()
	known := p.verdict.Verdict == proved && p.verdict.Executable == x.Digest
	p.candidate, p.checked, p.unclear = x, 0, 0
	p.mu.Unlock()
	if known {
		p.prove(x)
		return
	}
	same := true
	err := t.ask(p.key, func(source Source) error {
		return source.Proofs(t.life, p.key, func(s Sample) bool {
			end := t.compare(p, x, s)
			same = end == equal || end == unclear
			return same && t.life.Err() == nil
		})
	})
	switch {
	case !same:
	case t.life.Err() != nil, err != nil:
		p.phase.CompareAndSwap(building, idle)
	default:
		p.mu.Lock()
		p.since = t.o.Now()
		p.mu.Unlock()
		p.phase.CompareAndSwap(building, checking)
	}
}

// check compares one live call.
func (t *Tier) check(o offered) {
	p := o.program
	p.mu.Lock()
	x := p.candidate
	p.mu.Unlock()
	if x == nil || p.phase.Load() != checking {
		return
	}
	end := t.compare(p, x, o.sample)
	p.mu.Lock()
	switch end {
	case equal:
		p.checked++
	case unclear:
		p.unclear++
	}
	checked, hopeless := p.checked, p.unclear >= 5*Checks
	p.mu.Unlock()
	switch {
	case checked >= Checks && p.phase.Load() == checking:
		p.prove(x)
	case hopeless:
		p.turnOff("", "its calls do not end the same way twice on the engine either", lastDelay)
	}
}

// forget ends the state of a dropped program and removes its files. What was written out about a program goes with its last copy.
func (t *Tier) forget(p *Program, erased bool) {
	p.phase.Store(dropped)
	p.mu.Lock()
	x := p.exe.Swap(nil)
	if x == nil {
		x = p.candidate
	}
	file := p.verdict.File
	p.candidate = nil
	p.mu.Unlock()
	if x != nil {
		file = x.Path
	}
	err := t.verdicts.remove(p.key)
	if file != "" && !t.shared(p) {
		err = errors.Join(err, ignoreMissing(os.Remove(file)))
	}
	if erased {
		err = errors.Join(err, t.findings.remove(p.key))
	}
	if err != nil {
		t.o.Logger.Warn().Err(err).Str("role", p.key.Role).Str("method", p.key.Method).Msg("files of the native tier were not removed")
	}
}

// shared reports whether another method has the same program.
func (t *Tier) shared(p *Program) bool {
	for k := range *t.programs.Load() {
		if k.Checksum == p.key.Checksum && k != p.key {
			return true
		}
	}
	return false
}

// keep makes a verdict durable. Without it the program is compared again after a restart.
func (t *Tier) keep(v verdict) {
	if err := t.verdicts.write(v); err != nil {
		t.o.Logger.Warn().Err(err).Str("role", v.Role).Str("method", v.Method).Msg("a verdict of the native tier was not kept")
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
