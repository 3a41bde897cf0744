package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Tiers: what runs a program.
const (
	TierEngine = "engine" // an engine of package gate in a runner
	TierNative = "native" // the program itself, compiled to a binary
)

// An Executable is a program compiled to a static binary that speaks the runner's wire. A launcher confines it before its first instruction. It is shared and must not be changed.
type Executable struct {
	Path   string        // of the file, which every user may execute
	Digest string        // "sha256:" and hex, of the file's bytes: no other bytes are run
	Args   []string      // of its command line
	Facts  *report.Facts // of the program, as the gate found them: those of each run
}

// Kinds of NativeFault.
const (
	NativeBusy    = "busy"    // the machine lacks something for the moment; says nothing about the executable
	NativeMissing = "missing" // the file is gone or has other bytes
	NativeBroken  = "broken"  // it did not start or load, died, broke the protocol or ran out of time, and the engine did not end the same way
)

// A NativeFault says what is wrong with an executable. The engine answered in its place unless the program had made a host call already.
type NativeFault struct{ Kind, Message string }

// Sum returns the digest of an executable's bytes.
func Sum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// open opens the file and checks its bytes. What is run is the open file, so a change of the directory afterwards has no effect.
func (x *Executable) open() (*os.File, error) {
	f, err := os.OpenFile(x.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // a pipe in its place would block
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", x.Path), err)
	}
	sum, err := Sum(f)
	if err == nil && sum != x.Digest {
		err = fmt.Errorf("%s has other bytes than were built", x.Path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// runNative runs an admitted request on its executable. Where that fails before the first host call, the engine runs it with the whole time again. A fault after a
// host call ends the run as a failure that is not the program's.
func (p *Pool) runNative(ctx context.Context, x *exchange) Result {
	req := x.req
	if x.journal.open(req.Recorded, p.opts.MaxJournal) != nil {
		return p.runEngine(ctx, x.again()) // which fails the same way, without a process
	}
	began := time.Now()
	r, fault := p.prepareNative(ctx, req)
	if fault != nil {
		return p.instead(ctx, x, fault, nil)
	}
	ready := time.Now()
	res := p.use(ctx, r, x, ready.Add(req.Timeout))
	res.Timing.Spawn, res.Tier = ready.Sub(began), TierNative
	failure := res.Failure
	if failure == nil || ctx.Err() != nil || p.stop.Err() != nil || !r.faulted && failure.Detail != DetailEngine {
		return res
	}
	fault = &NativeFault{NativeBroken, failure.Message}
	if x.asks == 0 {
		return p.instead(ctx, x, fault, failure)
	}
	res.Native = fault
	res.Failure = &Failure{Type: agent.ErrRunnerCrash, Detail: DetailEngine, Ours: true, Message: "the compiled program failed: " + failure.Message,
		Hint: "Call again: the engine runs the program from now on."}
	return res
}

// instead runs the request on the engine after a fault of its executable, which ended in failure if it ran. Where the engine ends the same way, that was the
// program's own doing, such as endless recursion.
func (p *Pool) instead(ctx context.Context, x *exchange, fault *NativeFault, failure *Failure) Result {
	res := p.runEngine(ctx, x.again())
	if failure == nil || res.Failure == nil || res.Failure.Ours || res.Failure.Type != failure.Type {
		res.Native = fault
	}
	return res
}

// prepareNative returns a process of the executable that is ready to run: a warm one, or a new one.
func (p *Pool) prepareNative(ctx context.Context, req *Request) (*runner, *NativeFault) {
	x := req.Native
	if r := p.takeWarm(warmKey{req.Program.Checksum, req.Owner, x.Digest}); r != nil {
		return r, nil
	}
	program, err := x.open()
	if err != nil {
		if exhausted(err) {
			return nil, &NativeFault{NativeBusy, err.Error()}
		}
		return nil, &NativeFault{NativeMissing, err.Error()}
	}
	defer program.Close()
	r, err := p.spawnNative(program, x.Args)
	if err != nil {
		if exhausted(err) || p.stop.Err() != nil {
			return nil, &NativeFault{NativeBusy, err.Error()}
		}
		return nil, &NativeFault{NativeBroken, err.Error()}
	}
	r.native = x.Digest
	stop := context.AfterFunc(ctx, r.interrupt)
	failure := r.load(ctx, req.Program, req.Owner, time.Now().Add(req.Timeout))
	if !stop() && failure == nil {
		failure = interrupted(ctx)
	}
	if failure != nil {
		r.kill("refused")
		message, said := failure.Message, r.diary.text()
		if len(said) > 0 {
			message += ": " + wire.BoundText(said, 500)
		}
		if ctx.Err() != nil || p.stop.Err() != nil || lacksThreads(said) {
			return nil, &NativeFault{NativeBusy, message}
		}
		return nil, &NativeFault{NativeBroken, message}
	}
	if r.facts = x.Facts; r.facts == nil {
		r.facts = &report.Facts{}
	}
	return r, nil
}

// spawnNative starts a process of the executable, and returns it when it is about to begin, confined.
func (p *Pool) spawnNative(program *os.File, args []string) (*runner, error) {
	r, err := p.launch(p.programLaunch(append([]string{"recurgent-native"}, args...)), []*os.File{program}, "")
	if err != nil {
		return nil, err
	}
	cfg := p.programConfig()
	cfg.Put(&r.wr)
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		r.bury("spawn")
		return nil, err
	}
	return r, nil
}
