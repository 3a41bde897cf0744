package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Pool implements Sandbox. It keeps blank runners, which wait for a program, and warm ones, which have compiled theirs.
// Its methods may be called concurrently.
type Pool struct {
	opts         Options
	spawner      *spawner
	images       []*image // candidate runner images, preferred first
	image        *image   // the image in use; set once by the canary
	launchers    []*image // candidate launcher images
	launcher     *image   // the launcher image in use; nil if launching is unavailable
	admission    *admission
	status       Status
	readyTimeout time.Duration
	layers       []string          // layers that held for the canary; every process must have them
	confinement  *wire.Confinement // confinement of runners
	probed       *wire.Confinement // confinement of the canary, which must survive its own probes
	program      *wire.Confinement // confinement of executables
	compiler     Compiler          // compiles all programs; nil if an engine runs them; set once by UseCompiler
	most         int               // most processes at once
	tasks        string            // describes most, for the status

	stop context.Context // ends with Close
	end  context.CancelCauseFunc
	work sync.WaitGroup // goroutines of the pool

	mu       sync.Mutex
	closed   bool             // guarded by mu
	blank    []*runner        // guarded by mu
	spawning int              // guarded by mu; blank runners being started
	starting int              // guarded by mu; processes being started
	taken    int              // guarded by mu; blank runners taken since the last tick of tidy
	rate     int              // guarded by mu; blank runners taken in the tick before
	warm     warmSet          // guarded by mu
	live     map[*runner]bool // guarded by mu; every process not yet reaped
	spawned  int64            // guarded by mu
	killed   map[string]int64 // guarded by mu
	faults   int64            // guarded by mu; internal engine faults
}

// errShutdown is the cause with which Close ends runs and starts.
var errShutdown = errors.New("the daemon is shutting down")

// New starts the spawner and a canary runner, which tries what confinement must prevent. It fails if the observed
// confinement is below Options.Require. The caller must call Close, which ends every runner.
func New(o Options) (*Pool, error) {
	return newPool(o, hooks{})
}

// hooks holds replacements for tests. Zero values keep the defaults.
type hooks struct {
	// args replaces "runner" on the command line. With it, this binary is the only runner image.
	args           []string
	program, build string                          // replace the runner that the binary carries, and wire.Build
	launcher       string                          // replaces the launcher that the binary carries
	start          func() error                    // injects a fault at the start of each process
	ready          time.Duration                   // replaces readyTimeout
	plans          []plan                          // replaces the plans of the system
	kill           bool                            // forbidden system calls kill the runner
	room           func() (room int, limit string) // replaces taskRoom
}

