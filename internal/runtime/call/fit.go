package call

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

const maxUnknown = 16

const maxUnknownLength = 64

// Binds reports whether the call's arguments must fit the interface. They need not in a dispatch method, whose program
// is written for a single call.
func (c *Call) Binds(f *agent.Interface) bool { return f.Binds() && !c.Dispatch() }

// Fit compares the call's arguments with the interface. It ignores the argument that holds the history input.
func (c *Call) Fit(f *agent.Interface) agent.Fit {
	positional := len(c.Args)
	if c.historyArgument != "" && c.historyArgument == fmt.Sprint("/args/", positional-1) {
		positional--
	}
	t := f.Fit(positional, c.Kwargs)
	t.Unknown = c.clipKeywords(t.Unknown)
	return t
}

// clipKeywords bounds a list of keywords and leaves out the one that holds the history input. It returns nil for nil.
func (c *Call) clipKeywords(names []string) []string {
	if names == nil {
		return nil
	}
	out := make([]string, 0, min(len(names), maxUnknown))
	for _, name := range names {
		if "/kwargs/"+name != c.historyArgument && len(out) < maxUnknown {
			out = append(out, agent.Clip(name, maxUnknownLength))
		}
	}
	return out
}

// FitOf compares the input of a dry run with the interface, as Fit does for a call.
func (c *Call) FitOf(f *agent.Interface, args []json.RawMessage, kwargs json.RawMessage) agent.Fit {
	t := f.Fit(len(args), kwargs)
	t.Unknown = c.clipKeywords(t.Unknown)
	return t
}
