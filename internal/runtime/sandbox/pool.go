package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Pool is the Sandbox: blank runners that wait for a program, and warm ones that have compiled theirs.
type Pool struct {
	opts         Options
	spawner      *spawner
	admission    *admission
	fetcher      *fetcher
	status       Status
	killing      bool              // forbidden system calls kill (tests)
	namespaces   map[string]string // the daemon's own
	readyTimeout time.Duration
	layers       []string // what the canary had and every runner must have
	most         int      // processes at once
	tasks        string   // the same in words, for the status

	stop context.Context // ends with Close
	end  context.CancelCauseFunc
	work sync.WaitGroup // goroutines of the pool

	mu       sync.Mutex
	closed   bool             // guarded by mu
	blank    []*runner        // guarded by mu
	spawning int              // guarded by mu; blank ones under way
	starting int              // guarded by mu; processes being started
	warm     []*runner        // guarded by mu; idle, least recently used first
	live     map[*runner]bool // guarded by mu; every process not yet reaped
	spawned  int64            // guarded by mu
	killed   map[string]int64 // guarded by mu
	faults   int64            // of the engine; guarded by mu
}

var errShutdown = errors.New("the daemon is shutting down")

// New starts the spawner and a canary runner, which tries what must be impossible, and fails when the confinement
// observed is below Options.Require. Close ends every runner.
func New(o Options) (*Pool, error) {
	return newPool(o, hooks{})
}

// hooks are what tests replace.
type hooks struct {
	args  []string                        // of the runner's command line, instead of "runner"
	start func() error                    // a fault at the start of a process
	ready time.Duration                   // instead of readyTimeout
	plans []plan                          // instead of the system's
	kill  bool                            // forbidden system calls end the runner
	room  func() (room int, limit string) // instead of taskRoom
}

func newPool(o Options, h hooks) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	fetcher, err := newFetcher(&o)
	if err != nil {
		return nil, err
	}
	sealInherited()
	most, tasks, err := mostRunners(2*o.Waiting+o.Warm+o.Blank, h.room)
	if err != nil {
		return nil, err
	}
	threads.Reserve(daemonThreads())
	// Where the system allows few processes, half of them are for nested calls, which never wait.
	waiting := min(o.Waiting, most/2)
	p := &Pool{opts: o, admission: newAdmission(min(o.Runners, waiting), waiting), fetcher: fetcher, most: most, tasks: tasks, live: map[*runner]bool{}, killed: map[string]int64{}}
	p.namespaces, p.killing, p.readyTimeout = wire.Namespaces(), h.kill, readyTimeout
	if h.ready > 0 {
		p.readyTimeout = h.ready
	}
	p.stop, p.end = context.WithCancelCause(context.Background())
	if p.spawner, err = startSpawner(h); err != nil {
		return nil, err
	}
	if h.plans == nil {
		h.plans = plans()
	}
	if err := p.observe(h.plans); err != nil {
		p.Close()
		return nil, err
	}
	if want := o.required(); rank(p.status.Level) < rank(want) {
		p.Close()
		return nil, fmt.Errorf("sandbox: confinement is %q, required is %q: %s", p.status.Level, want, p.status.summary())
	}
	p.mu.Lock()
	p.refill()
	p.mu.Unlock()
	p.work.Add(1)
	go p.tidy()
	return p, nil
}

// spawn starts a runner and waits until it is confined. A failure is ours, never the program's.
func (p *Pool) spawn(ctx context.Context) (*runner, *Failure) {
	var last error
	for try := range 3 {
		if try > 0 {
			// EAGAIN and EMFILE pass; waiting a little is all that helps.
			t := time.NewTimer(time.Duration(try) * 50 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return nil, interrupted(ctx)
			case <-p.stop.Done():
				t.Stop()
				return nil, interrupted(p.stop)
			}
		}
		r, err := p.spawnOnce()
		if err == nil {
			return r, nil
		}
		last = err
		if errors.Is(err, errShutdown) || p.stop.Err() != nil { // what Close ended half-way is no fault
			return nil, interrupted(p.stop)
		}
		p.opts.Log.Error().Err(err).Msg("a runner could not be started")
	}
	kind := agent.ErrRunnerCrash
	if exhausted(last) {
		kind = agent.ErrResourceExhausted
	}
	return nil, &Failure{Type: kind, Detail: "spawn", Ours: true, Message: "no runner could be started: " + last.Error()}
}

