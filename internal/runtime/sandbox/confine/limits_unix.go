//go:build unix

package confine

import (
	"strconv"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Limits sets the limits of the process; hard limits that are already lower stay. With the scope Process, the process
// also becomes non-dumpable.
func Limits(c *wire.Confinement, scope Scope, layers map[string]string) {
	var faults []string
	for _, l := range c.Limits {
		value := l.Value
		var now syscall.Rlimit
		if syscall.Getrlimit(l.Resource, &now) == nil {
			value = min(value, now.Max)
		}
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, "limit "+strconv.Itoa(l.Resource)+": "+err.Error())
		}
	}
	if err := hide(scope); err != nil {
		faults = append(faults, "dumpable: "+err.Error())
	}
	layers["rlimits"] = onOff(faults)
}
