package worker

import (
	"maps"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	_ "github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe/now" // for the launched canary
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// limitProcess sets the name and the limits of the process. The name must come first, while the process may still write
// it.
func limitProcess(c *wire.Confinement, layers map[string]string) {
	confine.NameProcess()
	confine.Limits(c, confine.Process, layers)
}

// confineProcess applies the other layers, inner ones first, and records their states. A canary makes its probes in
// between.
func confineProcess(cfg *wire.Config, ready *wire.Ready) {
	confine.Observe(cfg.Confine, ready.Layers)
	inherited := confine.HasNoNewPrivs()
	if cfg.Probe || !inherited { // locking makes the Go runtime start and switch threads, so it is avoided
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	ready.Layers["no_new_privs"] = confine.NoNewPrivs()
	if cfg.Probe && ready.Layers["netns"] == "on" && cfg.Port != 0 {
		probe.Network(cfg.Port, ready.Probes)
	}
	ready.Layers["landlock"] = landlockLayer(cfg.Confine, inherited)
	if cfg.Probe && confine.On(ready.Layers["landlock"]) {
		probe.Landlock(ready.Probes)
	}
	// Reserve after landlock, which must cover the new threads, and before seccomp, which forbids creating more.
	threads.Reserve(threads.Runner)
	ready.Layers["seccomp"] = confine.Seccomp(cfg.Confine, confine.Process)
	if cfg.Probe {
		maps.Copy(ready.Probes, probe.All(bounds(cfg.Parent, cfg.Confine)))
	}
}

// bounds returns the limits that a process with that confinement must not be able to pass.
func bounds(parent int, c *wire.Confinement) probe.Bounds {
	return probe.Bounds{Parent: parent, Data: uintptr(c.Limit(unix.RLIMIT_DATA)),
		Mapped: uintptr(c.Limit(unix.RLIMIT_AS))}
}
