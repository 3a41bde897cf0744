// Package confine applies a wire.Confinement, either to all threads of the calling process, which is a runner, or to
// one thread and what it executes, which is a launcher. The daemon computes the Confinement (package policy). Each
// function returns the state of its layer or stores it in the layers: "on", or "off" with the reason. The package does
// not decide whether a missing layer is acceptable.
package confine

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A Scope selects the threads to which a layer is applied.
type Scope bool

const (
	Thread  Scope = false // the calling thread, and what it creates and executes
	Process Scope = true  // every thread of the process
)

// ThreadStack is the limit of the main thread's stack in bytes, more than the Go runtime needs there.
const ThreadStack = 1 << 20

// On reports whether a layer with this state is on.
func On(state string) bool { return strings.HasPrefix(state, "on") }

// Missing returns the first required layer that is not on, or "" if all are on.
func Missing(layers map[string]string, required []string) string {
	for _, l := range required {
		if !On(layers[l]) {
			return l
		}
	}
	return ""
}

// GivenState returns the state of the layer landlock for a process that was started under it.
func GivenState(c *wire.Confinement) string {
	if c.Landlock == nil {
		return c.Given
	}
	return "on (abi " + strconv.Itoa(c.Landlock.ABI) + ")"
}

func off(err error) string { return "off (" + err.Error() + ")" }

func onOff(faults []string) string {
	if len(faults) > 0 {
		return "off (" + strings.Join(faults, "; ") + ")"
	}
	return "on"
}
