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

// limitProcess sets the limits while the process may still write its name.
func limitProcess(c *wire.Confinement, layers map[string]string) {
	confine.NameProcess()
	confine.Limits(c, confine.Process, layers)
}

// confineProcess applies the other layers, inner ones first, and reports what it did. In a canary it probes between them.
func confineProcess(cfg *wire.Config, ready *wire.Ready) {
	confine.Observe(cfg.Confine, ready.Layers)
	inherited := confine.HasNoNewPrivs()
	if cfg.Probe || !inherited { // to keep a thread makes the Go runtime start another, and switch between them
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
	threads.Reserve(threads.Runner) // under landlock already, and before seccomp, which allows no more
	ready.Layers["seccomp"] = confine.Seccomp(cfg.Confine, confine.Process)
	if cfg.Probe {
		maps.Copy(ready.Probes, probe.All(bounds(cfg.Parent, cfg.Confine)))
	}
}

// bounds are what a process with that confinement must not get past.
func bounds(parent int, c *wire.Confinement) probe.Bounds {
	return probe.Bounds{Parent: parent, Data: uintptr(c.Limit(unix.RLIMIT_DATA)),
		Mapped: uintptr(c.Limit(unix.RLIMIT_AS))}
}
