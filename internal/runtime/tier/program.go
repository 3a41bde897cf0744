package tier

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Phases of a program.
const (
	idle     int32 = iota // not hot, or hot while too many wait
	building              // waits for its build, is being built, or is compared on its fixtures and examples
	checking              // is compared on live calls
	native
	off
	dropped // its state has been forgotten
)

// States names the phases that people see.
var States = []string{"idle", "building", "checking", "native", "off"}

// A Program is what the tier knows of one program. Its methods may be called concurrently; those of a nil Program do nothing.
type Program struct {
	tier *Tier
	key  Key

	phase atomic.Int32
	exe   atomic.Pointer[sandbox.Executable] // set while the phase is native
	calls atomic.Int64                       // on the engine, since the program was first seen
	ran   atomic.Int64                       // nanoseconds that these ran
	retry atomic.Int64                       // when a build may be tried again, in Unix nanoseconds; 0: never

	mu        sync.Mutex
	facts     *report.Facts       // as the engine reported them; guarded by mu
	candidate *sandbox.Executable // built and not proved; guarded by mu
	since     time.Time           // of the phase; guarded by mu
	why       string              // of the phase off; guarded by mu
	checked   int                 // live calls that were reproduced; guarded by mu
	unclear   int                 // live calls that the engine itself did not reproduce; guarded by mu
	failed    int                 // builds in a row; guarded by mu
	verdict   verdict             // of this or an earlier process; guarded by mu
}

func newProgram(t *Tier, k Key, v verdict) *Program {
	p := &Program{tier: t, key: k, since: t.o.Now(), verdict: v}
	if v.Verdict != "" {
		p.since = v.At
	}
	if v.Verdict == differs || v.Verdict == broken {
		p.why = v.Why
		p.phase.Store(off)
	}
	return p
}

// Executable returns what answers the program's calls, nil for the engine.
func (p *Program) Executable() *sandbox.Executable {
	if p == nil {
		return nil
	}
	return p.exe.Load()
}

// Ran counts a live run, and has a hot program compiled. It reports whether the tier wants a Sample of the run.
func (p *Program) Ran(res *sandbox.Result, hot agent.NativePolicy) (wanted bool) {
	if p == nil {
		return false
	}
	if res.Native != nil {
		p.fault(res.Native)
		return false
	}
	switch p.phase.Load() {
	case idle:
		calls, ran := p.calls.Add(1), p.ran.Add(int64(res.Timing.Run))
		if calls >= int64(hot.MinCalls) && ran >= int64(hot.MinCPUMs)*int64(time.Millisecond) || p.proved() {
			p.enqueue(idle, res.Facts)
		}
	case checking:
		return res.Tier == sandbox.TierEngine
	case off:
		if at := p.retry.Load(); at != 0 && p.tier.o.Now().UnixNano() >= at {
			p.enqueue(off, res.Facts)
		}
	}
	return false
}

// proved reports whether an earlier process has proved the program, so that it only has to be built.
func (p *Program) proved() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verdict.Verdict == proved
}

// enqueue has the program built, unless too many wait. The program is tried again with a later call then.
func (p *Program) enqueue(from int32, f *report.Facts) {
	if !p.phase.CompareAndSwap(from, building) {
		return
	}
	p.mu.Lock()
	p.since, p.facts = p.tier.o.Now(), f
	p.mu.Unlock()
	select {
	case p.tier.builds <- p:
	default:
		p.phase.CompareAndSwap(building, from)
	}
}

// turnOff keeps the program on the engine. The reason is durable if it is a verdict; otherwise the build is tried again after a delay, if there is one.
func (p *Program) turnOff(v string, why string, again time.Duration) {
	now := p.tier.o.Now()
	p.mu.Lock() // who sees that it is off sees why
	if was, ok := p.enter(off); !ok || was == off {
		p.mu.Unlock()
		return
	}
	x := p.exe.Swap(nil)
	if x == nil {
		x = p.candidate
	}
	p.candidate, p.why, p.since = nil, why, now
	p.verdict = verdict{Namespace: p.key.stored(), Role: p.key.Role, Method: p.key.Method, Checksum: p.key.Checksum, Verdict: v, Why: why, Identity: p.tier.o.Identity, At: now}
	if x != nil {
		p.verdict.Executable, p.verdict.File = x.Digest, x.Path
	}
	kept := p.verdict
	p.mu.Unlock()
	p.retry.Store(0)
	if again > 0 {
		p.retry.Store(now.Add(again).UnixNano())
	}
	if v != "" {
		p.keep(kept)
	}
	p.tier.o.Logger.Warn().Str("role", p.key.Role).Str("method", p.key.Method).Str("checksum", p.key.Checksum).Str("reason", why).
		Msg("a program stays on the engine")
}

