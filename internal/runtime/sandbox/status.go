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

func rank(l Level) int {
	switch l {
	case LevelFull:
		return 2
	case LevelReduced:
		return 1
	}
	return 0
}

// observe starts a canary runner, which confines itself like any other and then tries what must be impossible, and
// derives the level from what it saw. Later runners are started in the way that worked here: the best plan, and for that the first image.
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

// patientCanary is canary, and tries again while the machine lacks something.
func (p *Pool) patientCanary() (*wire.Ready, error) {
	ready, err := p.canary()
	for try := 1; try < 4 && passing(err); try++ {
		time.Sleep(time.Duration(try) * 50 * time.Millisecond)
		ready, err = p.canary()
	}
	return ready, err
}

// passing reports whether the machine lacks something for the moment, or the process ended without a word, as one does that the
// system killed: no reason to confine runners less for good.
func passing(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || exhausted(err)
}

// exhausted reports whether the machine, or what it allows the daemon, is used up.
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

// makeConfinement prepares what runners put on themselves. Tests have forbidden system calls kill.
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

// childConfig is what a process of the image is sent.
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

// programConfig is what an executable is sent, which a launcher has confined.
func (p *Pool) programConfig() wire.Config {
	return wire.Config{Memory: p.opts.Memory, MaxValue: p.opts.MaxValue, MaxContext: p.opts.MaxContext,
		MaxDepth: p.opts.MaxDepth, Engine: p.opts.Engine, Parent: os.Getpid()}
}

// adoptStatus derives status and required layers from the canary's report.
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
	s.Layers["tasks"] = p.tasks // the daemon's, not each runner's
}

// missingLayer reports a layer that the canary had and this process has not: it may not run anything then.
func missingLayer(want []string, ready *wire.Ready) error {
	if l := confine.Missing(ready.Layers, want); l != "" {
		return fmt.Errorf("layer %s is %s, and was on at the start", l, wire.BoundText([]byte(ready.Layers[l]), 200))
	}
	return nil
}

// summary is the status in one line: "level=full landlock=on (abi 7) ... probes=60/60 denied".
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

// String is the statement for the log and for people.
func (s Status) String() string { return "sandbox " + s.summary() }

// listenLocal opens a listener on the loopback address for the canary to knock at.
func listenLocal() (port int, stop func()) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, func() {}
	}
	return l.Addr().(*net.TCPAddr).Port, func() { l.Close() }
}