func newPool(o Options, h hooks) (_ *Pool, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	sealInherited()
	most, tasks, err := mostRunners(2*allChains(o.Waiting)+o.mostWarm()+o.Blank, h.room)
	if err != nil {
		return nil, err
	}
	threads.Reserve(daemonThreads())
	// If the system allows few processes, half of them are left for nested calls.
	waiting := max(1, min(o.Waiting, most*3/8))
	p := &Pool{opts: o, admission: newAdmission(min(o.Runners, waiting), waiting), most: most, tasks: tasks,
		live: map[*runner]bool{}, killed: map[string]int64{}, warm: newWarmSet()}
	p.readyTimeout = readyTimeout
	if err := p.makeConfinement(h.kill); err != nil {
		return nil, err
	}
	if h.ready > 0 {
		p.readyTimeout = h.ready
	}
	p.stop, p.end = context.WithCancelCause(context.Background())
	if p.spawner, err = startSpawner(h.start, nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.images, err = images(h, &o); err != nil {
		return nil, err
	}
	if o.Native {
		if err := p.makePrograms(h); err != nil {
			return nil, err
		}
	}
	if h.plans == nil {
		h.plans = plans()
	}
	if err := p.observe(h.plans); err != nil {
		return nil, err
	}
	if want := o.required(); rank(p.status.Level) < rank(want) {
		return nil, fmt.Errorf("sandbox: confinement is %q, required is %q: %s", p.status.Level, want,
			p.status.summary())
	}
	p.mu.Lock()
	p.refill()
	p.mu.Unlock()
	p.work.Add(1)
	go p.tidy()
	return p, nil
}

// defaultTimeout is a program's run time if a request sets none.
const defaultTimeout = 30 * time.Second

// Run implements Sandbox.Run. It may be called concurrently.
func (p *Pool) Run(ctx context.Context, given Request, h Host) Result {
	began := time.Now()
	if ctx.Err() != nil {
		return Result{Failure: keptWaiting(ctx)}
	}
	x := &exchange{pool: p, req: given, h: h}
	req := &x.req
	if err := p.admission.enter(ctx, req); err != nil {
		return Result{Failure: keptWaiting(ctx), Timing: Timing{Queue: time.Since(began)}}
	}
	defer p.admission.leave(req)
	queued := time.Since(began)
	if req.Timeout <= 0 {
		req.Timeout = defaultTimeout
	}
	res := p.run(ctx, x)
	res.Timing.Queue = queued
	return res
}

// run runs an admitted request.
func (p *Pool) run(ctx context.Context, x *exchange) Result {
	req := &x.req
	if err := x.journal.open(req.Recorded, p.opts.MaxJournal); err != nil {
		return Result{Failure: diverged("the recorded effects cannot be read: " + err.Error())}
	}
	limit := limit{length: req.Timeout}
	r, timing, failure := p.prepare(ctx, req.Program, req.Owner, &limit, x.h)
	if failure != nil {
		return Result{Failure: failure, Timing: timing}
	}
	res := p.use(ctx, r, x, limit.start())
	timing.Host, timing.Run, res.Tier = res.Timing.Host, res.Timing.Run, p.tier()
	res.Timing = timing
	return res
}

// use runs the request in the runner, and then keeps or ends the runner.
func (p *Pool) use(ctx context.Context, r *runner, x *exchange, deadline time.Time) Result {
	running := time.Now()
	x.until = deadline
	res := Result{Failure: x.bringRecords(ctx, r.facts)}
	if res.Failure == nil {
		res = r.runOnce(ctx, &x.req, deadline, x)
	}
	x.files.closeAll()
	ended := time.Now()
	r.unwatched()
	res.Facts = r.facts
	x.journal.reads = len(r.facts.ContextReads)+len(r.facts.ContextWrites) > 0
	res.Effects = x.effects(&x.req)
	res.Timing.Host = x.host
	res.Timing.Run = ended.Sub(running) - x.host
	if res.Failure != nil {
		// Any failure ends the runner: even after a program's own panic its state is unknown.
		r.kill("failed")
		p.noteFault(res.Failure, x.req.Program.Checksum)
		p.opts.Log.Debug().Str("type", res.Failure.Type).Str("detail", res.Failure.Detail).Msg("a run failed")
	} else {
		p.putBack(r, ended, ended.Sub(running))
	}
	return res
}

// noteFault counts and logs an internal fault of the engine.
func (p *Pool) noteFault(f *Failure, checksum string) {
	if f.Detail != detailEngine {
		return
	}
	p.mu.Lock()
	p.faults++
	p.mu.Unlock()
	p.opts.Log.Error().Str("checksum", checksum).Str("error", f.Message).Msg("the engine failed")
}

// Status returns the confinement that the canary observed.
func (p *Pool) Status() Status { return p.status }

// Stats returns current figures for metrics.
func (p *Pool) Stats() Stats {
	busy, _ := p.admission.counts()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Busy: int64(busy), Idle: int64(len(p.blank)), Warm: int64(p.warm.count), WarmBytes: p.warm.bytes,
		Spawned: p.spawned, EngineFailures: p.faults, Killed: make(map[string]int64, len(p.killed))}
	for k, v := range p.killed {
		s.Killed[k] = v
	}
	return s
}

// Close ends every runner, including those running a call, and waits until all are reaped. It may be called more than
// once and always returns nil.
func (p *Pool) Close() error {
	p.end(errShutdown)
	p.mu.Lock()
	p.closed = true
	for r := range p.live {
		r.kill("shutdown")
	}
	p.blank = nil
	p.mu.Unlock()
	p.work.Wait()
	p.spawner.close()
	for _, i := range slices.Concat(p.images, p.launchers) {
		i.close()
	}
	return nil
}
