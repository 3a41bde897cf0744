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

// Layers that are no process's own: whether executables and tools can be launched, and what the daemon does to each process.
const (
	layerLaunch = "launch"
	layerOOM    = "oom_score_adj"
)

// Reasons under which processes count that end by themselves.
const (
	reasonTools  = "tools"
	reasonCanary = "canary"
)

// NativeOff returns why no executable is run and no tool, "" where they are.
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

// launch starts a launcher that becomes the first of the files, and waits until it has confined itself as the canary was. What it becomes has the others only where the launch keeps
// them. A process that ends by itself is counted under the reason, where there is one.
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

// observeLaunch has a launcher become the runners' program, which makes the canary's probes in an init: so an executable is confined from its first instruction on. Where that cannot
// be observed none is run. Where runners are confined by processes alone, so are executables.
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

// launched returns the layer's state where a launcher works.
func (p *Pool) launched() (state string, err error) {
	if rank(p.status.Level) >= rank(LevelReduced) {
		return p.launchedCanary()
	}
	return "on (as runners are)", p.launchedRunner()
}

// launchedRunner has a launcher become a runner, which reports that it is ready.
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

// launchedCanary returns the layer's state where a launcher works and its executable can do nothing of what it must not.
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

// programLaunch is how the executable of a program is launched, with that command line.
func (p *Pool) programLaunch(args []string) wire.Launch {
	return wire.Launch{Confine: *p.program, Args: args, Env: []string{runnerProcs}, Keep: wire.ExecutableFD}
}

// ownProgram opens the program of the runners; nil where that is the daemon's own binary and needs the C library's files to start.
func (p *Pool) ownProgram() (*os.File, error) {
	if p.image.file == nil && linkedWithC {
		return nil, nil
	}
	return os.Open(p.image.path)
}

// makePrograms prepares what executables are launched with.
func (p *Pool) makePrograms(h hooks) (err error) {
	if p.program, err = policy.Program(p.opts.Memory, p.cpuSeconds()); err == nil {
		p.launchers, err = launchers(h, &p.opts)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
