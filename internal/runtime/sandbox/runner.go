package sandbox

import (
	"container/list"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A runner is the daemon's side of one runner process. Whoever took it out of the pool owns it, one goroutine at a
// time. Only kill may be called concurrently.
type runner struct {
	opts  *Options
	proc  *os.Process
	in    *os.File // to the process
	out   *os.File // from the process
	rd    *wire.Reader
	wr    wire.Builder
	ask   wire.Builder // builds replies to questions
	born  time.Time
	calls int

	program   string        // checksum of the compiled program; "" while blank
	owner     agent.Owner   // the owner that it serves
	facts     *report.Facts // facts of the program
	idleSince time.Time
	place     *list.Element // in its owner's holding; nil unless warm
	held      int64         // bytes of private memory when it became idle
	idleCPU   time.Duration // processor time used when it was last seen idle; 0 means not measured

	usage   *os.File // the kernel's figures of the process; nil if they cannot be read
	figures [128]byte
	oom     string // result of offerToOOM, for the layers

	diary stderrDiary

	unwatch func() bool // ends the watch over a run's context; nil if there is none

	killOnce sync.Once
	reason   atomic.Pointer[string] // why the daemon killed it; nil if it did not
	gone     chan struct{}          // closed once the process has been reaped
	state    *os.ProcessState       // valid once gone is closed
}

// readyTimeout bounds the time from start to ready. It is generous, because a slow start on a loaded machine is not the
// program's fault.
const readyTimeout = 15 * time.Second

// adopt returns a runner for a started process and begins to read its standard error.
func adopt(o *Options, c *child) *runner {
	r := &runner{opts: o, proc: c.proc, in: c.in, out: c.out, born: time.Now(), rd: wire.NewReader(c.out),
		gone:  make(chan struct{}),
		usage: openUsage(c.proc.Pid), oom: offerToOOM(c.proc.Pid)}
	r.diary.done = make(chan struct{})
	go r.watchStderr(c.stderr)
	return r
}

// key returns the program and owner that the runner serves.
func (r *runner) key() warmKey { return warmKey{r.program, r.owner} }

// reap waits for the end of the process, collects its last output, calls forget and then closes gone.
func (r *runner) reap(forget func(*runner)) {
	// A dying process closes its standard error. Waiting for the process itself would occupy an OS thread per runner. A
	// process that lives on without standard error is not trusted and is killed. The kill does not change the status of
	// a process that is already dying.
	<-r.diary.done
	killProcess(r.proc)
	r.state, _ = r.proc.Wait()
	forget(r)
	close(r.gone)
}

// kill sends SIGKILL and does not wait. Only the first reason counts. It may be called concurrently.
func (r *runner) kill(reason string) {
	r.killOnce.Do(func() {
		r.reason.Store(&reason)
		killProcess(r.proc)
	})
}

// endsItself records the reason for a process that ends by itself.
func (r *runner) endsItself(reason string) { r.reason.Store(&reason) }

// bury kills the process and waits for its end.
func (r *runner) bury(reason string) {
	r.kill(reason)
	<-r.gone
}

// confirm sends the frame built in wr, which describes the confinement, and waits until the process reports that it is
// confined.
func (r *runner) confirm(timeout time.Duration) (*wire.Ready, error) {
	r.setDeadline(time.Now().Add(timeout))
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		return nil, err
	}
	ready, err := r.report()
	if err == nil && ready.Layers != nil {
		ready.Layers[layerOOM] = r.oom
	}
	return ready, err
}

// report reads the process's next frame, which must be a report.
func (r *runner) report() (*wire.Ready, error) {
	kind, body, err := r.rd.Next(wire.MaxReady)
	if err != nil {
		return nil, err
	}
	ready, err := wire.ParseReady(body)
	if kind != wire.KindReady || err != nil {
		return nil, wire.ErrFrame
	}
	return ready, nil
}

func (r *runner) setDeadline(t time.Time) {
	r.in.SetWriteDeadline(t)
	r.out.SetReadDeadline(t)
}

// quiet reports whether the daemon has not killed the process and nothing has arrived since its last answer.
func (r *runner) quiet() bool {
	if r.rd.Buffered() || r.reason.Load() != nil {
		return false
	}
	return pipeSilent(r.out)
}

// load gates and compiles the source in the runner.
func (r *runner) load(ctx context.Context, p Program, owner agent.Owner, deadline time.Time) *Failure {
	r.program, r.owner = p.Checksum, owner
	r.arm(ctx, deadline)
	wire.PutLoad(&r.wr, p.Source)
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		return r.fault(ctx, err, "")
	}
	r.wr.Shrink()
	kind, payload, err := r.rd.Next(wire.MaxFacts)
	if err != nil {
		return r.fault(ctx, err, "")
	}
	if kind != wire.KindLoaded || r.rd.Buffered() {
		return r.fault(ctx, wire.ErrFrame, "")
	}
	l, err := wire.ParseLoaded(payload)
	if err != nil {
		return r.fault(ctx, err, "")
	}
	r.facts = l.Facts
	return notLoaded(l)
}

