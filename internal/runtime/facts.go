package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Reasons why a program is or is not cacheable.
const (
	cacheDispatch   = "dynamic_dispatch_method"
	cacheBaked      = "input_baked_code"
	cacheIgnored    = "arg_ignored_code"
	cacheDelegated  = "delegated_contract_tool"
	CacheStable     = "stable_method_default"
	maxFactsEncoded = 64 << 10
)

// cacheability reports whether the program may answer calls other than the one it was written for, and why. A program
// that has this call's arguments in its text, or that does not read them, would give a different question the old
// answer.
func (c *selected) cacheability(f *report.Facts, takes *agent.Interface) (bool, string) {
	switch {
	case c.dispatch():
		return false, cacheDispatch
	case !c.hasArgs() || f.UsesArgs || takes.Binds(): // a program that declares no parameters gets no arguments
	case baked(f.Literals, c.args, c.kwargs):
		return false, cacheBaked
	default:
		return false, cacheIgnored
	}
	if c.depth > 0 && !c.terms.contract.Empty() {
		return true, cacheDelegated
	}
	return true, CacheStable
}

// dispatch reports whether the method is one whose program is written anew for each call.
func (c *opened) dispatch() bool { return slices.Contains(c.policy.DispatchMethods, c.method) }

// baked reports whether a scalar argument appears in the code as a literal.
func baked(literals []string, args []json.RawMessage, kwargs json.RawMessage) bool {
	all := make(map[any]bool, len(literals))
	for _, l := range literals {
		all[scalar(json.RawMessage(l))] = true
	}
	return slices.ContainsFunc(args, func(a json.RawMessage) bool { return bakedValue(all, a, 0) }) ||
		bakedValue(all, kwargs, 0)
}

// scalar decodes the JSON of a string or a number, because one value has several spellings. It returns nil for invalid
// JSON.
func scalar(raw json.RawMessage) (v any) {
	_ = json.Unmarshal(raw, &v) // an undecodable value equals no literal
	return v
}

// bakedValue searches nested arrays and objects down to a fixed depth.
func bakedValue(literals map[any]bool, raw json.RawMessage, depth int) bool {
	const deepest = 4
	switch kind := agent.Kind(raw); {
	case kind == "string" || kind == "number":
		return literals[scalar(raw)]
	case depth == deepest:
		return false
	case kind == "array":
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // cannot fail: checked when the request came in
		return slices.ContainsFunc(items, func(v json.RawMessage) bool { return bakedValue(literals, v, depth+1) })
	case kind == "object":
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields)
		for _, v := range fields {
			if bakedValue(literals, v, depth+1) {
				return true
			}
		}
	}
	return false
}

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

// factsCache caches the decoded facts of generations by checksum. The zero value is ready.
type factsCache struct {
	mu  sync.RWMutex
	all map[string]*report.Facts // guarded by mu
}

// of returns the generation's facts. They are shared and must not be modified.
func (c *factsCache) of(g *agent.Generation) *report.Facts {
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

// engineOf returns what ran a program (go, ssa or yaegi) and its tier, or "" for both if that is unknown. The runner
// reports it and is not trusted, so only these names are accepted.
func engineOf(f *report.Facts) (engine, tier string) {
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

// ignoresArgs reports whether the generation's program does not read its arguments, as if it were written for a single
// call. Programs that a person wrote are exempt, as are programs that declare no parameters.
func (r *Runtime) ignoresArgs(g *agent.Generation) bool {
	return g.Model != ModelOperator && !g.Interface.Binds() && !r.facts.of(g).UsesArgs
}

// ModelOperator replaces the model's name in generations that a person stored.
const ModelOperator = "operator"