func (p *Pool) spawnOnce() (*runner, error) {
	r, err := p.start()
	if err != nil {
		return nil, err
	}
	ready, err := r.setup(p.childConfig(false), p.readyTimeout)
	if err == nil {
		err = missingLayer(p.layers, ready)
	}
	if err != nil {
		r.bury("spawn")
		return nil, fmt.Errorf("%w %s", err, wire.BoundText(r.diary.text(), 500))
	}
	return r, nil
}

// start starts a process and registers it until its end.
func (p *Pool) start() (*runner, error) {
	if err := p.reserve(); err != nil {
		return nil, err
	}
	c, err := p.spawner.start()
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
	go r.reap(p.forget) // only now: it may be dead already
	if p.closed {
		r.kill("shutdown")
		return nil, errShutdown
	}
	return r, nil
}

// reserve takes a place among the processes that the system allows, that of the least recently used idle runner where all are taken.
func (p *Pool) reserve() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.live)+p.starting >= p.most {
		if len(p.warm) == 0 {
			return fmt.Errorf("%w: %d are running", errMostRunners, len(p.live))
		}
		old := p.warm[0]
		p.warm = append(p.warm[:0], p.warm[1:]...)
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

// forget runs when a process has been reaped. Whoever holds the runner notices at its next read.
func (p *Pool) forget(r *runner) {
	p.mu.Lock()
	delete(p.live, r)
	reason := "died"
	if why := r.reason.Load(); why != nil {
		reason = *why
	}
	p.killed[reason]++
	idle := remove(&p.blank, r) || remove(&p.warm, r)
	if idle && !p.closed {
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

func remove(list *[]*runner, r *runner) bool {
	for i, e := range *list {
		if e == r {
			*list = append((*list)[:i], (*list)[i+1:]...)
			return true
		}
	}
	return false
}

// refill starts what is missing of the blank runners. The caller holds mu. A runner that cannot be started is not tried again until
// somebody needs one: a machine without processes is not helped by more attempts.
func (p *Pool) refill() {
	for !p.closed && len(p.blank)+p.spawning < p.opts.Blank && len(p.live)+p.spawning < p.most {
		p.spawning++
		p.work.Add(1)
		go func() {
			defer p.work.Done()
			r, failure := p.spawn(p.stop)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.spawning--
			switch {
			case failure != nil:
			case p.closed:
				r.kill("shutdown")
			default:
				p.blank = append(p.blank, r)
			}
		}()
	}
}

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

// prepare returns a runner that has compiled the program, and how long starting and gating took.
func (p *Pool) prepare(ctx context.Context, prog Program, owner string, deadline func() time.Time) (*runner, Timing, *Failure) {
	var t Timing
	if len(prog.Source) > p.opts.MaxSource {
		return nil, t, &Failure{Type: agent.ErrInvalidCode, Message: fmt.Sprintf("the program has %d bytes, at most %d are allowed", len(prog.Source), p.opts.MaxSource),
			Hint: "Write a shorter program."}
	}
	if r := p.takeWarm(prog.Checksum, owner); r != nil {
		return r, t, nil
	}
	began := time.Now()
	r, failure := p.takeBlank(ctx)
	t.Spawn = time.Since(began)
	if failure != nil {
		return nil, t, failure
	}
	began = time.Now()
	stop := context.AfterFunc(ctx, r.interrupt)
	failure = r.load(ctx, prog, owner, deadline())
	if !stop() && failure == nil {
		failure = interrupted(ctx)
	}
	t.Gate = time.Since(began)
	if failure != nil {
		r.kill("refused") // counts only when nothing else has killed it
		p.noteFault(failure, prog.Checksum)
		return nil, t, failure
	}
	return r, t, nil
}

// loadTimeout bounds gate and compilation where no run bounds them.
const loadTimeout = 15 * time.Second

// Load has a runner gate and compile the program and keeps that runner warm for it and the owner.
func (p *Pool) Load(ctx context.Context, prog Program, owner string) (*report.Facts, *Failure) {
	req := &Request{Owner: owner, Depth: 1} // part of a call that has its place already, or of an operator's request
	if err := p.admission.enter(ctx, req); err != nil {
		return nil, interrupted(ctx)
	}
	defer p.admission.leave(req)
	r, _, failure := p.prepare(ctx, prog, owner, func() time.Time { return time.Now().Add(loadTimeout) })
	if failure != nil {
		return nil, failure
	}
	p.keep(r, time.Now()) // in isolation "call" too: it has run nothing yet
	return r.facts, nil
}

// defaultTimeout is a program's run time when a request names none.
const defaultTimeout = 30 * time.Second

// Run runs the program. It may be called from many goroutines.
func (p *Pool) Run(ctx context.Context, req Request, h Host) Result {
	began := time.Now()
	x := exchange{pool: p, req: &req, h: h}
	if err := x.journal.open(req.Recorded, p.opts.MaxJournal); err != nil {
		return Result{Failure: diverged("the recorded effects cannot be read: " + err.Error())}
	}
	if ctx.Err() != nil {
		return Result{Failure: interrupted(ctx)}
	}
	if err := p.admission.enter(ctx, &req); err != nil {
		f := interrupted(ctx)
		f.Waiting = true
		return Result{Failure: f, Timing: Timing{Queue: time.Since(began)}}
	}
	defer p.admission.leave(&req)
	admitted := time.Now()
	timeout := req.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	var deadline time.Time // of gate, compilation and run together; the start of a process is not the program's
	start := func() time.Time {
		if deadline.IsZero() {
			deadline = time.Now().Add(timeout)
		}
		return deadline
	}
	r, timing, failure := p.prepare(ctx, req.Program, req.Owner, start)
	timing.Queue = admitted.Sub(began)
	if failure != nil {
		return Result{Failure: failure, Timing: timing}
	}
	stop := context.AfterFunc(ctx, r.interrupt)
	running := time.Now()
	res := r.runOnce(ctx, &req, start(), &x)
	ended := time.Now()
	if !stop() {
		r.kill("canceled") // interrupt may be running still
	}
	res.Facts = r.facts
	x.journal.reads = len(r.facts.ContextReads)+len(r.facts.ContextWrites) > 0
	res.Effects = x.effects(&req)
	timing.Host = x.host
	timing.Run = ended.Sub(running) - x.host
	res.Timing = timing
	if res.Failure != nil {
		// A panic is the program's own, yet what it left half done is not known.
		r.kill("failed")
		p.noteFault(res.Failure, req.Program.Checksum)
		p.opts.Log.Debug().Str("type", res.Failure.Type).Str("detail", res.Failure.Detail).Msg("a run failed")
	} else {
		p.putBack(r, ended)
	}
	return res
}

// noteFault counts and logs an internal fault of the engine.
func (p *Pool) noteFault(f *Failure, checksum string) {
	if f.Detail != DetailEngine {
		return
	}
	p.mu.Lock()
	p.faults++
	p.mu.Unlock()
	p.opts.Log.Error().Str("checksum", checksum).Str("error", f.Message).Msg("the engine failed")
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

// Status states the confinement as the canary observed it.
func (p *Pool) Status() Status { return p.status }

// Stats are figures for metrics.
func (p *Pool) Stats() Stats {
	busy, _ := p.admission.counts()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Busy: int64(busy), Idle: int64(len(p.blank)), Warm: int64(len(p.warm)), Spawned: p.spawned, EngineFailures: p.faults, Killed: make(map[string]int64, len(p.killed))}
	for k, v := range p.killed {
		s.Killed[k] = v
	}
	return s
}

// Close ends every runner, those in the middle of a call too, and waits until all are gone. It may be called twice.
func (p *Pool) Close() error {
	p.end(errShutdown)
	p.mu.Lock()
	p.closed = true
	for r := range p.live {
		r.kill("shutdown")
	}
	p.blank, p.warm = nil, nil
	p.mu.Unlock()
	p.work.Wait()
	p.spawner.close()
	p.fetcher.close()
	return nil
}
