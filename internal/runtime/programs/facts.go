// Package programs reads stored programs by their text: the facts that the gate found in them, their interfaces, and
// whether a text is intact. Facts come from confined processes and are not trusted. The package knows nothing about
// calls, and runs no program.
package programs

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// maxFactsEncoded bounds the encoded facts of one generation.
const maxFactsEncoded = 64 << 10

// EncodeFacts returns the facts as generations store them, or nil if they are too large. unread lists the declared
// parameters that were left out because the program does not read them.
func EncodeFacts(f *report.Facts, unread ...string) json.RawMessage {
	own := *f
	own.Fixes = slices.Clip(own.Fixes)
	for _, name := range unread {
		own.Fixes = append(own.Fixes, "parameter "+name+" left out: the program does not read it")
	}
	own.Interface = "" // stored in the generation's own field
	raw, err := json.Marshal(own)
	if err != nil || len(raw) > maxFactsEncoded {
		return nil
	}
	return raw
}

// Facts caches the decoded facts of generations by checksum. The zero value is ready.
type Facts struct {
	mu  sync.RWMutex
	all map[string]*report.Facts // guarded by mu
}

// Of returns the generation's facts. They are shared and must not be modified.
func (c *Facts) Of(g *agent.Generation) *report.Facts {
	const most = 4096
	c.mu.RLock()
	f := c.all[g.CodeChecksum]
	c.mu.RUnlock()
	if f != nil {
		return f
	}
	f = &report.Facts{}
	if len(g.Facts) == 0 || json.Unmarshal(g.Facts, f) != nil {
		f.UsesArgs = true // nothing is known: assume the best, since the program has served
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= most {
		c.all = map[string]*report.Facts{}
	}
	c.all[g.CodeChecksum] = f
	return f
}

// EngineOf returns what ran a program (go, ssa or yaegi) and its tier, or "" for both if that is unknown. The runner
// reports it and is not trusted, so only these names are accepted.
func EngineOf(f *report.Facts) (engine, tier string) {
	if f == nil {
		return "", ""
	}
	switch name, _, _ := strings.Cut(f.Engine, " "); name {
	case report.EngineSSA, report.EngineYaegi:
		return name, sandbox.TierEngine
	case report.EngineGo:
		return name, sandbox.TierNative
	}
	return "", ""
}

// IgnoresArgs reports whether the generation's program does not read its arguments, as if it were written for a single
// call. Programs that a person wrote are exempt, as are programs that declare no parameters.
func (c *Facts) IgnoresArgs(g *agent.Generation) bool {
	return g.Model != ModelOperator && !g.Interface.Binds() && !c.Of(g).UsesArgs
}

// ModelOperator replaces the model's name in generations that a person stored.
const ModelOperator = "operator"