// keep makes the verdict durable. A program that is dropped meanwhile leaves no file.
func (p *Program) keep(v verdict) {
	p.tier.keep(v)
	if p.phase.Load() == dropped {
		_ = p.tier.verdicts.remove(p.key) // forget may have done so before it was written
	}
}

// enter changes the phase unless the program has been dropped, and returns the one before.
func (p *Program) enter(phase int32) (was int32, ok bool) {
	for {
		was = p.phase.Load()
		if was == dropped {
			return was, false
		}
		if p.phase.CompareAndSwap(was, phase) {
			return was, true
		}
	}
}

// prove has the executable answer from now on.
func (p *Program) prove(x *sandbox.Executable) {
	p.mu.Lock()
	p.since, p.candidate, p.why, p.failed = p.tier.o.Now(), nil, "", 0
	known := p.verdict.Verdict == proved && p.verdict.Executable == x.Digest
	p.verdict = verdict{Namespace: p.key.stored(), Role: p.key.Role, Method: p.key.Method, Checksum: p.key.Checksum, Verdict: proved, Executable: x.Digest, File: x.Path,
		Identity: p.tier.o.Identity, At: p.since}
	kept := p.verdict
	p.mu.Unlock()
	if !known { // before anybody sees that it is native
		p.keep(kept)
	}
	p.exe.Store(x)
	if _, ok := p.enter(native); !ok {
		p.exe.Store(nil)
		return
	}
	p.tier.o.Logger.Info().Str("role", p.key.Role).Str("method", p.key.Method).Str("checksum", p.key.Checksum).Msg("a program runs natively from now on")
}

// fault acts on what a live run found wrong with the executable.
func (p *Program) fault(f *sandbox.NativeFault) {
	p.tier.o.Metrics.NativeFault(f.Kind)
	p.tier.o.Logger.Warn().Str("role", p.key.Role).Str("method", p.key.Method).Str("checksum", p.key.Checksum).Str("kind", f.Kind).Str("error", f.Message).
		Msg("a compiled program failed")
	switch f.Kind {
	case sandbox.NativeBroken:
		p.turnOff(broken, "its compiled program failed: "+f.Message, 0)
	case sandbox.NativeMissing:
		p.rebuild()
	}
}

// rebuild takes the executable, whose file is gone or damaged, out of use and builds it again. What it has proved still holds for the same bytes.
func (p *Program) rebuild() {
	p.mu.Lock()
	x := p.exe.Swap(nil)
	p.mu.Unlock()
	if x == nil {
		return // another call has done so
	}
	_ = os.Remove(x.Path) // a damaged file would be found in the cache again
	p.phase.CompareAndSwap(native, idle)
	p.enqueue(idle, x.Facts)
}

// A View is a program's state as people see it.
type View struct {
	State   string    `json:"state"`             // one of States
	Checked int       `json:"checked,omitempty"` // calls that were reproduced
	Checks  int       `json:"checks,omitempty"`  // of how many
	Why     string    `json:"why,omitempty"`     // of off
	Since   time.Time `json:"since,omitzero"`
}

// View returns the program's state.
func (p *Program) View() View {
	if p == nil {
		return View{State: States[idle]}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v := View{Since: p.since.UTC()}
	switch phase := p.phase.Load(); phase {
	case dropped:
		return View{State: States[idle]}
	case checking:
		v.Checked, v.Checks = p.checked, Checks
		v.State = States[checking]
	case off:
		v.Why, v.State = p.why, States[off]
	case idle:
		return View{State: States[idle]}
	default:
		v.State = States[phase]
	}
	return v
}

// View returns the state of a method's program.
func (t *Tier) View(k Key) View {
	if t == nil || t.o.Builder == nil {
		return View{State: States[off], Why: "the native tier is off: " + t.State().Why}
	}
	if p := (*t.programs.Load())[k]; p != nil {
		return p.View()
	}
	return View{State: States[idle]}
}
