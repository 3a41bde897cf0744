package catalog

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

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
