// Package tier decides which programs run natively, and when. A program that is called often and computes much is compiled in the background, one at a
// time, and compared with the engine: on its fixtures and examples, then on Checks of its calls, run again from their effect journals. Only when every one
// ends in the same bytes does the compiled program answer calls. A difference is a fault of the daemon: the program stays on the engine, and both ends are
// written out for the maintainers.
//
// Nothing of this is part of a call: a call looks up its program's state and counts itself. The package knows nothing of how executables are
// made (Builder) or what calls are (Source).
package tier

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Checks is how many calls a compiled program has to reproduce before it answers any.
const Checks = 20

// A Builder compiles programs.
type Builder interface {
	// Build returns the path of the program's executable, which is new or from a cache, and the digest of its bytes (sandbox.Executable): no others are run. An error that matches
	// ErrUnsupported is final for the program.
	Build(ctx context.Context, source string) (path, digest string, err error)
}

// ErrUnsupported matches the error of a program that only the engine can run.
var ErrUnsupported = errors.New("the program cannot be compiled")

// A Key identifies a program of a method, by the checksum of its source. The same program in two namespaces is proved in
// each by that one's calls: only the executable is shared, which depends on the source alone.
type Key struct {
	Namespace              agent.Namespace
	Role, Method, Checksum string
}

// A Source knows the programs of one namespace and what they have answered.
type Source interface {
	// Generation returns the kept generation of the method with that program, nil if there is none, and whether it is the current one.
	Generation(ctx context.Context, k Key) (g *agent.Generation, current bool, err error)
	// Proofs runs the generation's fixtures and the method's examples on the engine and yields each run that can be repeated.
	Proofs(ctx context.Context, k Key, yield func(Sample) bool) error
	Rules() *mask.Rules // for secrets; nil for none
}

// Sources returns the source of a namespace, and what is called when it is not needed any more; a nil Source where the namespace is gone.
type Sources func(ctx context.Context, of agent.Namespace) (s Source, done func(), err error)

// Options configures a Tier.
type Options struct {
	Builder   Builder      // nil: the tier is off
	Why       string       // why there is no Builder, in words
	Toolchain string       // its Go version, for people
	From      string       // carried or installed
	Fault     func() error // why nothing can be compiled at present; nil, or returning nil, where something can
	Identity  string       // of toolchain and daemon: verdicts that another one reached do not count
	Dir       string       // for verdicts and differences; it is created when it is needed
	Key       *seal.Key    // of the installation, which verdicts are sealed with; required with a Builder

	Box     sandbox.Sandbox
	Metrics *telemetry.Metrics
	Logger  zerolog.Logger
	Now     func() time.Time
}

// Bounds of what waits for the tier's one worker, and of what it remembers.
const (
	maxPrograms = 4096
	maxBuilds   = 64
	maxSamples  = 64
)

// A Tier holds the states of programs. A nil Tier is one that is off. Its methods may be called concurrently.
type Tier struct {
	o        Options
	verdicts verdicts
	findings findings
	sources  Sources // set by Begin

	programs atomic.Pointer[map[Key]*Program] // copied on write, under mu
	builds   chan *Program
	samples  chan offered

	life context.Context
	end  context.CancelCauseFunc
	done chan struct{} // closed when the worker has ended; nil before Begin

	mu sync.Mutex // held while programs is replaced
}

var errStopped = errors.New("the daemon is shutting down")

