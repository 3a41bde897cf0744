package catalog

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Bounds of the part of a model's schema that is shown. Anything beyond them becomes a schema of any value.
const (
	maxText      = 400 // characters of a model's description
	maxWords     = 600 // characters for keywords that are described in words
	maxList      = 300 // of these for a list of values, a pattern, or the schema of members
	maxValue     = 60  // of these for one value
	maxDepth     = 7   // of a parameter or value; OpenAI accepts ten levels
	maxShapes    = 200
	maxEnum      = 250 // values
	maxEnumBytes = 12_000
)

// A schemaReader converts a model's schema to a shape. The shape accepts every value that the schema accepts.
type schemaReader struct {
	root json.RawMessage // the document that references point into
	// guess infers a missing type: object from properties, array from items.
	guess  bool
	left   int      // number of shapes that may still be made
	within []string // references being read, to detect cycles
	texts  bool     // the schema contains descriptions
	unseen bool     // a name or value contains invisible characters
}

// shapeOf returns the shape of a schema and whether it contains descriptions. An invalid schema, or one with invisible
// characters, gives the shape of any value.
func shapeOf(schema json.RawMessage, guess bool) (s *shape, texts bool) {
	r := schemaReader{root: schema, guess: guess, left: maxShapes}
	s = r.read(schema, 0)
	if r.unseen {
		return &shape{}, false
	}
	return s, r.texts
}

// keywords are the members of a schema object.
type keywords map[string]json.RawMessage

func (r *schemaReader) read(schema json.RawMessage, depth int) *shape {
	m := keywords{}
	if r.left--; r.left < 0 || depth > maxDepth || json.Unmarshal(schema, &m) != nil { // also for a boolean schema
		return &shape{}
	}
	s := r.worded(r.whole(m, depth), m, depth)
	if d := r.describe(m); d != "" {
		s.description = d
	}
	return s
}

// whole reads a schema except its description.
func (r *schemaReader) whole(m keywords, depth int) *shape {
	s := r.typed(m, depth)
	if to, ok := textOf(m["$ref"]); ok {
		s = bothOf(s, r.referred(to, depth))
	}
	for _, part := range elements(m["allOf"]) {
		s = bothOf(s, r.read(part, depth))
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if parts := elements(m[name]); s.any() && len(parts) > 0 {
			s = r.oneOf(parts, depth)
		}
	}
	if string(m["nullable"]) == "true" && !s.any() {
		s = oneOf([]*shape{s, {kind: "null"}})
	}
	return s
}

// oneOf reads alternatives. The schema false accepts nothing and is skipped.
func (r *schemaReader) oneOf(parts []json.RawMessage, depth int) *shape {
	var all []*shape
	for _, part := range parts {
		if string(part) != "false" {
			all = append(all, r.read(part, depth+1))
		}
	}
	if len(all) == 0 {
		return &shape{}
	}
	return oneOf(all)
}

