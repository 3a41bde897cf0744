package contract

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Limits of the cost of a check. A step is one schema that looks at one value, or one comparison with a listed key: a
// few microseconds. Matching 100 bytes of text against one instruction of a pattern is also a step. So are 256 bytes of
// the path of a value, which the library writes for each schema that looks at the value.
const (
	maxSteps         = 10_000_000
	maxPatternSize   = 10_000 // instructions of all patterns of a document together
	bytesOfTextStep  = 100
	bytesOfPlaceStep = 256
)

// A load is an upper bound of a value's part in the cost of a check, whatever the schema.
type load struct {
	values, text int  // number of members and elements; bytes of strings and keys
	places       int  // bytes of the paths of all values
	within       int  // steps of uniqueItems if all arrays have it: each writes all that it contains
	odd          bool // contains an odd number (oddNumber)
}

// measure returns the load of v.
func measure(v any) (l load) {
	l.add(v, 0, 0)
	return l
}

// bytesOfIndex is the approximate length of an index in a path.
const bytesOfIndex = 6

// add adds v to the load. place is the length of its path, arrays the number of arrays around it.
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

// atMost returns an upper bound of the steps for a value with that load.
func (s *Schema) atMost(l load) int {
	n := (l.values+l.places/bytesOfPlaceStep)*s.weight + l.text/bytesOfTextStep*s.patternSize
	if s.unique {
		n += l.within * s.weight
	}
	return n
}

// affordable reports whether a check of the value takes at most maxSteps. The upper bound decides for almost all
// values. For the others it counts the steps that the check would take.
func (s *Schema) affordable(v any, l load) bool {
	if s.atMost(l) <= maxSteps {
		return true
	}
	w := walker{schema: s, left: maxSteps}
	w.defs, _ = s.root["$defs"].(map[string]any)
	return w.visit(s.root, v, 0)
}

// weigh returns the steps that a schema takes for a value, without those of nested schemas.
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

// A walker counts the steps of a check without doing it.
type walker struct {
	schema *Schema
	defs   map[string]any
	left   int // steps until the limit
}

// visit counts the steps of a schema for a value; place is the length of the value's path. It returns false once the
// limit is reached.
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
		// each element is written once as its identity
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

// pay counts matching text of that length against a pattern.
func (w *walker) pay(pattern any, text int) {
	if p, ok := pattern.(string); ok {
		w.left -= w.schema.patterns[p] * text / bytesOfTextStep
	}
}

// A part is a keyword of a schema that looks at a value.
type part struct {
	of    map[string]any // the schema
	name  string
	sub   any // value of the keyword
	place int // length of the value's path
}

// keyword counts the steps of one keyword's schemas. It returns false once the limit is reached.
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

// elements counts the steps of a keyword for the elements of an array.
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

// members counts the steps of a keyword for the members of an object. It may count too many, never too few: any key
// might match a pattern.
func (w *walker) members(p part, v map[string]any) bool {
	known, _ := p.of["properties"].(map[string]any)
	within := func(key string) int { return p.place + 1 + len(key) }
	switch p.name {
	case "properties":
		w.left -= len(known) // each key is looked up
		for key, child := range known {
			if e, ok := v[key]; ok && !w.visit(child, e, within(key)) {
				return false
			}
		}
	case "patternProperties":
		return each(p.sub, keyword{kind: patterns}, func(pattern string, child any) bool {
			for key, e := range v {
				if w.pay(pattern, len(key)); !w.visit(child, e, within(key)) { // the key may match
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

// each calls f for the schemas of a keyword until f returns false.
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

// patternCost estimates the number of instructions of a regular expression without compiling it. A counted repeat of 7
// bytes can compile to a thousand instructions.
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

// instructions estimates the instructions of a parsed regular expression.
func instructions(re *syntax.Regexp) int {
	const enough = 1 << 24 // bounds the result, so that nested repeats do not overflow
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
