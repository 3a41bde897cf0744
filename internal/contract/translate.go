package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// kind is what a keyword's value must look like.
type kind int

const (
	anything kind = iota
	count         // a whole number from 0
	number
	positive // a number above 0
	flag
	pattern
	names    // a list of distinct strings
	nameMap  // an object of lists of strings
	values   // a list that is not empty
	types    // a type, or a list of types
	schema   // one schema
	schemas  // a list of schemas, not empty
	patterns // an object of schemas by pattern
	members  // an object of schemas by name
)

// keyword says how the translator treats a keyword of JSON Schema 2020-12. Keywords that it does not list only
// annotate, and are left out.
type keyword struct {
	kind    kind
	inPlace bool // its schemas look at the same value as the schema around it
}

func keywordOf(name string) (keyword, bool) {
	switch name {
	case "type":
		return keyword{kind: types}, true
	case "enum":
		return keyword{kind: values}, true
	case "const":
		return keyword{kind: anything}, true
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minContains", "maxContains":
		return keyword{kind: count}, true
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return keyword{kind: number}, true
	case "multipleOf":
		return keyword{kind: positive}, true
	case "uniqueItems":
		return keyword{kind: flag}, true
	case "pattern":
		return keyword{kind: pattern}, true
	case "required":
		return keyword{kind: names}, true
	case "dependentRequired":
		return keyword{kind: nameMap}, true
	case "items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return keyword{kind: schema}, true
	case "not", "if", "then", "else":
		return keyword{kind: schema, inPlace: true}, true
	case "allOf", "anyOf", "oneOf":
		return keyword{kind: schemas, inPlace: true}, true
	case "prefixItems":
		return keyword{kind: schemas}, true
	case "properties", "$defs", "definitions":
		return keyword{kind: members}, true
	case "patternProperties":
		return keyword{kind: patterns}, true
	case "dependentSchemas":
		return keyword{kind: members, inPlace: true}, true
	}
	return keyword{}, false
}

// pairs are lower and upper bounds; a lower one above its upper one lets nothing through.
func pairs() [][2]string {
	return [][2]string{{"minItems", "maxItems"}, {"minLength", "maxLength"}, {"minProperties", "maxProperties"}, {"minContains", "maxContains"}, {"minimum", "maximum"}}
}

// translator turns a deliverable into a document that holds nothing but checked keywords. Schemas that a $ref names are
// hoisted to $defs, so that references need no escaping and constraint paths can be told in the words of the original.
type translator struct {
	mode
	reports   []InvalidError
	anchors   map[string]string // anchor → pointer
	places    map[string]any    // what stands translated at the pointer of a schema: an object or a bool
	found     []*reference
	nodes     int
	unbounded bool
	evaluates bool // the document has unevaluated keywords
	patterns  map[string]int
	size      int // of the patterns, in instructions
	origin    origins

	weight, patternSize int // of the whole, every $ref expanded: see work.go
}

type reference struct {
	at     string // pointer of the referring schema
	text   string
	in     map[string]any // the translated referring schema
	target string         // pointer
}

// problem refuses the document, or notes what is left out.
func (t *translator) problem(at, reason string) error {
	if !t.tolerant {
		return &InvalidError{at, reason}
	}
	if len(t.reports) < 32 {
		t.reports = append(t.reports, InvalidError{at, reason})
	}
	return nil
}

func (t *translator) document(doc any) (map[string]any, error) {
	if doc == nil {
		return nil, nil
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, t.problem("", "must be an object: {type, required, min_items, constraints} or a JSON Schema")
	}
	if s, ok := m["$schema"].(string); ok && strings.TrimSuffix(s, "#") != "https://json-schema.org/draft/2020-12/schema" {
		if err := t.problem("/$schema", "must be https://json-schema.org/draft/2020-12/schema, or left out"); err != nil {
			return nil, err
		}
	}
	root, err := t.schema(m, "", 0)
	if err != nil {
		return nil, err
	}
	if err := t.constraints(m, root); err != nil {
		return nil, err
	}
	return t.link(root)
}

