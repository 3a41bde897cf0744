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

// A runner is the daemon's side of one runner process. Apart from kill and died it belongs to whoever took it out of
// the pool, one goroutine at a time.
type runner struct {
	opts  *Options
	proc  *os.Process
	in    *os.File // to the process
	out   *os.File // from the process
	rd    *wire.Reader
	wr    wire.Builder
	ask   wire.Builder // replies to questions
	born  time.Time
	calls int

	program   string        // what it has compiled; "" while blank
	owner     agent.Owner   // for whom
	facts     *report.Facts // of that program
	idleSince time.Time
	place     *list.Element // in its owner's holding; nil while it is not warm
	held      int64         // bytes of private memory when it went idle
	idleCPU   time.Duration // used when it went idle

	usage   *os.File // its figures at the kernel; nil when they cannot be read
	figures [128]byte
	oom     string // what came of offerToOOM

	diary stderrDiary

	unwatch func() bool // ends the watch over a run's context; nil while there is none

	killOnce sync.Once
	reason   atomic.Pointer[string] // why the daemon killed it; nil when it did not
	gone     chan struct{}          // closed when it has been reaped
	state    *os.ProcessState       // after gone
}

// readyTimeout bounds the time from start to ready. It is generous, because a loaded machine is not a program's fault.
const readyTimeout = 15 * time.Second

// adopt makes a runner of a started process and begins to watch it.
func adopt(o *Options, c *child) *runner {
	r := &runner{opts: o, proc: c.proc, in: c.in, out: c.out, born: time.Now(), rd: wire.NewReader(c.out),
		gone:  make(chan struct{}),
		usage: openUsage(c.proc.Pid), oom: offerToOOM(c.proc.Pid)}
	r.diary.done = make(chan struct{})
	go r.watchStderr(c.stderr)
	return r
}

// key is what it serves.
func (r *runner) key() warmKey { return warmKey{r.program, r.owner} }

// reap waits for the end of the process, reads the last of what it wrote, and reports to forget and then to whoever waits.
func (r *runner) reap(forget func(*runner)) {
	// A dying process closes its standard error; to wait for the process itself would hold a thread of the daemon for each runner. One
	// that lives on without standard error is up to nothing good. Where it is dying this changes nothing: its status stands.
	<-r.diary.done
	killProcess(r.proc)
	r.state, _ = r.proc.Wait()
	forget(r)
	close(r.gone)
}

// kill ends the process at once and for good; only the first reason counts. It does not wait.
func (r *runner) kill(reason string) {
	r.killOnce.Do(func() {
		r.reason.Store(&reason)
		killProcess(r.proc)
	})
}

// endsItself has the end of a process that ends by itself counted under the reason.
func (r *runner) endsItself(reason string) { r.reason.Store(&reason) }

// bury kills the process and waits for its end.
func (r *runner) bury(reason string) {
	r.kill(reason)
	<-r.gone
}

// confirm sends the frame that has been built, which says how the process is confined, and waits for the word that it is.
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

// report returns the process's next frame, which must be a report.
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

// quiet reports whether the process lives and has said nothing since its last answer.
func (r *runner) quiet() bool {
	if r.rd.Buffered() || r.reason.Load() != nil {
		return false
	}
	return pipeSilent(r.out)
}

// load has the runner gate and compile the source.
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

// runOnce has the runner run its program once and serves its questions meanwhile.
func (r *runner) runOnce(ctx context.Context, req *Request, deadline time.Time, x *exchange) Result {
	r.calls++
	nonce := rand.Uint64()
	now, seed := x.journal.start(req)
	request := wire.Run{Nonce: nonce, Now: now, Seed: seed, Depth: req.Depth, Role: req.Role, Method: req.Method,
		CallID: req.CallID, TraceID: req.TraceID,
		Args: req.Args, Kwargs: req.Kwargs, Context: x.memory(), InputHistory: req.InputHistory,
		Floats: r.facts != nil && r.facts.DigitsByBind}
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
			// A kind that this version does not know, from a runner of another: it asks nothing of us.
			if x.strange++; x.strange > 16 {
				return Result{Failure: r.fault(ctx, errors.New("frames of no known kind"), "")}
			}
		}
	}
}

// serve answers one question of the program. The run clock goes on while the daemon works for it; it stands still while
// it waits for others, except for processor time that the runner used although it had nothing to do.
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
		f.Waiting = q.Op != wire.OpSleep // and whether what it waited for would end by itself, the host knows
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

// fault ends the runner and says what err, which came up while talking to it, means for the call.
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

// interrupted says what the end of ctx means: the whole call's deadline, or that nobody waits any more.
func interrupted(ctx context.Context) *Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &Failure{Type: agent.ErrTimeout, Detail: "deadline", Message: "the call's time was over", Ours: true}
	}
	return &Failure{Type: agent.ErrCanceled, Detail: "canceled",
		Message: "the call was given up: " + context.Cause(ctx).Error(), Ours: true}
}

// keptWaiting is interrupted for a call whose program does not run.
func keptWaiting(ctx context.Context) *Failure {
	f := interrupted(ctx)
	f.Waiting = true
	return f
}

// autopsy waits for the process, whose pipe has closed, and finds out from its exit status what killed it.
func (r *runner) autopsy() *Failure {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-r.gone:
	case <-t.C:
		// It closed its pipe and lives on: nothing good.
		r.kill("protocol")
		<-r.gone
	}
	return classifyDeath(r.state, r.reason.Load(), r.diary.text(), peakMemory(r.state) > r.opts.Memory/3,
		int64(r.opts.RunnerCPU.Seconds()))
}