// runOnce runs the program once and serves its questions meanwhile.
func (r *runner) runOnce(ctx context.Context, req *Request, deadline time.Time, x *exchange) Result {
	r.calls++
	nonce := rand.Uint64()
	now, seed := x.journal.start(req)
	request := wire.Run{Nonce: nonce, Now: now, Seed: seed, Depth: req.Depth, Role: req.Role, Method: req.Method,
		CallID: req.CallID, TraceID: req.TraceID,
		Args: req.Args, Kwargs: req.Kwargs, Context: x.memory(), InputHistory: req.InputHistory}
	request.Put(&r.wr)
	if err := r.send(ctx, r.wr.Finish(), deadline); err != nil {
		return Result{Failure: r.fault(ctx, err, "")}
	}
	r.wr.Shrink()
	for {
		kind, payload, err := r.next(ctx, deadline)
		if err != nil {
			return Result{Failure: r.fault(ctx, err, "")}
		}
		switch kind {
		case wire.KindAnswer:
			a, err := wire.ParseAnswer(payload, nonce, r.opts.limits())
			if err == nil && r.rd.Buffered() {
				err = errors.New("more than one answer")
			}
			if err != nil {
				return Result{Failure: r.fault(ctx, err, "")}
			}
			if a.Discard {
				r.kill("leftovers")
			}
			return x.result(&a)
		case wire.KindAsk:
			failure := r.serve(ctx, payload, nonce, &deadline, x)
			if failure != nil {
				return Result{Failure: failure}
			}
		case wire.KindConfig, wire.KindReady, wire.KindFix, wire.KindFixed, wire.KindLoad, wire.KindLoaded,
			wire.KindRun, wire.KindReply:
			return Result{Failure: r.fault(ctx, errors.New("a frame out of turn"), "")}
		default:
			// A runner of another version may send an unknown kind. Such a frame needs no reply.
			if x.strange++; x.strange > 16 {
				return Result{Failure: r.fault(ctx, errors.New("frames of no known kind"), "")}
			}
		}
	}
}

// serve answers one question of the program. The run clock continues while the daemon works for the program and stops
// while it waits for others. Processor time that the runner uses during the wait still counts.
func (r *runner) serve(ctx context.Context, payload []byte, nonce uint64, deadline *time.Time, x *exchange) *Failure {
	q, err := wire.ParseQuestion(payload, nonce, 2*r.opts.MaxDepth)
	if err == nil && (q.ID != uint64(x.asks+1) || r.rd.Buffered()) {
		err = errors.New("a question out of turn")
	}
	if err != nil {
		return r.fault(ctx, err, "")
	}
	waited, cpu := x.host, r.cpuTime()
	x.until = *deadline
	a, fatal := x.answer(ctx, &q)
	defer x.release()
	*deadline = deadline.Add(max(0, x.host-waited-max(0, r.cpuTime()-cpu)))
	if fatal != nil {
		r.kill("call over")
		return fatal
	}
	if ctx.Err() != nil {
		f := r.fault(ctx, os.ErrDeadlineExceeded, "")
		f.Waiting = q.Op != wire.OpSleep // the host knows whether the wait would have ended by itself
		return f
	}
	r.watch(ctx)
	r.arm(ctx, *deadline)
	reply := wire.Reply{Nonce: nonce, ID: q.ID, Holds: wire.ReplyBody, Body: a.body}
	switch {
	case a.refusal != nil:
		reply.Holds, reply.Type, reply.Message = wire.ReplyRefused, a.refusal.Type, a.refusal.Message
	case a.same:
		reply.Holds = wire.ReplySame
	}
	reply.Put(&r.ask)
	if _, err := r.in.Write(r.ask.Finish()); err != nil {
		return r.fault(ctx, err, "")
	}
	r.ask.Shrink()
	return nil
}

// fault ends the runner and classifies err, an error of the exchange with it, as a failure of the call.
func (r *runner) fault(ctx context.Context, err error, reason string) *Failure {
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case timedOut && ctx.Err() != nil:
		r.kill("canceled")
		return interrupted(ctx)
	case timedOut:
		r.kill("deadline")
		return &Failure{Type: agent.ErrTimeout, Detail: "deadline",
			Message: "the program was still running at its deadline",
			Hint:    "Bound every loop and do less work in one call."}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE),
		errors.Is(err, os.ErrClosed):
		return r.autopsy()
	}
	if reason == "" {
		reason = "protocol"
	}
	r.kill(reason)
	return &Failure{Type: agent.ErrRunnerCrash, Detail: "protocol",
		Message: "the runner broke the protocol: " + err.Error()}
}

// interrupted classifies the end of ctx: the deadline of the whole call, or cancellation.
func interrupted(ctx context.Context) *Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &Failure{Type: agent.ErrTimeout, Detail: "deadline", Message: "the call's time was over", Ours: true}
	}
	return &Failure{Type: agent.ErrCanceled, Detail: "canceled",
		Message: "the call was given up: " + context.Cause(ctx).Error(), Ours: true}
}

// keptWaiting returns interrupted's failure for a call whose program was not running.
func keptWaiting(ctx context.Context) *Failure {
	f := interrupted(ctx)
	f.Waiting = true
	return f
}

// autopsy waits for the process, whose pipe has closed, and derives the cause of death from its exit status and output.
func (r *runner) autopsy() *Failure {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-r.gone:
	case <-t.C:
		// The process closed its pipe but lives on: it is not trusted.
		r.kill("protocol")
		<-r.gone
	}
	return classifyDeath(r.state, r.reason.Load(), r.diary.text(), peakMemory(r.state) > r.opts.Memory/3,
		int64(r.opts.RunnerCPU.Seconds()))
}

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