// New reads the verdicts of earlier processes. Begin starts the worker.
func New(o Options) (*Tier, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Tier{o: o, builds: make(chan *Program, maxBuilds), samples: make(chan offered, maxSamples)}
	t.life, t.end = context.WithCancelCause(context.Background())
	all := map[Key]*Program{}
	t.programs.Store(&all)
	if o.Builder == nil {
		return t, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	at, err := beneath.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	t.verdicts, t.findings = verdicts{at, o.Key}, findings{at}
	if err := dropWrong(at); err != nil {
		return nil, err
	}
	kept, err := t.verdicts.read(o.Identity)
	if err != nil {
		return nil, err
	}
	for _, v := range kept {
		k := v.key()
		all[k] = newProgram(t, k, v)
	}
	return t, nil
}

// Begin starts the worker, which asks the sources. It is called once.
func (t *Tier) Begin(s Sources) {
	if t == nil || t.o.Builder == nil {
		return
	}
	t.sources, t.done = s, make(chan struct{})
	go t.work()
}

// Stop ends what is being built or compared, and waits for it. Programs that run natively go on to do so. It may be called twice.
func (t *Tier) Stop() {
	if t == nil {
		return
	}
	t.end(errStopped)
	if t.done != nil {
		<-t.done
	}
}

// Program returns the state of a program, nil while the tier is off.
func (t *Tier) Program(k Key) *Program {
	if t == nil || t.o.Builder == nil {
		return nil
	}
	if p := (*t.programs.Load())[k]; p != nil {
		return p
	}
	return t.add(k)
}

// add returns the key's state, a new one where there is none. Among too many programs the idle ones are forgotten; nil if there are none.
func (t *Tier) add(k Key) *Program {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.programs.Load()
	if p := old[k]; p != nil {
		return p
	}
	next := make(map[Key]*Program, len(old)+1)
	for other, p := range old {
		if len(old) < maxPrograms || p.phase.Load() != idle {
			next[other] = p
		}
	}
	if len(next) >= maxPrograms {
		return nil
	}
	p := newProgram(t, k, verdict{})
	next[k] = p
	t.programs.Store(&next)
	return p
}

// Changed drops the states of the method's programs that the method no longer runs, after a person's operation or an adoption. A difference is remembered as long as
// the generation is kept.
func (t *Tier) Changed(of agent.Namespace, role, method string) {
	t.drop(func(k Key) bool { return k.Namespace == of && k.Role == role && k.Method == method })
}

// ChangedAll is Changed for all methods of the namespace, of all namespaces where none is named.
func (t *Tier) ChangedAll(of agent.Namespace) {
	t.drop(func(k Key) bool { return of == "" || k.Namespace == of })
}

// Erase drops the states of all programs of a namespace that is gone, with their files.
func (t *Tier) Erase(of agent.Namespace) {
	if t == nil {
		return
	}
	var gone []*Program
	for k, p := range *t.programs.Load() {
		if k.Namespace == of {
			gone = append(gone, p)
		}
	}
	t.remove(gone, func(*Program) bool { return true })
}

// generation asks the program's namespace; nil where it is gone.
func (t *Tier) generation(k Key) (g *agent.Generation, current bool, err error) {
	err = t.ask(k, func(s Source) error {
		g, current, err = s.Generation(t.life, k)
		return err
	})
	return g, current, err
}

// ask calls use with the source of the program's namespace, unless that is gone.
func (t *Tier) ask(k Key, use func(Source) error) error {
	s, done, err := t.sources(t.life, k.Namespace)
	if err != nil || s == nil {
		return err
	}
	defer done()
	return use(s)
}

func (t *Tier) drop(concerns func(Key) bool) {
	if t == nil || t.done == nil || t.life.Err() != nil { // what goes now is found at the next start
		return
	}
	erased := map[*Program]bool{}
	var gone []*Program
	for k, p := range *t.programs.Load() {
		if !concerns(k) {
			continue
		}
		g, current, err := t.generation(k)
		if err != nil {
			t.o.Logger.Warn().Err(err).Str("role", k.Role).Str("method", k.Method).Msg("the native state of a program was not looked at")
			continue
		}
		if g == nil || !current && p.phase.Load() != off {
			gone = append(gone, p)
			erased[p] = g == nil
		}
	}
	t.remove(gone, func(p *Program) bool { return erased[p] })
}

// remove forgets the programs. They leave the map first: so the last one that has an executable removes it.
func (t *Tier) remove(gone []*Program, erased func(*Program) bool) {
	if len(gone) == 0 {
		return
	}
	t.mu.Lock()
	next := maps.Clone(*t.programs.Load())
	for _, p := range gone {
		delete(next, p.key)
	}
	t.programs.Store(&next)
	t.mu.Unlock()
	for _, p := range gone {
		t.forget(p, erased(p))
	}
}

// Counts returns how many programs are in each state.
func (t *Tier) Counts() map[string]int {
	n := map[string]int{}
	if t == nil {
		return n
	}
	for _, p := range *t.programs.Load() {
		n[p.View().State]++
	}
	return n
}
