package contract

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A kind is the expected form of a keyword's value.
type kind int

// From schema on, the value contains schemas: code compares kinds with it.
const (
	anything kind = iota
	count         // a whole number, at least 0
	number
	positive // a number above 0
	flag
	pattern
	names    // a list of distinct strings
	nameMap  // an object whose values are lists of strings
	values   // a list with at least one value
	types    // a type or a list of types
	schema   // one schema
	schemas  // a list with at least one schema
	patterns // an object of schemas by regular expression
	members  // an object of schemas by name
)

// A keyword is how the translator treats a keyword of JSON Schema 2020-12.
type keyword struct {
	kind    kind
	inPlace bool // its schemas look at the same value as the surrounding schema
}

// keywordOf returns the keyword of that name. Unlisted keywords are annotations: the translator leaves them out.
func keywordOf(name string) (keyword, bool) {
	switch name {
	case "type":
		return keyword{kind: types}, true
	case "enum":
		return keyword{kind: values}, true
	case "const":
		return keyword{kind: anything}, true
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minContains",
		"maxContains":
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

// pairs returns the keywords that are lower and upper bounds of the same thing.
func pairs() [][2]string {
	return [][2]string{{"minItems", "maxItems"}, {"minLength", "maxLength"}, {"minProperties", "maxProperties"},
		{"minContains", "maxContains"}, {"minimum", "maximum"}}
}

// value validates and copies a keyword's value. reason says why it is invalid, or is "". err ends the compilation, even
// a tolerant one.
func (t *translator) value(k keyword, v any, here string, depth int) (copied any, reason string, err error) {
	switch k.kind {
	case count:
		n, ok := wholeNumber(v, t.tolerant)
		if !ok {
			return nil, "must be a whole number from 0", nil
		}
		return n, "", nil
	case number, positive:
		return v, badNumber(v, k.kind == positive), nil
	case flag:
		if _, ok := v.(bool); !ok {
			return nil, "must be true or false", nil
		}
		return v, "", nil
	case pattern:
		return v, t.pattern(v), nil
	case names:
		copied, reason = stringList(v, t.tolerant)
		return copied, reason, nil
	case nameMap:
		return v, badNameMap(v), nil
	case values:
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			return nil, "must be a list with at least one value", nil
		}
		if t.nodes += len(l); t.nodes > maxNodes {
			return nil, "", &InvalidError{here,
				fmt.Sprintf("is too long: schemas and enumerated values together are at most %d", maxNodes)}
		}
		return v, badNumbers(v), nil
	case anything:
		return v, badNumbers(v), nil
	case types:
		copied, reason = typeList(v)
		return copied, reason, nil
	}
	return t.nested(k, v, here, depth+1)
}

// badNumber returns what is wrong with a number, or "".
func badNumber(v any, positive bool) string {
	n, ok := v.(json.Number)
	f := floatOf(v)
	switch {
	case !ok || math.IsInf(f, 0) || len(n) > 64 || oddNumber(n) || f != 0 && math.Abs(f) < 1e-300:
		return "must be a number"
	case positive && f <= 0:
		return "must be above 0"
	}
	return ""
}

// noSchema is the reason reported for an element or member that is not a schema. It is replaced by true.
const noSchema = "must be a schema: an object, true or false"

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// nested copies the value of a keyword that contains a schema, or a list or an object of schemas.
func (t *translator) nested(k keyword, v any, here string, depth int) (copied any, reason string, err error) {
	one := func(v any, at string) (any, error) {
		switch v := v.(type) {
		case map[string]any:
			return t.schema(v, at, depth)
		case bool:
			t.places[at] = v
			return v, nil
		}
		return true, t.problem(at, noSchema)
	}
	switch k.kind {
	case schema:
		if _, flag := v.(bool); !flag && !isObject(v) {
			return nil, "must be one schema: an object, true or false", nil
		}
		copied, err = one(v, here)
		return copied, "", err
	case schemas:
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			return nil, "must be a list with at least one schema", nil
		}
		list := make([]any, len(l))
		for i := range l {
			if list[i], err = one(l[i], here+"/"+strconv.Itoa(i)); err != nil {
				return nil, "", err
			}
		}
		return list, "", nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, "must be an object of schemas", nil
	}
	object := make(map[string]any, len(obj))
	for _, key := range sortedKeys(obj) {
		at := here + "/" + escapeToken(key)
		if k.kind == patterns {
			if reason := t.pattern(key); reason != "" {
				if err := t.problem(at, reason); err != nil {
					return nil, "", err
				}
				continue
			}
		}
		if object[key], err = one(obj[key], at); err != nil {
			return nil, "", err
		}
	}
	return object, "", nil
}

