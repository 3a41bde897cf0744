package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Kinds of mismatch, as in Violation.Mismatch.
const (
	MismatchType         = "type_mismatch"
	MismatchRequired     = "missing_required_key"
	MismatchMinItems     = "min_items_violation"
	MismatchPropertyType = "property_type_mismatch"
	MismatchNilInput     = "nil_required_input"
	MismatchSchema       = "schema_violation"
)

// A Violation describes how a value violates a schema. The same value and schema always give the same Violation.
//
// Metadata holds mismatch, expected_shape and actual_shape (JSON types), expected_keys and actual_keys (lists of
// strings, never nil), constraint_path (such as deliverable.constraints.properties.movies.min_items) and value_path (a
// JSON pointer; "" is the whole value). Where they apply, it also holds missing_keys, rename_keys (keys of the value
// that differ from a missing key only by case or separators, each with that key), expected_min_items, actual_items,
// expected and actual (short JSON).
type Violation struct {
	Mismatch string // one of the constants above
	Message  string
	Metadata map[string]any
}

// violation describes the failure l of the value v.
func (s *Schema) violation(l leaf, v any) *Violation {
	node, keyword := s.broken(l.keyword)
	pointer := s.origin.pointer(l.keyword)
	actual := valueAt(v, l.at)
	where := "the value"
	if len(l.at) > 0 {
		where = cut(jsonPointer(l.at), 300)
	}
	meta := map[string]any{"expected_shape": shapes(node["type"]), "actual_shape": shapeOf(actual),
		"constraint_path": cut(s.origin.spelled(pointer), 500),
		"value_path":      cut(jsonPointer(l.at), 300), "expected_keys": []string{}, "actual_keys": []string{}}
	out := &Violation{Mismatch: MismatchSchema, Metadata: meta}
	switch {
	case l.text != "":
		out.Message = l.text
	// the author wrote min_items, not a type
	case keyword == "type" && s.origin.implied[pointer]:
		out.tooFew(where, node, actual, l.at)
	case keyword == "type":
		out.wrongType(where, node, actual, l.at)
	case keyword == "required":
		out.missing(where, node, actual)
	case keyword == "minItems":
		out.tooFew(where, node, actual, l.at)
	default:
		out.broken(where, plainName(keyword), node[keyword], actual)
	}
	meta["mismatch"] = out.Mismatch
	if path := meta["constraint_path"].(string); path != "deliverable" {
		out.Message += " (" + path + ")"
	}
	return out
}

// broken returns the translated schema that contains a keyword, and the keyword.
func (s *Schema) broken(path []string) (map[string]any, string) {
	if len(path) == 0 {
		return nil, ""
	}
	var at any = s.root
	for _, token := range path[:len(path)-1] {
		at = valueAt(at, []string{token})
	}
	node, _ := at.(map[string]any)
	return node, path[len(path)-1]
}

// wrongType describes a value of another type. At the root it also lists the keys.
func (o *Violation) wrongType(where string, node map[string]any, actual any, at []string) {
	o.Mismatch = MismatchPropertyType
	expected := o.Metadata["expected_shape"].(string)
	if len(at) == 0 {
		o.Mismatch = MismatchType
		o.Metadata["expected_keys"] = keyList(node["required"])
		o.Metadata["actual_keys"] = keysOf(actual)
	} else {
		o.Metadata["expected_keys"] = []string{cut(at[len(at)-1], 100)}
	}
	o.Message = fmt.Sprintf("%s must be %s, got %s", where, expected, shapeOf(actual))
}

// missing describes an object without required keys, and suggests which keys to rename.
func (o *Violation) missing(where string, node map[string]any, actual any) {
	o.Mismatch = MismatchRequired
	object, _ := actual.(map[string]any)
	var missing []string
	for _, k := range keyList(node["required"]) {
		if _, ok := object[k]; !ok {
			missing = append(missing, k)
		}
	}
	o.Metadata["expected_shape"] = "object"
	o.Metadata["expected_keys"] = keyList(node["required"])
	o.Metadata["actual_keys"] = keysOf(actual)
	o.Metadata["missing_keys"] = missing
	o.Message = cut(fmt.Sprintf("%s lacks required keys: %s", where, strings.Join(missing, ", ")), 400)
	if rename := renamed(missing, object); len(rename) > 0 {
		o.Metadata["rename_keys"] = rename
		for _, from := range sortedKeys(rename) {
			o.Message = cut(fmt.Sprintf("%s; its key %q must be %q", o.Message, from, rename[from]), 600)
		}
	}
}

