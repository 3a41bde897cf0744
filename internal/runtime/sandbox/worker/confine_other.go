//go:build !linux

package worker

import (
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// limitProcess sets the limits that this system has.
func limitProcess(cfg *wire.Config, layers map[string]string) {
	var faults []string
	limit := func(name string, resource int, value uint64) {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, name+": "+err.Error())
		}
	}
	limit("cpu", syscall.RLIMIT_CPU, uint64(cfg.CPUSeconds))
	limit("nofile", syscall.RLIMIT_NOFILE, 16)
	limit("fsize", syscall.RLIMIT_FSIZE, 0)
	limit("core", syscall.RLIMIT_CORE, 0)
	layers["rlimits"] = "on"
	if len(faults) > 0 {
		layers["rlimits"] = "off (" + strings.Join(faults, "; ") + ")"
	}
}

// confineProcess has nothing to put on: a process of its own with limits is all there is.
func confineProcess(_ *wire.Config, ready *wire.Ready) {
	ready.Layers["seccomp"] = "off (not on this system)"
}

// landlockFirst has nothing to do here.
func landlockFirst() {}
