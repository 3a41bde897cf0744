package forge

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

const CacheDispatch = "dynamic_dispatch_method"

const cacheBaked = "input_baked_code"

const CacheIgnored = "arg_ignored_code"

const cacheDelegated = "delegated_contract_tool"

const CacheStable = "stable_method_default"

// cacheable reports whether the program may answer calls other than the one it was written for, and why. A program
// that has this call's arguments in its text, or that does not read them, would give a different question the old
// answer.
func cacheable(c *call.Selection, f *report.Facts, takes *agent.Interface) (bool, string) {
	switch {
	case c.Dispatch():
		return false, CacheDispatch
	case !c.HasArgs() || f.UsesArgs || takes.Binds(): // a program that declares no parameters gets no arguments
	case baked(f.Literals, c.Args, c.Kwargs):
		return false, cacheBaked
	default:
		return false, CacheIgnored
	}
	if c.Depth > 0 && !c.Terms.Contract.Empty() {
		return true, cacheDelegated
	}
	return true, CacheStable
}

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