// renamed returns the keys of an object that differ from a missing key only by case or separators, each with the
// missing key. It returns nil for an object with more than maxShownKeys keys.
func renamed(missing []string, object map[string]any) map[string]string {
	if len(object) > maxShownKeys {
		return nil
	}
	out := map[string]string{}
	for _, key := range sortedKeys(object) {
		i := slices.IndexFunc(missing, func(m string) bool {
			return PlainWord(m) != "" &&
				PlainWord(m) == PlainWord(key)
		})
		if i >= 0 {
			out[key] = missing[i]
			missing = slices.Delete(slices.Clone(missing), i, i+1)
		}
	}
	return out
}

// tooFew describes an array with too few items, or a value that is not an array.
func (o *Violation) tooFew(where string, node map[string]any, actual any, at []string) {
	o.Mismatch = MismatchMinItems
	least := int(floatOf(node["minItems"]))
	o.Metadata["expected_shape"] = "array"
	o.Metadata["expected_min_items"] = least
	o.Metadata["actual_items"] = nil
	if len(at) > 0 {
		o.Metadata["expected_keys"] = []string{cut(at[len(at)-1], 100)}
	}
	list, ok := actual.([]any)
	if !ok {
		o.Message = fmt.Sprintf("%s must be an array with at least %d items, got %s", where, least, shapeOf(actual))
		return
	}
	o.Metadata["actual_items"] = len(list)
	o.Message = fmt.Sprintf("%s must have at least %d items, has %d", where, least, len(list))
}

// broken describes a violation of any other keyword.
func (o *Violation) broken(where, keyword string, limit, actual any) {
	switch keyword {
	case "anyOf":
		o.Message = where + " fits none of the alternatives"
	case "oneOf":
		o.Message = where + " fits none, or more than one, of the alternatives of which it must fit one"
	case "not":
		o.Message = where + " fits what it must not fit"
	default:
		expected := brief(limit)
		o.Metadata["expected"] = keyword + " " + expected
		o.Message = fmt.Sprintf("%s breaks %s %s", where, keyword, expected)
		if limit == nil {
			o.Metadata["expected"] = "nothing here"
			o.Message = where + " is not allowed"
		}
	}
	if object, ok := actual.(map[string]any); ok {
		o.Metadata["actual_keys"] = keysOf(object)
		return
	}
	o.Metadata["actual"] = brief(actual)
	o.Message += ", got " + brief(actual)
}

// tooLarge returns the violation of a value that cannot be checked within the limits.
func (s *Schema) tooLarge(v any, expected, actual string) *Violation {
	return &Violation{Mismatch: MismatchSchema,
		Message: fmt.Sprintf("the value is too large for its contract: it holds %s, and the contract takes %s", actual,
			expected),
		Metadata: map[string]any{"mismatch": MismatchSchema, "expected_shape": shapes(s.root["type"]),
			"actual_shape":  shapeOf(v),
			"expected_keys": []string{}, "actual_keys": []string{}, "constraint_path": "deliverable", "value_path": "",
			"expected": expected, "actual": actual}}
}

// shapes names the declared types, for messages.
func shapes(declared any) string {
	switch d := declared.(type) {
	case string:
		return d
	case []any:
		names := make([]string, len(d))
		for i, e := range d {
			names[i], _ = e.(string)
		}
		return strings.Join(names, " or ")
	}
	return "any"
}

// shapeOf names the JSON type of a decoded value.
func shapeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	}
	return "null"
}

// keyList returns the strings of a list, shortened and at most maxShownKeys of them. It never returns nil.
func keyList(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, e := range l {
		if s, ok := e.(string); ok && len(out) < maxShownKeys {
			out = append(out, cut(s, 200))
		}
	}
	return out
}

// keysOf returns the sorted keys of an object, shortened and at most maxShownKeys of them.
func keysOf(v any) []string {
	object, _ := v.(map[string]any)
	keys := sortedKeys(object)
	if len(keys) > maxShownKeys {
		keys = keys[:maxShownKeys]
	}
	for i := range keys {
		keys[i] = cut(keys[i], 100)
	}
	return keys
}

