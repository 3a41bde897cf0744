package catalog

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A shape is a JSON Schema restricted to the keywords that every client and model API supports: Visual Studio Code,
// Copilot, OpenAI, Anthropic, Gemini. An array always has items, enums are of strings, required properties are defined,
// and there are no references. The zero shape accepts any value. A shape is shared and must not be changed.
type shape struct {
	kind        string // a type of JSON Schema; "" with anyOf or for any value
	description string // one line
	words       string // describes keywords that shapes do not have, in one line; "" with anyOf
	enum        []string
	least, most json.Number // bounds of a number or of an array's length; "" means none
	items       *shape
	properties  []property
	anyOf       []*shape // empty if kind is set

	nullable bool // in strict forms: null is also allowed
	closed   bool // in strict forms: no other properties
	orNull   bool // Gemini's form of nullable
}

// A property is a member of an object.
type property struct {
	name     string
	required bool
	of       *shape
}

// any reports whether the shape accepts any value.
func (s *shape) any() bool { return s.kind == "" && len(s.anyOf) == 0 }

// property returns the property with that name, or nil.
func (s *shape) property(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

// schema returns the shape as JSON Schema.
func (s *shape) schema() json.RawMessage {
	out := struct {
		Type        any               `json:"type,omitempty"`
		Description string            `json:"description,omitempty"`
		Nullable    bool              `json:"nullable,omitempty"`
		Enum        []any             `json:"enum,omitempty"`
		Minimum     json.Number       `json:"minimum,omitempty"`
		Maximum     json.Number       `json:"maximum,omitempty"`
		MinItems    json.Number       `json:"minItems,omitempty"`
		MaxItems    json.Number       `json:"maxItems,omitempty"`
		Items       json.RawMessage   `json:"items,omitempty"`
		Properties  json.RawMessage   `json:"properties,omitempty"`
		Required    []string          `json:"required,omitzero"`
		Additional  *bool             `json:"additionalProperties,omitempty"`
		AnyOf       []json.RawMessage `json:"anyOf,omitempty"`
	}{Description: sentences(s.description, s.words), Nullable: s.orNull}
	switch {
	case s.kind != "" && s.nullable:
		out.Type = []string{s.kind, "null"}
	case s.kind != "":
		out.Type = s.kind
	}
	for _, text := range s.enum {
		out.Enum = append(out.Enum, text)
	}
	if s.nullable && len(s.enum) > 0 {
		out.Enum = append(out.Enum, nil)
	}
	switch s.kind {
	case "array":
		out.MinItems, out.MaxItems, out.Items = s.least, s.most, s.items.schema()
	case "object":
		out.Properties, out.Required = s.members()
		if s.closed {
			out.Additional = new(bool)
			out.Required = append([]string{}, out.Required...) // required must be present even if empty
		}
	default:
		out.Minimum, out.Maximum = s.least, s.most
	}
	for i, one := range s.anyOf {
		if i == 0 && s.description != "" { // Gemini rejects other keywords next to anyOf
			first := *one
			first.description, one = sentences(s.description, one.description), &first
			out.Description = ""
		}
		out.AnyOf = append(out.AnyOf, one.schema())
	}
	return agent.Encoded(out)
}

// members returns the properties as an object in their order, which a map would lose, and the names of the required
// ones.
func (s *shape) members() (properties json.RawMessage, required []string) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range s.properties {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(agent.Encoded(p.name))
		b.WriteByte(':')
		b.Write(p.of.schema())
		if p.required {
			required = append(required, p.name)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), required
}

// maxAlternatives bounds the alternative shapes of a value.
const maxAlternatives = 16

// oneOf returns a shape that accepts the values of all the given shapes.
func oneOf(shapes []*shape) *shape {
	var all []*shape
	var said []string
	for _, s := range shapes {
		several := s.anyOf
		if s.kind != "" {
			several = []*shape{s}
		}
		if len(several) == 0 {
			return &shape{} // one of them accepts any value
		}
		for _, one := range several {
			if text := string(one.schema()); !slices.Contains(said, text) {
				all, said = append(all, one), append(said, text)
			}
		}
	}
	switch {
	case len(all) == 1:
		return all[0]
	case len(all) > maxAlternatives:
		return &shape{}
	}
	return &shape{anyOf: all}
}

// bothOf returns a shape that accepts at least the values that both accept.
func bothOf(s, t *shape) *shape {
	switch {
	case s.any():
		return t
	case t.any(), s.kind != t.kind:
		return s
	}
	both := *s
	both.words = joined(s.words, t.words)
	both.properties = slices.Clone(s.properties)
	for _, p := range t.properties {
		if known := both.property(p.name); known != nil {
			known.required = known.required || p.required
			known.of = bothOf(known.of, p.of)
		} else {
			both.properties = append(both.properties, p)
		}
	}
	return &both
}
