package contract

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Bounds of what a check may cost. A step is one schema looking at one value, or one listed key or enumerated value
// being compared: about a microsecond. A hundred bytes of text that pass one instruction of a pattern are a step, too.
const (
	MaxSteps        = 10_000_000
	MaxPatternSize  = 10_000 // instructions that a document's patterns compile to, all together
	bytesOfTextStep = 100
)

// load is what a value may cost at most, whatever the schema.
type load struct {
	values, text int // members and elements; bytes of strings and keys
	odd          bool
}

// measure counts the values in v and its text, and notes whether a number in it is too large to reckon with.
func measure(v any) (l load) {
	l.add(v)
	return l
}

func (l *load) add(v any) {
	l.values++
	switch v := v.(type) {
	case string:
		l.text += len(v)
	case json.Number:
		l.odd = l.odd || oddNumber(v)
	case []any:
		for _, e := range v {
			l.add(e)
		}
	case map[string]any:
		for k, e := range v {
			l.text += len(k)
			l.add(e)
		}
	}
}

// affordable reports whether a check of the value stays within MaxSteps. Most do by far, whatever looks at what; for the
// others the check is walked through without being done.
func (s *Schema) affordable(v any, l load) bool {
	if l.values*s.weight+l.text/bytesOfTextStep*s.patternSize <= MaxSteps {
		return true
	}
	w := walker{schema: s, left: MaxSteps}
	w.defs, _ = s.root["$defs"].(map[string]any)
	return w.visit(s.root, v)
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
	return n
}

// walker counts the steps of a check.
type walker struct {
	schema *Schema
	defs   map[string]any
	left   int
}

// visit counts what the schema node costs the value; false when nothing is left.
func (w *walker) visit(node, v any) bool {
	m, ok := node.(map[string]any)
	if !ok {
		w.left--
		return w.left > 0
	}
	w.left -= weigh(m)
	if text, ok := v.(string); ok {
		w.pay(m["pattern"], len(text))
	}
	if w.left <= 0 {
		return false
	}
	if ref, ok := m["$ref"].(string); ok && !w.visit(w.defs[strings.TrimPrefix(ref, "#/$defs/")], v) {
		return false
	}
	for name, sub := range m {
		if !w.keyword(m, name, sub, v) {
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

func (w *walker) keyword(m map[string]any, name string, sub, v any) bool {
	base := strings.TrimPrefix(name, extPrefix)
	k, ok := keywordOf(base)
	if !ok || k.kind < schema || base == "$defs" {
		return true
	}
	if k.inPlace {
		return each(sub, k, func(_ string, child any) bool { return w.visit(child, v) })
	}
	switch v := v.(type) {
	case []any:
		return w.elements(m, base, sub, v)
	case map[string]any:
		return w.members(m, base, sub, v)
	}
	return true
}

func (w *walker) elements(m map[string]any, name string, sub any, v []any) bool {
	prefix, _ := m["prefixItems"].([]any)
	switch name {
	case "prefixItems":
		for i := range min(len(prefix), len(v)) {
			if !w.visit(prefix[i], v[i]) {
				return false
			}
		}
	case "items", "unevaluatedItems", "contains":
		from := 0
		if name == "items" {
			from = min(len(prefix), len(v))
		}
		for _, e := range v[from:] {
			if !w.visit(sub, e) {
				return false
			}
		}
	}
	return true
}

func (w *walker) members(m map[string]any, name string, sub any, v map[string]any) bool {
	known, _ := m["properties"].(map[string]any)
	switch name {
	case "properties":
		w.left -= len(known) // each is looked for
		for key, child := range known {
			if e, ok := v[key]; ok && !w.visit(child, e) {
				return false
			}
		}
	case "patternProperties":
		return each(sub, keyword{kind: patterns}, func(pattern string, child any) bool {
			for key, e := range v {
				if w.pay(pattern, len(key)); !w.visit(child, e) { // it may match
					return false
				}
			}
			return true
		})
	case "additionalProperties", "unevaluatedProperties":
		for key, e := range v {
			if _, is := known[key]; (!is || name != "additionalProperties") && !w.visit(sub, e) {
				return false
			}
		}
	case "propertyNames":
		for key := range v {
			if !w.visit(sub, key) {
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
