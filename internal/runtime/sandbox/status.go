package sandbox

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// rank orders levels; unknown ones are the lowest.
func rank(l Level) int {
	switch l {
	case LevelFull:
		return 2
	case LevelReduced:
		return 1
	}
	return 0
}

// observe starts a canary runner, which confines itself like any other and then tries what confinement must prevent.
// The report determines the level. Later runners are started in the way that worked here: by the best plan that works,
// from the first image that works with it.
func (p *Pool) observe(plans []plan) error {
	var faults []error
	for _, plan := range plans {
		for _, from := range p.images {
			if from.under != nil {
				if !plan.underLandlock() {
					continue
				}
				from.under.plan = plan
			}
			p.spawner.plan, p.image = plan, from
			ready, err := p.patientCanary()
			if err != nil {
				faults = append(faults, err)
				continue
			}
			if from.build != "" && ready.Build != from.build {
				return fmt.Errorf("sandbox: %w: %s, the daemon's is %s", errOtherBuild,
					wire.BoundText([]byte(ready.Build), 100), from.build)
			}
			if len(p.images) > 1 && from.build == "" {
				noteFallback(p.opts.Log, errors.Join(faults...))
			}
			protectDaemon(plan)
			p.adoptStatus(ready)
			if p.opts.Native {
				p.observeLaunch()
			}
			return nil
		}
	}
	return fmt.Errorf("sandbox: %w: %w", errNoPlan, errors.Join(faults...))
}

// patientCanary calls canary, and retries up to three times if the fault may be transient.
func (p *Pool) patientCanary() (*wire.Ready, error) {
	ready, err := p.canary()
	for try := 1; try < 4 && passing(err); try++ {
		time.Sleep(time.Duration(try) * 50 * time.Millisecond)
		ready, err = p.canary()
	}
	return ready, err
}

// passing reports whether err may be transient: the machine lacks some resource, or the process ended without output,
// as it does if the system killed it. Neither is a reason to confine runners less for good.
func passing(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || exhausted(err)
}

// exhausted reports whether err means that the machine's resources, or the daemon's share of them, are used up.
func exhausted(err error) bool {
	if errors.Is(err, errMostRunners) {
		return true
	}
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// canary starts a process with probes, and returns its report. The process is ended in any case.
func (p *Pool) canary() (*wire.Ready, error) {
	r, err := p.start(p.image)
	if err != nil {
		return nil, err
	}
	r.endsItself(reasonCanary)
	defer r.bury(reasonCanary)
	knock, stop := listenLocal()
	defer stop()
	cfg := p.childConfig(p.image, true)
	cfg.Port = knock
	cfg.Put(&r.wr)
	ready, err := r.confirm(p.readyTimeout)
	if err != nil {
		r.bury(reasonCanary)
		return nil, fmt.Errorf("canary: %w (its process: %s) %s", err, r.state, wire.BoundText(r.diary.text(), 500))
	}
	return ready, nil
}

// makeConfinement prepares the confinement of runners and of the canary. With kill, which tests set, forbidden system
// calls kill the runner.
func (p *Pool) makeConfinement(kill bool) (err error) {
	if p.confinement, err = policy.Runner(p.opts.Memory, p.cpuSeconds(), kill); err != nil {
		return err
	}
	p.confinement.Namespaces = wire.Namespaces()
	probed, err := policy.Runner(p.opts.Memory, p.cpuSeconds(), false)
	probed.Namespaces, p.probed = p.confinement.Namespaces, probed
	return err
}

func (p *Pool) cpuSeconds() int64 { return int64(p.opts.RunnerCPU.Seconds()) }

// childConfig returns the configuration for a process of the image. probe asks it for the canary's probes.
func (p *Pool) childConfig(from *image, probe bool) wire.Config {
	confinement := p.confinement
	if probe {
		confinement = p.probed
	}
	if from.under != nil {
		given := *confinement
		given.Given, given.Landlock = confine.GivenState(confinement), nil
		confinement = &given
	}
	cfg := p.programConfig()
	cfg.Probe, cfg.Confine = probe, confinement
	return cfg
}

// programConfig returns the configuration for an executable, which a launcher has already confined.
func (p *Pool) programConfig() wire.Config {
	return wire.Config{Memory: p.opts.Memory, MaxValue: p.opts.MaxValue, MaxContext: p.opts.MaxContext,
		MaxDepth: p.opts.MaxDepth, Engine: p.opts.Engine, Parent: os.Getpid()}
}

// adoptStatus derives the status and the required layers from the canary's report.
func (p *Pool) adoptStatus(ready *wire.Ready) {
	s := Status{Layers: ready.Layers, Probes: ready.Probes}
	if s.Probes == nil {
		s.Probes = map[string]string{}
	}
	if wire.RaceBuild {
		s.Layers["rlimits"] += " (no data limit in a race build)"
	}
	open := 0
	for _, outcome := range s.Probes {
		if !strings.HasPrefix(outcome, "denied") {
			open++
		}
	}
	on := func(layers ...string) bool {
		for _, l := range layers {
			if !confine.On(s.Layers[l]) {
				return false
			}
		}
		return true
	}
	switch {
	case !on("seccomp", "no_new_privs", "rlimits") || open > 0:
		s.Level = LevelProcess
	case on("landlock", "pidns", "netns", "mntns", "ipcns") && on("uid"):
		s.Level = LevelFull
	default:
		s.Level = LevelReduced
	}
	p.status = s
	for layer := range s.Layers {
		if on(layer) {
			p.layers = append(p.layers, layer)
		}
	}
	slices.Sort(p.layers)
	s.Layers["tasks"] = p.tasks // added last: a layer of the daemon, not of each runner
}

// missingLayer returns an error if the process lacks a layer that the canary had. Such a process must not run anything.
func missingLayer(want []string, ready *wire.Ready) error {
	if l := confine.Missing(ready.Layers, want); l != "" {
		return fmt.Errorf("layer %s is %s, and was on at the start", l, wire.BoundText([]byte(ready.Layers[l]), 200))
	}
	return nil
}

// summary returns the status in one line: "level=full landlock=on (abi 7) ... probes=60/60 denied".
func (s Status) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "level=%s", s.Level)
	for _, l := range slices.Sorted(maps.Keys(s.Layers)) {
		fmt.Fprintf(&b, " %s=%s", l, s.Layers[l])
	}
	denied := 0
	var open []string
	for name, outcome := range s.Probes {
		if strings.HasPrefix(outcome, "denied") {
			denied++
		} else {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	fmt.Fprintf(&b, " probes=%d/%d denied", denied, len(s.Probes))
	if len(open) > 0 {
		fmt.Fprintf(&b, " ALLOWED: %s", strings.Join(open, ", "))
	}
	return b.String()
}

// String returns the status in one line, for logs and people.
func (s Status) String() string { return "sandbox " + s.summary() }

// listenLocal opens a loopback listener for the canary to try to reach. The port is 0 if that fails.
func listenLocal() (port int, stop func()) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, func() {}
	}
	return l.Addr().(*net.TCPAddr).Port, func() { l.Close() }
}