// referred reads the target of a reference. A reference out of the document, or a cyclic one, gives any value.
func (r *schemaReader) referred(to string, depth int) *shape {
	path, local := strings.CutPrefix(to, "#/")
	if !local || slices.Contains(r.within, to) {
		return &shape{}
	}
	at := r.root
	for _, name := range strings.Split(path, "/") {
		m := keywords{}
		if json.Unmarshal(at, &m) != nil {
			return &shape{}
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	r.within = append(r.within, to)
	defer func() { r.within = r.within[:len(r.within)-1] }()
	return r.read(at, depth)
}

// typed reads the types, constants and nested schemas of a schema.
func (r *schemaReader) typed(m keywords, depth int) *shape {
	values, fixed := elements(m["enum"]), false
	if only, is := m["const"]; is {
		values, fixed = []json.RawMessage{only}, true
	}
	types, known := typesOf(m["type"])
	switch {
	case fixed, len(values) > 0:
		return r.fixed(values, types)
	case !known:
		return &shape{}
	}
	if len(types) == 0 && r.guess {
		switch {
		case m["properties"] != nil:
			types = []string{"object"}
		case m["items"] != nil, m["prefixItems"] != nil:
			types = []string{"array"}
		}
	}
	var all []*shape
	for _, t := range types {
		all = append(all, r.of(t, m, depth))
	}
	if len(all) == 0 {
		return &shape{}
	}
	return oneOf(all)
}

// typesOf returns the types that a schema names. known is false if one of them is unknown.
func typesOf(raw json.RawMessage) (types []string, known bool) {
	if one, ok := textOf(raw); ok {
		types = []string{one}
	} else if raw != nil && json.Unmarshal(raw, &types) != nil {
		return nil, false
	}
	for i, t := range types {
		types[i] = strings.ToLower(strings.TrimSpace(t))
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object", "null"}, types[i]) {
			return nil, false
		}
	}
	return types, true
}

// fixed returns the shape of an enumeration of values, for which the schema declares these types.
func (r *schemaReader) fixed(values []json.RawMessage, types []string) *shape {
	number := "number"
	if slices.Contains(types, "integer") && !slices.Contains(types, number) {
		number = "integer"
	}
	var texts []string
	var all []*shape
	size, plain := 0, true
	for _, v := range values {
		switch kind := agent.Kind(v); kind {
		case "string":
			t, _ := textOf(v)
			r.see(t)
			texts, size = append(texts, t), size+len(t)
			plain = plain && t != "" // Gemini rejects an empty string
		case "number":
			all = append(all, &shape{kind: number})
		case "boolean", "null":
			all = append(all, &shape{kind: kind})
		default:
			return &shape{}
		}
	}
	if len(texts) > 0 {
		s := &shape{kind: "string"}
		if plain && len(texts) <= maxEnum && size <= maxEnumBytes {
			s.enum = distinct(texts)
		}
		all = append([]*shape{s}, all...)
	}
	return oneOf(all)
}

// distinct returns the texts in order without duplicates.
func distinct(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// of returns the shape of the schema's values of one type.
func (r *schemaReader) of(kind string, m keywords, depth int) *shape {
	s := &shape{kind: kind}
	defer func() {
		least, _ := s.least.Float64()
		if most, err := s.most.Float64(); err == nil && s.least != "" && least > most {
			s.least, s.most = "", "" // no value fits, and some clients reject such a schema
		}
	}()
	switch kind {
	case "number", "integer":
		s.least, s.most = number(m["minimum"], m["exclusiveMinimum"]), number(m["maximum"], m["exclusiveMaximum"])
	case "array":
		s.least, s.most, s.items = count(m["minItems"]), count(m["maxItems"]), r.items(m, depth)
	case "object":
		rawjson.Members(m["properties"], func(name string, of []byte) {
			r.see(name)
			if p := (property{name: name, of: r.read(of, depth+1)}); s.property(name) == nil {
				s.properties = append(s.properties, p)
			}
		})
		var required []string
		_ = json.Unmarshal(m["required"], &required) // anything but a list of names requires nothing
		for _, name := range required {
			if r.see(name); s.property(name) == nil {
				s.properties = append(s.properties, property{name: name, of: &shape{}})
			}
			s.property(name).required = true
		}
	}
	return s
}

// items returns the shape of an array's items. For a tuple, an item may have the shape of any position.
func (r *schemaReader) items(m keywords, depth int) *shape {
	tuple, rest := elements(m["prefixItems"]), m["items"]
	if tuple == nil {
		if tuple = elements(rest); tuple != nil {
			rest = m["additionalItems"]
		}
	}
	switch {
	case tuple == nil:
		return r.read(rest, depth+1)
	case string(rest) != "false" && string(m["maxItems"]) != strconv.Itoa(len(tuple)):
		return &shape{}
	}
	return r.oneOf(tuple, depth)
}

// number returns the first bound that is a number of moderate size, or "".
func number(bounds ...json.RawMessage) json.Number {
	for _, raw := range bounds {
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil && len(raw) <= 30 && f > -1e15 && f < 1e15 {
			return json.Number(raw)
		}
	}
	return ""
}

// count returns a bound on the number of items, or "" if it is invalid.
func count(raw json.RawMessage) json.Number {
	if n, err := strconv.ParseUint(string(raw), 10, 31); err == nil {
		return json.Number(strconv.FormatUint(n, 10))
	}
	return ""
}

// see notes whether the text contains invisible characters, which make the schema unusable.
func (r *schemaReader) see(text string) {
	if strings.ContainsFunc(text, func(c rune) bool { return !agent.Seen(c) && c != '\n' && c != '\t' }) {
		r.unseen = true
	}
}

// textOf returns the string that raw encodes; ok is false if it is not a JSON string.
func textOf(raw json.RawMessage) (s string, ok bool) {
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

// elements returns the elements of an array, or nil for anything else.
func elements(raw json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// keywordsOf returns the keywords of a schema object; anything else has none.
func keywordsOf(schema json.RawMessage) keywords {
	m := keywords{}
	_ = json.Unmarshal(schema, &m)
	return m
}

// inWords lists keywords that not every client supports, with the type that they concern and the words that describe
// them.
var inWords = []struct{ name, of, words string }{
	{"format", "string", "Format: "}, {"pattern", "string", "Pattern: "},
	{"minLength", "string", "Characters at least: "}, {"maxLength", "string", "Characters at most: "},
	{"exclusiveMinimum", "number", "More than: "}, {"exclusiveMaximum", "number", "Less than: "},
	{"multipleOf", "number", "A multiple of: "},
	{"minProperties", "object", "Members at least: "}, {"maxProperties", "object", "Members at most: "}}

// describe returns the description of a schema, with its default.
func (r *schemaReader) describe(m keywords) string {
	words := ""
	if raw, there := m["default"]; there && string(raw) != "null" {
		words = "Default: " + agent.OneLine(string(raw), maxValue) + "."
	}
	says, ok := textOf(m["description"])
	if !ok || says == "" {
		says, ok = textOf(m["title"])
	}
	if !ok || says == "" {
		return words
	}
	r.texts = true
	return sentences(agent.OneLine(says, maxText-len([]rune(words))-2), words)
}

// worded returns the shape with the words for the schema's keywords that shapes do not have. Each alternative gets
// those of its type.
func (r *schemaReader) worded(s *shape, m keywords, depth int) *shape {
	out := *s
	out.anyOf = nil
	for _, one := range s.anyOf {
		out.anyOf = append(out.anyOf, r.worded(one, m, depth))
	}
	if len(s.anyOf) == 0 {
		out.words = joined(s.words, strings.Join(r.words(m, s, depth), " "))
	}
	return &out
}

// joined returns the words of two schemas that a value must match, within their bound.
func joined(a, b string) string {
	if a == b {
		return a
	}
	return agent.OneLine(sentences(a, b), maxWords)
}

// words returns a sentence for each keyword that concerns values of the shape's one type and that the shape lacks.
func (r *schemaReader) words(m keywords, s *shape, depth int) (said []string) {
	for _, k := range inWords {
		raw, there := m[k.name]
		if !there || string(raw) == "null" || k.of != s.kind && (k.of != "number" || s.kind != "integer") {
			continue
		}
		value, most := string(raw), maxValue
		if t, ok := textOf(raw); ok {
			value, most = t, maxList // a pattern that is cut is of little use
		}
		said = append(said, k.words+agent.OneLine(value, most)+".")
	}
	if of := choices(m, s); of != "" {
		said = append(said, of+".")
	}
	switch {
	case s.kind == "array" && string(m["uniqueItems"]) == "true":
		said = append(said, "No item twice.")
	case s.kind == "object":
		said = append(said, r.ofMembers(m, s, depth)...)
	}
	return said
}

// choices returns words for the values of the shape's type that the schema lists, unless the shape lists them.
func choices(m keywords, s *shape) string {
	list, always := elements(m["enum"]), ""
	if only, is := m["const"]; is {
		list, always = []json.RawMessage{only}, "Always: "
	}
	var of []string
	for _, v := range list {
		if kind := agent.Kind(v); s.any() || kind == s.kind || kind == "number" && s.kind == "integer" {
			of = append(of, string(v))
		}
	}
	switch {
	case len(of) == 0, len(s.enum) > 0, s.kind == "null":
		return ""
	case always != "":
		return always + agent.OneLine(of[0], maxValue)
	}
	return "One of: " + agent.OneLine("["+strings.Join(of, ",")+"]", maxList)
}

// ofMembers returns sentences about the members of an object that the shape does not list.
func (r *schemaReader) ofMembers(m keywords, s *shape, depth int) (said []string) {
	each := "Each member: "
	if len(s.properties) > 0 {
		each = "Each other member: "
	}
	rawjson.Members(m["patternProperties"], func(pattern string, of []byte) {
		said = append(said, "Members that match "+agent.OneLine(pattern, maxValue)+": "+r.brief(of, depth)+".")
		each = "Each other member: "
	})
	if names := r.words(keywordsOf(m["propertyNames"]), &shape{kind: "string"}, depth); len(names) > 0 {
		said = append(said, "Names of members: "+strings.Join(names, " "))
	}
	switch rest := m["additionalProperties"]; {
	case string(rest) == "false":
		said = append(said, "No other members.")
	case rest != nil:
		if of := r.brief(rest, depth); of != anyValue {
			said = append(said, each+of+".")
		}
	}
	return said
}

const anyValue = "any value"

// brief describes a schema within a sentence: by its type, or as the JSON Schema of its shape if there is more to it.
func (r *schemaReader) brief(schema json.RawMessage, depth int) string {
	if string(schema) == "false" {
		return "none"
	}
	s := r.read(schema, depth+1)
	shown, plain := string(rawjson.WithoutHTML(s.schema())), shape{kind: s.kind, items: s.items}
	switch {
	case shown == "{}":
		return anyValue
	case s.kind != "array" && shown == string(plain.schema()):
		return s.kind
	}
	return agent.OneLine(shown, maxList)
}
