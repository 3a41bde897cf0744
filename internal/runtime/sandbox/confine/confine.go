// Package confine applies a wire.Confinement: to the process that calls it, which is a runner, or to one thread and what that executes, which is a
// launcher. The description comes from the daemon (package policy); each function returns the state of its layer, or puts it among the layers: "on", or "off" and the reason.
package confine

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A Scope is what a layer is put on.
type Scope bool

const (
	Thread  Scope = false // the calling thread, and what it makes and executes
	Process Scope = true  // every thread of the process
)

// ThreadStack is the limit of the first thread's stack in bytes, more than the Go runtime needs there.
const ThreadStack = 1 << 20

// On reports whether a layer of this state is on.
func On(state string) bool { return strings.HasPrefix(state, "on") }

// Missing returns the first of the layers that is not on, "" where all are.
func Missing(layers map[string]string, required []string) string {
	for _, l := range required {
		if !On(layers[l]) {
			return l
		}
	}
	return ""
}

// GivenState is the state of the layer in a process that was started under landlock, where the description has a ruleset.
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