// schema translates the schema that stands at a pointer.
func (t *translator) schema(m map[string]any, at string, depth int) (map[string]any, error) {
	if t.nodes++; t.nodes > MaxNodes {
		return nil, &InvalidError{at, fmt.Sprintf("is one schema too many: at most %d are allowed", MaxNodes)}
	}
	if depth > MaxDepth {
		return nil, &InvalidError{at, fmt.Sprintf("is nested deeper than %d", MaxDepth)}
	}
	out := map[string]any{}
	t.places[at] = out
	for _, name := range sortedKeys(m) {
		if err := t.keyword(m, out, name, at, depth); err != nil {
			return nil, err
		}
	}
	if err := t.minItems(m, out, at); err != nil {
		return nil, err
	}
	for _, p := range pairs() {
		lo, hi := floatOf(out[p[0]]), floatOf(out[p[1]])
		if out[p[0]] != nil && out[p[1]] != nil && lo > hi {
			if err := t.problem(at+"/"+p[0], "is above "+p[1]+": no value could ever fit"); err != nil {
				return nil, err
			}
			delete(out, p[0])
		}
	}
	t.cutShort(out)
	return out, nil
}

// cutShort gives the keywords that a large value could break a million times to our extension, which stops at the first.
// Where the document asks what was evaluated, the library must see them itself.
func (t *translator) cutShort(out map[string]any) {
	if t.evaluates {
		return
	}
	rename := func(from, to string) {
		if v, ok := out[from]; ok {
			out[to] = v
			delete(out, from)
		}
	}
	rename("items", extItems)
	if _, ok := out["additionalProperties"].(map[string]any); ok && out["patternProperties"] == nil {
		rename("additionalProperties", extAdditional)
	}
}

func (t *translator) keyword(m, out map[string]any, name, at string, depth int) error {
	here, v := at+"/"+escapeToken(name), m[name]
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		return t.reference(out, name, v, here, at)
	case "$anchor", "$dynamicAnchor":
		if s, ok := v.(string); ok {
			t.anchors[s] = at
		}
		return nil
	case "$id":
		if at != "" {
			return t.problem(here, "is not supported below the top: a contract is one document")
		}
		return nil
	}
	k, ok := keywordOf(name)
	if !ok {
		return nil
	}
	reason, err := t.value(k, out, name, v, here, depth)
	if err != nil {
		return err
	}
	if reason != "" {
		delete(out, name)
		return t.problem(here, reason)
	}
	switch name {
	case "$defs", "definitions":
		delete(out, name) // what a $ref names of them is hoisted
	case "contains", "propertyNames", "patternProperties", "unevaluatedItems", "unevaluatedProperties":
		t.unbounded = true
	}
	return nil
}

func (t *translator) reference(out map[string]any, name string, v any, here, at string) error {
	s, ok := v.(string)
	switch {
	case !ok:
		return t.problem(here, "must be a string")
	case !t.mode.refs:
		return &InvalidError{here, "is not allowed in a contract that a program writes: spell the schema out"}
	case name != "$ref" && s == "" || s != "" && !strings.HasPrefix(s, "#"):
		return &InvalidError{here, "leaves the document: only references that begin with # are followed"}
	}
	t.found = append(t.found, &reference{at: at, text: s, in: out})
	return nil
}