// wholeNumber returns v as a whole number from 0 to a billion. With lenient, it also accepts a string such as "3".
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

// floatOf returns the number as a float64: 0 if v is not a number, +Inf if it does not fit.
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

// pattern returns why a pattern is invalid, or "". It counts a valid one against maxPatternSize.
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
	if t.size+n > maxPatternSize {
		return fmt.Sprintf("makes the patterns too large: all together they may have %d instructions, and a counted repeat has as many as it counts", maxPatternSize)
	}
	if _, err := regexp.Compile(s); err != nil {
		return "must be a regular expression (RE2): " + err.Error()
	}
	t.size += n
	t.patterns[s] = n
	return ""
}

// badNumbers returns why the numbers in a literal cannot be compared, or "".
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

// walkNumbers calls f for each number in v, in the order of sorted keys.
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

// stringList copies a list of distinct strings. With lenient, it skips other values and duplicates.
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

// badNameMap returns what is wrong with an object of lists of keys, or "".
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

// typeList reads a type, or a list of types. As in the seeds, letter case does not matter.
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

// allowsType reports whether a translated type includes t.
func allowsType(declared any, t string) bool {
	if l, ok := declared.([]any); ok {
		return slices.Contains(l, any(t))
	}
	return declared == t
}

// maxRounds bounds how often a deliverable is compiled until it is valid, since a compilation reports at most
// maxReports faults.
const maxRounds = 8

// WithoutSenseless removes the constraints that compileTolerant ignores from a program's deliverable, and returns them,
// so that readers see only what is checked. The result compiles to the same Schema. It returns an *InvalidError for
// what compileTolerant refuses, and if there are too many invalid constraints.
func WithoutSenseless(deliverable json.RawMessage) (json.RawMessage, []InvalidError, error) {
	var all []InvalidError
	for range maxRounds {
		_, odd, err := compileTolerant(deliverable)
		if err != nil || len(odd) == 0 {
			return deliverable, all, err
		}
		all = append(all, odd...)
		doc, err := decodeDeliverable(deliverable)
		if err != nil {
			return nil, nil, err
		}
		if deliverable, err = removed(doc, odd); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &InvalidError{Reason: fmt.Sprintf("has more than %d constraints that cannot be checked", len(all))}
}

// removed encodes the document without the reported parts.
func removed(doc any, reports []InvalidError) (json.RawMessage, error) {
	for _, r := range reports {
		if r.Pointer == "" {
			return nil, nil
		}
		steps := strings.Split(r.Pointer, "/")[1:]
		in := doc
		for _, step := range steps[:len(steps)-1] {
			in = child(in, unescaped(step))
		}
		remove(in, unescaped(steps[len(steps)-1]), r.Reason)
	}
	return json.Marshal(doc)
}

// remove deletes a member. In place of an invalid schema it sets true, which accepts everything, since a member of
// properties still declares its key.
func remove(in any, name, reason string) {
	switch in := in.(type) {
	case map[string]any:
		if _, named := in[name]; !named && name == "minItems" {
			name = "min_items" // the translator reported it as minItems
		}
		delete(in, name)
		if reason == noSchema {
			in[name] = true
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
			in[i] = true
		}
	}
}

// child returns a member or an element, or nil.
func child(of any, name string) any {
	switch of := of.(type) {
	case map[string]any:
		return of[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(of) {
			return of[i]
		}
	}
	return nil
}

// unescaped decodes a token of a JSON pointer (RFC 6901).
func unescaped(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
