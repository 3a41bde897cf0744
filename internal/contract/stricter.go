package contract

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Stricter reports whether a deliverable is stricter than another: the other one accepts every value that it accepts, and not the other way round.
//
// Keywords are compared one by one, and the answer is no where that does not show it: two patterns or enumerations that differ are not comparable,
// nor is a deliverable that has a $ref or a name that is no keyword, nor a stricter one with a constraint that makes no sense. Of the other one
// such a constraint binds nobody and does not count. Whatever checks something is stricter than what checks nothing. A comparison takes at most a million steps, and
// answers no beyond.
func Stricter(deliverable, than json.RawMessage) bool {
	a, known := comparable(deliverable, mode{refs: true, spelled: true})
	b, alsoKnown := comparable(than, mode{refs: true, spelled: true, tolerant: true})
	return known && alsoKnown && newComparison().implied(b, conjuncts(a)) && !newComparison().implied(a, conjuncts(b))
}

// comparable returns what is checked of the deliverable as the translator writes it; false where that is not certain, or keywords depend on each other.
func comparable(deliverable json.RawMessage, m mode) (root map[string]any, known bool) {
	doc, err := decodeDeliverable(deliverable)
	if err != nil {
		return nil, false
	}
	t := newTranslator(doc, m)
	root, err = t.document(doc)
	return root, err == nil && !t.unknown && !t.evaluates && len(t.found) == 0
}

// comparison shows that one schema follows from others.
type comparison struct{ left int } // steps

func newComparison() *comparison { return &comparison{left: 1_000_000} }

// takes reports whether so many more steps may be taken.
func (c *comparison) takes(steps int) bool {
	c.left -= steps
	return c.left >= 0
}

// conjuncts lists schemas that all hold where the schema does: itself, and those of its allOf.
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

// implied reports whether the schema accepts every value that all of the others accept; false where that is not certain.
func (c *comparison) implied(schema any, by []any) bool {
	if !c.takes(1 + len(by)) {
		return false
	}
	if slices.ContainsFunc(by, func(s any) bool { return s == any(false) }) {
		return true // there is no such value
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

// keyword is implied for one keyword of a schema.
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
			if x["prefixItems"] != nil { // then its items are the rest
				return nil
			}
			return keyed(x, name)
		}))
	case "additionalProperties":
		return c.implied(v, c.parts(by, func(x map[string]any) any {
			// then it leaves more members out
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

// says reports whether one value of a keyword is at least as strict as another.
func (c *comparison) says(name string, x, v any) bool {
	switch name {
	case "type", "required":
		all, some := listOf(x), listOf(v)
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
	return false // it depends on sibling keywords
}

// parts lists the schemas that apply to a part of a value to which the schemas by apply. of returns the schema that one of them gives the part, or nil.
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

// within reports whether every key of an object, nil for none, is a key of another.
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

// keyed returns the translated schema's value for the name, or nil.
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

// listOf returns x if it is a list, and a list of x otherwise.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// sizeOf counts the values in a value.
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

// rational is the exact value of a number, whose exponent the translator has bounded.
func rational(v any) *big.Rat {
	n, _ := v.(json.Number)
	if r, ok := new(big.Rat).SetString(string(n)); ok {
		return r
	}
	return new(big.Rat)
}

// StillStricter returns the proposals with those of the open ones that are stricter than the deliverable.
func StillStricter(p *agent.Proposals, than json.RawMessage) *agent.Proposals {
	return p.Keep(func(o *agent.ContractProposal) bool { return Stricter(o.Contract.Deliverable, than) })
}