// valueAt returns the value at a path, or nil if there is none.
func valueAt(v any, path []string) any {
	for _, token := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// jsonPointer returns a path as a JSON pointer (RFC 6901).
func jsonPointer(path []string) string {
	var b strings.Builder
	for _, t := range path {
		b.WriteByte('/')
		b.WriteString(escapeToken(t))
	}
	return b.String()
}

// brief formats a value for messages: short, and a long list or any object only by its size.
func brief(v any) string {
	switch v := v.(type) {
	case []any:
		if len(v) <= 20 {
			if b, err := json.Marshal(v); err == nil && len(b) <= maxShownValue {
				return string(b)
			}
		}
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("an object of %d", len(v))
	case string:
		return strconv.Quote(cut(v, maxShownValue))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return cut(string(b), maxShownValue)
}

// cut shortens s to n bytes at most, at the boundary of a character, and appends "..." if it did.
func cut(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "?")
	}
	s = s[:n]
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-4):]) {
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "?") + "..."
}

// Words are the prose of a contract's layers, by author.
type Words struct {
	// ByPerson is the digest of the prose that people registered, for the role or for the method.
	ByPerson agent.WordingDigest
	// Made is the MadeFor of a program that is written now.
	Made agent.MadeFor
	// Own reports whether the call or its session overrides the registered prose.
	Own bool
}

// words returns the prose of the layers, by author. merged is their merged contract.
func (l *Layers) words(merged *agent.Contract) Words {
	people := Layers{Role: l.Role, Method: l.Method}
	if l.ByProgram {
		people.Role = nil
	}
	said, _ := Merge(people)
	shared, _ := Merge(Layers{Role: l.Role, ByProgram: l.ByProgram, Method: l.Method, Delegated: l.Delegated})
	registered, _ := Merge(Layers{Role: l.Role, ByProgram: l.ByProgram, Method: l.Method})
	asked := digestOf(merged)
	w := Words{ByPerson: digestOf(said).text(), Own: asked != digestOf(shared)}
	made, person, kept := asked, digestOf(said), digestOf(registered)
	for i := range made {
		if person[i] != "" {
			made[i] = person[i]
		}
	}
	w.Made = agent.MadeFor{Digest: made.text(), ByPerson: w.ByPerson}
	if registered == nil {
		return w
	}
	if made[0] == kept[0] {
		w.Made.Purpose = registered.Purpose
	}
	if made[1] == kept[1] && made[1] != "" {
		w.Made.Acceptance = registered.Acceptance
	}
	if made[2] == kept[2] && made[2] != "" {
		w.Made.FailurePolicy = registered.FailurePolicy
	}
	return w
}

// partDigests are the digests of purpose, acceptance and failure policy. The digest of an empty part is "".
type partDigests [3]string

func (d partDigests) text() agent.WordingDigest { return agent.WordingDigest(strings.Join(d[:], ".")) }

// digestOf returns the digests of a contract's prose. The amount of white space, and white space at the ends of a text,
// do not matter.
func digestOf(c *agent.Contract) (d partDigests) {
	if c == nil {
		return d
	}
	if purpose := spaced(c.Purpose); purpose != "" {
		d[0] = short(purpose)
	}
	for i, raw := range []json.RawMessage{c.Acceptance, c.FailurePolicy} {
		if absent(raw) {
			continue
		}
		v, err := Decode(raw)
		if err != nil {
			d[i+1] = short(string(raw))
			continue
		}
		v = unspaced(v)
		if empty(v) {
			continue
		}
		plain, err := json.Marshal(v)
		if err != nil {
			plain = raw
		}
		d[i+1] = short(canonical(map[string]json.RawMessage{"": plain}))
	}
	return d
}

// short returns a prefix of a checksum that is long enough to be unique.
func short(text string) string {
	const prefix, digits = len("sha256:"), 24
	return agent.Checksum(text)[prefix:][:digits]
}

// spaced collapses white space to single spaces and trims the ends.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// unspaced applies spaced to all strings in a value. It may change v.
func unspaced(v any) any {
	switch v := v.(type) {
	case string:
		return spaced(v)
	case []any:
		for i := range v {
			v[i] = unspaced(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = unspaced(v[name])
		}
	}
	return v
}

// empty reports whether v is an empty string, list or object.
func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