// value checks and copies a keyword's value; reason is why it makes no sense.
func (t *translator) value(k keyword, out map[string]any, name string, v any, here string, depth int) (reason string, err error) {
	out[name] = v
	switch k.kind {
	case count:
		n, ok := wholeNumber(v, t.tolerant)
		if !ok {
			return "must be a whole number from 0", nil
		}
		out[name] = n
	case number, positive:
		n, ok := v.(json.Number)
		f := floatOf(v)
		if !ok || math.IsInf(f, 0) || len(n) > 64 || oddNumber(n) || f != 0 && math.Abs(f) < 1e-300 {
			return "must be a number", nil
		}
		if k.kind == positive && f <= 0 {
			return "must be above 0", nil
		}
	case flag:
		if _, ok := v.(bool); !ok {
			return "must be true or false", nil
		}
	case pattern:
		return t.pattern(v), nil
	case names:
		out[name], reason = stringList(v, t.tolerant)
		return reason, nil
	case nameMap:
		return badNameMap(v), nil
	case values:
		if l, ok := v.([]any); !ok || len(l) == 0 {
			return "must be a list with at least one value", nil
		}
		if t.nodes += len(v.([]any)); t.nodes > MaxNodes {
			return "", &InvalidError{here, fmt.Sprintf("is too long: schemas and enumerated values together are at most %d", MaxNodes)}
		}
		return badNumbers(v), nil
	case anything:
		return badNumbers(v), nil
	case types:
		out[name], reason = typeList(v)
		return reason, nil
	default:
		return t.nested(k, out, name, v, here, depth+1)
	}
	return "", nil
}

func (t *translator) nested(k keyword, out map[string]any, name string, v any, here string, depth int) (string, error) {
	one := func(v any, at string) (any, error) {
		switch v := v.(type) {
		case map[string]any:
			return t.schema(v, at, depth)
		case bool:
			t.places[at] = v
			return v, nil
		}
		return true, t.problem(at, "must be a schema: an object, true or false")
	}
	var err error
	switch k.kind {
	case schema:
		out[name], err = one(v, here)
	case schemas:
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			return "must be a list with at least one schema", nil
		}
		copied := make([]any, len(l))
		for i := range l {
			if copied[i], err = one(l[i], here+"/"+strconv.Itoa(i)); err != nil {
				return "", err
			}
		}
		out[name] = copied
	default:
		obj, ok := v.(map[string]any)
		if !ok {
			return "must be an object of schemas", nil
		}
		copied := make(map[string]any, len(obj))
		for _, key := range sortedKeys(obj) {
			at := here + "/" + escapeToken(key)
			if k.kind == patterns {
				if reason := t.pattern(key); reason != "" {
					if err := t.problem(at, reason); err != nil {
						return "", err
					}
					continue
				}
			}
			if copied[key], err = one(obj[key], at); err != nil {
				return "", err
			}
		}
		out[name] = copied
	}
	return "", err
}

// minItems takes the seeds' min_items for minItems. Without a type beside it, it speaks of an array.
func (t *translator) minItems(m, out map[string]any, at string) error {
	v, ok := m["min_items"]
	if !ok {
		return nil
	}
	here := at + "/min_items"
	n, ok := wholeNumber(v, t.tolerant)
	if !ok {
		return t.problem(here, "must be a whole number from 0")
	}
	if ty, ok := out["type"]; ok && !allowsType(ty, "array") {
		return t.problem(here, "stands beside a type that has no items")
	}
	if _, ok := out["type"]; !ok {
		out["type"] = "array"
		t.origin.implied[at+"/type"] = true
	}
	if old, ok := out["minItems"]; !ok || floatOf(old) < floatOf(n) {
		out["minItems"] = n
		t.origin.renamed[at+"/minItems"] = true
	}
	return nil
}

