package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Layers that a process cannot report of itself: whether executables and tools can be launched, and the score that the
// daemon sets on each process.
const (
	layerLaunch = "launch"
	layerOOM    = "oom_score_adj"
)

// Reasons under which Stats counts processes that end by themselves.
const (
	reasonTools  = "tools"
	reasonCanary = "canary"
)

// NativeOff returns why executables and tools cannot be run, or "" if they can.
func (s Status) NativeOff() string {
	state, observed := s.Layers[layerLaunch]
	switch {
	case !observed:
		return "the sandbox was opened without"
	case confine.On(state):
		return ""
	}
	return state
}

// launch starts a launcher that executes files[0], and waits until it has confined itself with the layers of the
// canary. The executed file inherits only descriptors below l.Keep. A process that ends by itself is counted under
// reason, unless reason is empty.
func (p *Pool) launch(l wire.Launch, files []*os.File, reason string) (*runner, error) {
	if p.launcher == nil {
		return nil, fmt.Errorf("nothing can be launched: %s", p.status.NativeOff())
	}
	from := *p.launcher
	from.extra = files
	if reason == reasonTools {
		from.user = l.Confine.User
	}
	r, err := p.start(&from)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		r.endsItself(reason)
	}
	l.Files, l.Path, l.Confine.Namespaces = len(files), launchPath(files[0]), p.confinement.Namespaces
	l.Require = slices.DeleteFunc(slices.Clone(p.layers), func(layer string) bool { return layer == layerOOM })
	l.Put(&r.wr)
	return r, p.confirmed(r, from.build)
}

// observeLaunch tests whether a launcher can run executables. The launcher executes the runners' program, which makes
// the canary's probes in an init function, so the test covers the executable's first instructions. If no launcher
// passes, executables are not run. If the level is LevelProcess, executables are confined no better than runners and
// the probes are skipped.
func (p *Pool) observeLaunch() {
	var faults []error
	for _, p.launcher = range p.launchers {
		state, err := p.launched()
		if err == nil {
			p.status.Layers[layerLaunch] = state
			return
		}
		faults = append(faults, err)
	}
	why := errors.Join(faults...).Error()
	p.launcher = nil
	p.status.Layers[layerLaunch] = "off (" + strings.ReplaceAll(wire.BoundText([]byte(why), 1000), "\n", "; ") + ")"
}

// launched returns the layer's state if the current launcher works.
func (p *Pool) launched() (state string, err error) {
	if rank(p.status.Level) >= rank(LevelReduced) {
		return p.launchedCanary()
	}
	return "on (as runners are)", p.launchedRunner()
}

// launchedRunner launches a runner and waits until it reports that it is ready.
func (p *Pool) launchedRunner() error {
	program, err := p.ownProgram()
	if program == nil {
		return err
	}
	defer program.Close()
	r, err := p.launch(wire.Launch{Confine: *p.program, Args: p.image.args, Env: runnerEnv(), Keep: wire.ExecutableFD},
		[]*os.File{program}, reasonCanary)
	if err != nil {
		return err
	}
	defer r.bury(reasonCanary)
	cfg := p.childConfig(p.image, false)
	cfg.Put(&r.wr)
	return p.confirmed(r, p.image.build)
}

// launchedCanary returns the layer's state if the launched canary was denied everything that it probed.
func (p *Pool) launchedCanary() (state string, err error) {
	program, err := p.ownProgram()
	if err != nil {
		return "", err
	}
	if program == nil {
		return "on (not tried: this binary is linked with the C library)", nil
	}
	defer program.Close()
	args := []string{"recurgent-runner", wire.ProbeArg, strconv.Itoa(os.Getpid())}
	for _, resource := range []int{syscall.RLIMIT_DATA, syscall.RLIMIT_AS} {
		args = append(args, strconv.FormatUint(p.program.Limit(resource), 10))
	}
	r, err := p.launch(p.programLaunch(args), []*os.File{program}, reasonCanary)
	if err != nil {
		return "", err
	}
	defer r.bury(reasonCanary)
	r.setDeadline(time.Now().Add(p.readyTimeout))
	ready, err := r.report()
	if err != nil {
		r.bury(reasonCanary)
		return "", fmt.Errorf("launched canary: %w (its process: %s) %s", err, r.state,
			wire.BoundText(r.diary.text(), 500))
	}
	if len(ready.Probes) == 0 {
		return "", errors.New("the launched canary made no probes")
	}
	for name, outcome := range ready.Probes {
		if !strings.HasPrefix(outcome, "denied") {
			return "", fmt.Errorf("an executable's init gets through with %s: %s", name, outcome)
		}
	}
	return fmt.Sprintf("on (%d probes of an init denied)", len(ready.Probes)), nil
}

// programLaunch returns how the executable of a program is launched with the command line args.
func (p *Pool) programLaunch(args []string) wire.Launch {
	return wire.Launch{Confine: *p.program, Args: args, Env: []string{runnerProcs}, Keep: wire.ExecutableFD}
}

// ownProgram opens the runners' program. It returns nil if that is the daemon's own binary and needs files of the C
// library to start.
func (p *Pool) ownProgram() (*os.File, error) {
	if p.image.file == nil && linkedWithC {
		return nil, nil
	}
	return os.Open(p.image.path)
}

// makePrograms prepares the confinement and the launchers of executables. Without support of the system it leaves them
// empty and returns nil.
func (p *Pool) makePrograms(h hooks) (err error) {
	if p.program, err = policy.Program(p.opts.Memory, p.cpuSeconds()); err == nil {
		p.launchers, err = launchers(h, &p.opts)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
