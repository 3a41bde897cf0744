package contract

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Bounds of what a check may cost. A step is one schema looking at one value, or one listed key being compared: a few microseconds. A hundred
// bytes of text that pass one instruction of a pattern are a step, too, and so are 256 bytes of the place of a value, which the library writes
// for each schema that looks at it.
const (
	MaxSteps         = 10_000_000
	MaxPatternSize   = 10_000 // instructions that a document's patterns compile to, all together
	bytesOfTextStep  = 100
	bytesOfPlaceStep = 256
)

// load is what a value may cost at most, whatever the schema.
type load struct {
	values, text int // members and elements; bytes of strings and keys
	places       int // bytes of the places of all values
	within       int // steps to write each array whole that holds a value, for all values
	odd          bool
}

// measure counts the values in v and its text, and notes whether a number in it is too large to reckon with.
func measure(v any) (l load) {
	l.add(v, 0, 0)
	return l
}

// bytesOfIndex is about what an element's index adds to its place.
const bytesOfIndex = 6

func (l *load) add(v any, place, arrays int) {
	l.values++
	l.places += place
	l.within += arrays
	switch v := v.(type) {
	case string:
		l.text += len(v)
		l.within += arrays * len(v) / bytesOfTextStep
	case json.Number:
		l.odd = l.odd || oddNumber(v)
	case []any:
		for _, e := range v {
			l.add(e, place+bytesOfIndex, arrays+1)
		}
	case map[string]any:
		for k, e := range v {
			l.text += len(k)
			l.within += arrays * len(k) / bytesOfTextStep
			l.add(e, place+1+len(k), arrays)
		}
	}
}

// atMost is how many steps a check of such a value takes at most.
func (s *Schema) atMost(l load) int {
	n := (l.values+l.places/bytesOfPlaceStep)*s.weight + l.text/bytesOfTextStep*s.patternSize
	if s.unique {
		n += l.within * s.weight
	}
	return n
}

// affordable reports whether a check of the value stays within MaxSteps. Most do by far, whatever looks at what; for the
// others the check is walked through without being done.
func (s *Schema) affordable(v any, l load) bool {
	if s.atMost(l) <= MaxSteps {
		return true
	}
	w := walker{schema: s, left: MaxSteps}
	w.defs, _ = s.root["$defs"].(map[string]any)
	return w.visit(s.root, v, 0)
}

// weigh is what a schema by itself costs a value, in steps.
func weigh(node map[string]any) int {
	n := 1
	for _, name := range []string{"required", "enum"} {
		list, _ := node[name].([]any)
		n += len(list)
	}
	if deps, ok := node["dependentRequired"].(map[string]any); ok {
		for _, list := range deps {
			l, _ := list.([]any)
			n += 1 + len(l)
		}
	}
	if c, ok := node["const"]; ok {
		n += measure(c).values
	}
	if node[extEnum] != nil {
		n += 1 + maxListedText/bytesOfTextStep
	}
	return n
}

// walker counts the steps of a check.
type walker struct {
	schema *Schema
	defs   map[string]any
	left   int
}

// visit counts what the schema node costs the value at a place of so many bytes; false when nothing is left.
func (w *walker) visit(node, v any, place int) bool {
	w.left -= place / bytesOfPlaceStep
	m, ok := node.(map[string]any)
	if !ok {
		w.left--
		return w.left > 0
	}
	w.left -= weigh(m)
	switch v := v.(type) {
	case string:
		w.pay(m["pattern"], len(v))
	case []any:
		if m[extUnique] == true {
			l := measure(v)
			w.left -= l.values + l.text/bytesOfTextStep
		}
	}
	if w.left <= 0 {
		return false
	}
	if ref, ok := m["$ref"].(string); ok && !w.visit(w.defs[strings.TrimPrefix(ref, "#/$defs/")], v, place) {
		return false
	}
	for name, sub := range m {
		if !w.keyword(part{m, plainName(name), sub, place}, v) {
			return false
		}
	}
	return true
}

func (w *walker) pay(pattern any, text int) {
	if p, ok := pattern.(string); ok {
		w.left -= w.schema.patterns[p] * text / bytesOfTextStep
	}
}

// A part is a keyword of a schema that looks at a value at a place.
type part struct {
	of    map[string]any
	name  string
	sub   any
	place int
}

func (w *walker) keyword(p part, v any) bool {
	k, ok := keywordOf(p.name)
	if !ok || k.kind < schema || p.name == "$defs" {
		return true
	}
	if k.inPlace {
		return each(p.sub, k, func(_ string, child any) bool { return w.visit(child, v, p.place) })
	}
	switch v := v.(type) {
	case []any:
		return w.elements(p, v)
	case map[string]any:
		return w.members(p, v)
	}
	return true
}

func (w *walker) elements(p part, v []any) bool {
	prefix, _ := p.of["prefixItems"].([]any)
	place := p.place + bytesOfIndex
	switch p.name {
	case "prefixItems":
		for i := range min(len(prefix), len(v)) {
			if !w.visit(prefix[i], v[i], place) {
				return false
			}
		}
	case "items", "unevaluatedItems", "contains":
		from := 0
		if p.name == "items" {
			from = min(len(prefix), len(v))
		}
		for _, e := range v[from:] {
			if !w.visit(p.sub, e, place) {
				return false
			}
		}
	}
	return true
}

func (w *walker) members(p part, v map[string]any) bool {
	known, _ := p.of["properties"].(map[string]any)
	within := func(key string) int { return p.place + 1 + len(key) }
	switch p.name {
	case "properties":
		w.left -= len(known) // each is looked for
		for key, child := range known {
			if e, ok := v[key]; ok && !w.visit(child, e, within(key)) {
				return false
			}
		}
	case "patternProperties":
		return each(p.sub, keyword{kind: patterns}, func(pattern string, child any) bool {
			for key, e := range v {
				if w.pay(pattern, len(key)); !w.visit(child, e, within(key)) { // it may match
					return false
				}
			}
			return true
		})
	case "additionalProperties", "unevaluatedProperties":
		for key, e := range v {
			if _, is := known[key]; (!is || p.name != "additionalProperties") && !w.visit(p.sub, e, within(key)) {
				return false
			}
		}
	case "propertyNames":
		for key := range v {
			if !w.visit(p.sub, key, p.place) {
				return false
			}
		}
	}
	return w.left > 0
}

// each calls f for the schemas of a keyword until it returns false.
func each(sub any, k keyword, f func(key string, child any) bool) bool {
	switch s := sub.(type) {
	case []any:
		for _, child := range s {
			if !f("", child) {
				return false
			}
		}
	case map[string]any:
		if k.kind == schema {
			return f("", s)
		}
		for key, child := range s {
			if !f(key, child) {
				return false
			}
		}
	case bool:
		return f("", s)
	}
	return true
}

// patternCost is the number of instructions that a regular expression compiles to, about, without compiling it: a
// counted repeat of 7 bytes makes a thousand of them.
func patternCost(p string) (int, error) {
	if len(p) > 4096 {
		return 0, fmt.Errorf("it has more than 4096 bytes")
	}
	re, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return instructions(re), nil
}

func instructions(re *syntax.Regexp) int {
	const enough = 1 << 24 // repeats of repeats must not overflow
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/16
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, enough)
}
