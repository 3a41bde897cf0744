//go:build !linux

package serve

import (
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// LimitProcess sets the limits that this system has.
func LimitProcess(cfg *wire.Config, layers map[string]string) {
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

// NameThread has nothing to do here.
func NameThread() {}