// constraints translates the seeds' constraints member into one more schema that must hold.
func (t *translator) constraints(m, root map[string]any) error {
	v, ok := m["constraints"]
	if !ok || v == nil {
		return nil
	}
	c, ok := v.(map[string]any)
	if !ok {
		return t.problem("/constraints", "must be an object")
	}
	if ty, ok := root["type"]; ok && c["min_items"] != nil && !allowsType(ty, "array") {
		if err := t.problem("/constraints/min_items", "stands under a type that has no items"); err != nil {
			return err
		}
		c = maps.Clone(c)
		delete(c, "min_items")
	}
	extra, err := t.schema(c, "/constraints", 1)
	if err != nil || len(extra) == 0 {
		return err
	}
	all, _ := root["allOf"].([]any)
	t.origin.constraints = "/allOf/" + strconv.Itoa(len(all))
	root["allOf"] = append(slices.Clip(all), extra)
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// wholeNumber returns v as a whole number from 0 to a billion; lenient also reads "3".
func wholeNumber(v any, lenient bool) (json.Number, bool) {
	n, ok := v.(json.Number)
	if s, isText := v.(string); isText && lenient {
		n, ok = json.Number(strings.TrimSpace(s)), true
	}
	if !ok || len(n) > 32 {
		return "", false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f < 0 || f > 1e9 || f != math.Trunc(f) {
		return "", false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

func floatOf(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return math.Inf(1)
	}
	return f
}

// pattern says why a pattern cannot be used, and counts it.
func (t *translator) pattern(v any) string {
	s, ok := v.(string)
	if !ok {
		return "must be a regular expression"
	}
	if _, known := t.patterns[s]; known {
		return ""
	}
	n, err := patternCost(s)
	if err != nil {
		return "must be a regular expression (RE2): " + err.Error()
	}
	if t.size+n > MaxPatternSize {
		return fmt.Sprintf("makes the patterns too large: all together they may have %d instructions, and a counted repeat has as many as it counts", MaxPatternSize)
	}
	if _, err := regexp.Compile(s); err != nil {
		return "must be a regular expression (RE2): " + err.Error()
	}
	t.size += n
	t.patterns[s] = n
	return ""
}

// badNumbers says why a literal could not be compared: its numbers must be ordinary ones.
func badNumbers(v any) string {
	ok := true
	walkNumbers(v, func(n json.Number) {
		f := floatOf(n)
		ok = ok && !math.IsInf(f, 0) && !oddNumber(n) && (f == 0 || math.Abs(f) > 1e-300)
	})
	if !ok {
		return "holds a number that is out of range"
	}
	return ""
}

func walkNumbers(v any, f func(json.Number)) {
	switch v := v.(type) {
	case json.Number:
		f(v)
	case []any:
		for _, e := range v {
			walkNumbers(e, f)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			walkNumbers(v[k], f)
		}
	}
}

func stringList(v any, lenient bool) (any, string) {
	l, ok := v.([]any)
	if !ok {
		return nil, "must be a list of keys"
	}
	out := make([]any, 0, len(l))
	seen := map[string]bool{}
	for _, e := range l {
		s, ok := e.(string)
		switch {
		case !ok && lenient, ok && seen[s] && lenient:
			continue
		case !ok:
			return nil, "must be a list of keys, each a string"
		case seen[s]:
			return nil, fmt.Sprintf("names %q twice", s)
		}
		seen[s] = true
		out = append(out, s)
	}
	return out, ""
}

func badNameMap(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return "must be an object of lists of keys"
	}
	for _, k := range sortedKeys(m) {
		if _, reason := stringList(m[k], false); reason != "" {
			return "/" + k + " " + reason
		}
	}
	return ""
}

// typeList reads a type as the seeds do: in any letter case.
func typeList(v any) (any, string) {
	known := func(v any) (string, bool) {
		s, _ := v.(string)
		s = strings.ToLower(strings.TrimSpace(s))
		return s, slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, s)
	}
	const reason = "must be object, array, string, number, integer, boolean or null, or a list of these"
	if l, ok := v.([]any); ok && len(l) > 0 {
		out := []any{}
		for _, e := range l {
			s, ok := known(e)
			if !ok {
				return nil, reason
			}
			if !slices.Contains(out, any(s)) {
				out = append(out, s)
			}
		}
		return out, ""
	}
	s, ok := known(v)
	if !ok {
		return nil, reason
	}
	return s, ""
}

func allowsType(declared any, t string) bool {
	if l, ok := declared.([]any); ok {
		return slices.Contains(l, any(t))
	}
	return declared == t
}

func escapeToken(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

func unescapeToken(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		s = u
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}
