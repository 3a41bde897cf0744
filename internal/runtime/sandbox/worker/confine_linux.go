package worker

import (
	"maps"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// confineProcess applies the layers, inner ones first, and reports what it did. In a canary it probes between them.
func confineProcess(cfg *wire.Config, ready *wire.Ready) {
	serve.Observe(cfg, ready.Layers)
	inherited, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if cfg.Probe || inherited != 1 { // to keep a thread makes the Go runtime start another, and switch between them
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		ready.Layers["no_new_privs"] = "off (" + err.Error() + ")"
	} else {
		ready.Layers["no_new_privs"] = "on"
	}
	if cfg.Probe && ready.Layers["netns"] == "on" && cfg.Port != 0 {
		probe.Network(cfg.Port, ready.Probes)
	}
	ready.Layers["landlock"] = landlockLayer(cfg.Confine, inherited == 1)
	if cfg.Probe && isOn(ready.Layers["landlock"]) {
		probe.Landlock(ready.Probes)
	}
	threads.Reserve(serve.Threads) // under landlock already, and before seccomp, which allows no more
	ready.Layers["seccomp"] = serve.LoadFilter(cfg.Confine, serve.AllThreads)
	if cfg.Probe {
		data, mapped := serve.MemoryLimits(cfg)
		maps.Copy(ready.Probes, probe.All(probe.Bounds{Parent: cfg.Parent, Data: uintptr(data), Mapped: uintptr(mapped)}))
	}
}
