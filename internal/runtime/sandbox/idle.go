package sandbox

import (
	"container/list"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// takeBlank returns a blank runner: one of the pool, or a new one.
func (p *Pool) takeBlank(ctx context.Context) (*runner, *Failure) {
	for {
		p.mu.Lock()
		n := len(p.blank)
		if n == 0 {
			p.taken++
			p.mu.Unlock()
			r, failure := p.spawn(ctx, p.image)
			p.mu.Lock()
			p.refill()
			p.mu.Unlock()
			return r, failure
		}
		p.taken++
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

// takeWarm returns a warm runner of the key, or nil if there is none.
func (p *Pool) takeWarm(key warmKey) *runner {
	for {
		p.mu.Lock()
		r := p.warm.take(key)
		p.mu.Unlock()
		if r == nil || r.quiet() {
			return r
		}
		r.kill("protocol")
	}
}

// Forget ends the warm runners of the namespace's owners.
func (p *Pool) Forget(namespace agent.Namespace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.warm.all() {
		if r.owner.Namespace == namespace {
			p.warm.remove(r)
			r.kill("forgotten")
		}
	}
}

// putBack keeps the runner warm after a successful run. It ends the runner instead if it is old, large, used up or
// already killed.
func (p *Pool) putBack(r *runner, now time.Time, took time.Duration) {
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
	if took < shortRun && r.held > 0 && r.calls%measureEvery != 0 && r.calls&(r.calls-1) != 0 {
		p.keep(r, now, r.held)
		return
	}
	all, own, ok := r.resident()
	if !ok || all > p.opts.IdleMemory() {
		r.kill("memory")
		return
	}
	p.keep(r, now, own)
}

// A runner's memory is measured after its first runs, after every run of shortRun or longer, and after every
// measureEvery-th of the others. Reading it costs a twentieth of the daemon's share of a warm call. tidyOnce measures
// all idle runners.
const (
	shortRun     = 2 * time.Millisecond
	measureEvery = 16
)

// bloated reports whether a runner holds more memory than an idle one may. Runners check for leftovers of their
// programs themselves. This check covers a program that has broken out of its interpreter.
func (p *Pool) bloated(r *runner) bool {
	all, _, ok := r.resident()
	return !ok || all > p.opts.IdleMemory()
}

// keep adds a runner holding held bytes to the warm set. It evicts others while all idle runners together hold more
// than RunnerMemory.
func (p *Pool) keep(r *runner, now time.Time, held int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.idleSince, r.idleCPU, r.held = now, 0, held
	if p.closed {
		r.kill("shutdown")
		return
	}
	p.warm.add(r)
	for p.warm.bytes+p.blankBytes() > p.opts.RunnerMemory && p.warm.count > 0 {
		p.warm.evict().kill("evicted")
	}
}

// blankBytes returns the memory of the blank runners in bytes. The caller holds mu.
func (p *Pool) blankBytes() (n int64) {
	for _, r := range p.blank {
		n += r.held
	}
	return n
}

// drop removes the runner from the idle ones and reports whether it was idle. The caller holds mu.
func (p *Pool) drop(r *runner) bool {
	if i := slices.Index(p.blank, r); i >= 0 {
		p.blank = slices.Delete(p.blank, i, i+1)
		return true
	}
	return p.warm.remove(r)
}

// spare returns how many blank runners to keep ready: opts.Blank, and more if many were taken recently and idle runners
// hold at most half of RunnerMemory. The caller holds mu.
func (p *Pool) spare() int {
	extra := min(max(p.taken, p.rate)/takenPerSpare, mostSpare)
	if p.warm.bytes+p.blankBytes() > p.opts.RunnerMemory/2 {
		extra = 0
	}
	return p.opts.Blank + extra
}

// tidy calls tidyOnce every tidyEvery until the pool stops.
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
	// takenPerSpare runners in tidyEvery are one in 125 ms, about the time of a start on a busy machine: each such rate
	// needs one spare.
	takenPerSpare = 16
	mostSpare     = 16
	// idleWork is the processor time that an idle Go process may use in tidyEvery to collect its garbage.
	idleWork = 250 * time.Millisecond
)

// tidyOnce ends idle runners that have been idle too long, use processor time while idle, have used much of their
// processor time, or hold too much memory.
func (p *Pool) tidyOnce(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.rate = 0, p.taken
	p.warm.sweep()
	for _, r := range slices.AppendSeq(slices.Clone(p.blank), p.warm.all()) {
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
		p.drop(r)
	}
	p.refill()
}

// A warmSet holds the warm runners, which are idle and have compiled a program, and sums their memory. Pool.mu guards
// it.
type warmSet struct {
	byKey   map[warmKey][]*runner // most recently used last
	byOwner map[agent.Owner]*holding
	count   int
	bytes   int64 // sum of the runners' held
}

// A warmKey identifies what a runner serves: a program, by checksum, for an owner.
type warmKey struct {
	program string
	owner   agent.Owner
}

// A holding is one owner's share of the set.
type holding struct {
	runners list.List // of *runner, least recently used first
	bytes   int64
}

func newWarmSet() warmSet {
	return warmSet{byKey: map[warmKey][]*runner{}, byOwner: map[agent.Owner]*holding{}}
}

func (w *warmSet) add(r *runner) {
	key := r.key()
	w.byKey[key] = append(w.byKey[key], r)
	own := w.byOwner[r.owner]
	if own == nil {
		own = &holding{}
		w.byOwner[r.owner] = own
	}
	r.place = own.runners.PushBack(r)
	own.bytes += r.held
	w.bytes += r.held
	w.count++
}

// take removes and returns the most recently used runner of the key, or nil if there is none.
func (w *warmSet) take(key warmKey) *runner {
	list := w.byKey[key]
	if len(list) == 0 {
		return nil
	}
	r := list[len(list)-1]
	w.remove(r)
	return r
}

// remove removes the runner, and reports whether it was in the set.
func (w *warmSet) remove(r *runner) bool {
	if r.place == nil {
		return false
	}
	key := r.key()
	w.byKey[key] = slices.DeleteFunc(w.byKey[key], func(e *runner) bool { return e == r })
	own := w.byOwner[r.owner]
	own.runners.Remove(r.place)
	own.bytes -= r.held
	w.bytes -= r.held
	w.count--
	r.place = nil
	return true
}

// evict removes and returns the least recently used runner among those of owners who hold at least the mean, so that
// one owner's many programs do not displace another owner's few. It returns nil if the set is empty.
func (w *warmSet) evict() *runner {
	if w.count == 0 {
		return nil
	}
	w.sweep()
	share := w.bytes / int64(len(w.byOwner))
	var oldest *runner
	for _, own := range w.byOwner {
		r := own.runners.Front().Value.(*runner)
		// At least one owner holds the mean or more, so oldest is never nil.
		if own.bytes >= share && (oldest == nil || r.idleSince.Before(oldest.idleSince)) {
			oldest = r
		}
	}
	w.remove(oldest)
	return oldest
}

// sweep removes map entries of programs and owners without a runner. remove leaves these behind, because the next call
// usually needs them again.
func (w *warmSet) sweep() {
	maps.DeleteFunc(w.byKey, func(_ warmKey, list []*runner) bool { return len(list) == 0 })
	maps.DeleteFunc(w.byOwner, func(_ agent.Owner, own *holding) bool { return own.runners.Len() == 0 })
}

// all yields the runners. The loop body may remove the current one.
func (w *warmSet) all() iter.Seq[*runner] {
	return func(yield func(*runner) bool) {
		for _, list := range w.byKey {
			for _, r := range slices.Clone(list) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
