package contract

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Stricter reports whether a deliverable is stricter than another: the other accepts every value that it accepts, but
// not vice versa.
//
// It compares keyword by keyword, and returns false if it cannot decide: for different patterns or enumerations, for a
// $ref or an unknown name, and if the deliverable has an invalid constraint. An invalid constraint of the other
// deliverable is ignored. A deliverable that checks something is stricter than one that checks nothing. A comparison
// takes at most a million steps, and returns false beyond.
func Stricter(deliverable, than json.RawMessage) bool {
	a, known := comparable(deliverable, mode{refs: true, spelled: true})
	b, alsoKnown := comparable(than, mode{refs: true, spelled: true, tolerant: true})
	return known && alsoKnown && newComparison().implied(b, conjuncts(a)) && !newComparison().implied(a, conjuncts(b))
}

// comparable translates a deliverable for comparison. known is false if it is invalid, has unknown names, references,
// or keywords that depend on each other.
func comparable(deliverable json.RawMessage, m mode) (root map[string]any, known bool) {
	doc, err := decodeDeliverable(deliverable)
	if err != nil {
		return nil, false
	}
	t := newTranslator(doc, m)
	root, err = t.document(doc)
	return root, err == nil && !t.unknown && !t.evaluates && len(t.found) == 0
}

// A comparison decides whether one schema follows from others.
type comparison struct{ left int } // steps that it may still take

func newComparison() *comparison { return &comparison{left: 1_000_000} }

// takes uses up steps, and reports whether there were enough.
func (c *comparison) takes(steps int) bool {
	c.left -= steps
	return c.left >= 0
}

// conjuncts returns the schema and those of its allOf: all of them hold for a value of the schema.
func conjuncts(schema any) []any {
	all := []any{schema}
	if m, ok := schema.(map[string]any); ok {
		members, _ := m["allOf"].([]any)
		for _, s := range members {
			all = append(all, conjuncts(s)...)
		}
	}
	return all
}

// implied reports whether the schema accepts every value that all schemas in by accept. It returns false if that is not
// certain.
func (c *comparison) implied(schema any, by []any) bool {
	if !c.takes(1 + len(by)) {
		return false
	}
	if slices.ContainsFunc(by, func(s any) bool { return s == any(false) }) {
		return true // no value is accepted by all
	}
	m, ok := schema.(map[string]any)
	if !ok {
		return schema == any(true)
	}
	for name, v := range m {
		if !c.keyword(m, strings.TrimPrefix(name, extPrefix), v, by) {
			return false
		}
	}
	return true
}

// keyword is implied for a single keyword of a schema.
func (c *comparison) keyword(in map[string]any, name string, v any, by []any) bool {
	switch name {
	case "allOf":
		return !slices.ContainsFunc(v.([]any), func(s any) bool { return !c.implied(s, by) })
	case "properties":
		for key, s := range v.(map[string]any) {
			if !c.implied(s, c.parts(by, func(x map[string]any) any { return member(x, name, key) })) {
				return false
			}
		}
		return true
	case "items":
		return c.implied(v, c.parts(by, func(x map[string]any) any {
			if x["prefixItems"] != nil { // then items covers only the remaining ones
				return nil
			}
			return keyed(x, name)
		}))
	case "additionalProperties":
		return c.implied(v, c.parts(by, func(x map[string]any) any {
			// otherwise it covers fewer members
			if x["patternProperties"] != nil || !c.within(x["properties"], in["properties"]) {
				return nil
			}
			return keyed(x, name)
		}))
	case "uniqueItems":
		if v == any(false) {
			return true
		}
	}
	size := sizeOf(v)
	return slices.ContainsFunc(by, func(s any) bool {
		x, ok := s.(map[string]any)
		return ok && keyed(x, name) != nil && c.takes(size) && c.says(name, keyed(x, name), v)
	})
}

// says reports whether the value x of a keyword is at least as strict as v.
func (c *comparison) says(name string, x, v any) bool {
	switch name {
	case "type", "required":
		all, some := listOf(x), listOf(v)
		// fewer types are stricter, but more required keys are
		if name == "type" {
			all, some = some, all
		}
		return c.takes(len(all)*len(some)) && !slices.ContainsFunc(some, func(e any) bool {
			return !slices.Contains(all, e) && !(name == "type" && e == "integer" &&
				slices.Contains(all, any("number")))
		})
	case "minItems", "minLength", "minProperties", "minimum", "exclusiveMinimum":
		return rational(x).Cmp(rational(v)) >= 0
	case "maxItems", "maxLength", "maxProperties", "maximum", "exclusiveMaximum":
		return rational(x).Cmp(rational(v)) <= 0
	case "enum", "const", "multipleOf", "uniqueItems", "pattern", "not", "anyOf", "oneOf", "prefixItems",
		"patternProperties", "propertyNames", "dependentRequired", "dependentSchemas":
		return reflect.DeepEqual(x, v)
	}
	return false // depends on other keywords
}

// parts returns the schemas in by for a part of the value. of returns a schema's schema for that part, or nil.
func (c *comparison) parts(by []any, of func(schema map[string]any) any) (all []any) {
	if !c.takes(len(by)) {
		return nil
	}
	for _, s := range by {
		if m, ok := s.(map[string]any); ok {
			if part := of(m); part != nil {
				all = append(all, conjuncts(part)...)
			}
		}
	}
	return all
}

// within reports whether each key of an object is a key of the other. A nil object has no keys.
func (c *comparison) within(object, of any) bool {
	outer, _ := of.(map[string]any)
	inner, _ := object.(map[string]any)
	for key := range inner {
		if _, ok := outer[key]; !ok || !c.takes(1) {
			return false
		}
	}
	return true
}

// keyed returns the value of the keyword or of our replacement for it, or nil.
func keyed(schema map[string]any, name string) any {
	if v, ok := schema[name]; ok {
		return v
	}
	return schema[extPrefix+name]
}

func member(schema map[string]any, name, key string) any {
	members, _ := schema[name].(map[string]any)
	return members[key]
}

// listOf returns v if it is a list, else a list with v.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// sizeOf counts v and all values in it.
func sizeOf(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	case map[string]any:
		for _, e := range v {
			n += sizeOf(e)
		}
	}
	return n
}

// rational returns the exact value of a number. The translator has bounded its exponent.
func rational(v any) *big.Rat {
	n, _ := v.(json.Number)
	if r, ok := new(big.Rat).SetString(string(n)); ok {
		return r
	}
	return new(big.Rat)
}

// StillStricter returns the proposals without the open ones that are not stricter than the deliverable any more.
func StillStricter(p *agent.Proposals, than json.RawMessage) *agent.Proposals {
	return p.Keep(func(o *agent.ContractProposal) bool { return Stricter(o.Contract.Deliverable, than) })
}
