package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Strict returns the schema of the arguments for models that must follow it exactly. Every property is listed and
// required, an optional one is nullable, and a value without a schema is passed as JSON text. Arguments reads such
// arguments in the form Strict.
func (t *Tool) Strict() json.RawMessage {
	return t.shape.listed().schema()
}

// readObject converts the object of arguments to the plain form.
func (t *Tool) readObject(object json.RawMessage, form Form) (json.RawMessage, error) {
	if form == Unknown && !t.shape.lists(object) {
		form = Sparse
	}
	return t.shape.readObject(object, form, "")
}

// lists reports whether the object has all properties, as in the strict form.
func (s *shape) lists(object json.RawMessage) bool {
	n := 0
	rawjson.Members(object, func(name string, _ []byte) {
		if s.property(name) != nil {
			n++
		}
	})
	return n == len(s.properties)
}

// textual reports whether the strict form passes the value as JSON text, because its members cannot be listed or its
// alternatives cannot be distinguished.
func (s *shape) textual() bool {
	if s.kind == "object" {
		return len(s.properties) == 0
	}
	// Two alternatives of the same kind of list or object look alike when a value is read back.
	lists := map[string]int{}
	for _, one := range s.anyOf {
		if one.kind == "object" || one.kind == "array" {
			lists[one.kind]++
		}
		if one.textual() || lists[one.kind] > 1 {
			return true
		}
	}
	return s.any()
}

// text returns the shape of a textual value's JSON text.
func (s *shape) text() *shape {
	says := sentences(s.description, s.words)
	for _, one := range s.anyOf {
		says = sentences(says, sentences(one.description, one.words))
	}
	return &shape{kind: "string", description: sentences(agent.OneLine(says, maxText+maxWords), "As JSON text.")}
}

// strict returns the strict form of a value's shape, nullable unless required.
func (s *shape) strict(required bool) *shape {
	var out *shape
	if s.textual() {
		out = s.text()
	} else {
		out = s.listed()
	}
	if required {
		return out
	}
	out.description = sentences(out.description, "null: not given.")
	if out.kind == "null" || slices.ContainsFunc(out.anyOf, func(one *shape) bool { return one.kind == "null" }) {
		return out
	}
	if out.nullable = out.kind != ""; !out.nullable {
		out.anyOf = append(slices.Clip(out.anyOf), &shape{kind: "null"})
	}
	return out
}

// listed returns the strict form of all arguments, or of a shape that is not textual.
func (s *shape) listed() *shape {
	out := *s
	out.properties, out.anyOf = nil, nil
	if out.closed = s.kind == "object"; out.closed {
		for _, p := range s.properties {
			out.properties = append(out.properties, property{p.name, true, p.of.strict(p.required)})
		}
	}
	if s.items != nil {
		out.items = s.items.strict(true)
	}
	for _, one := range s.anyOf {
		out.anyOf = append(out.anyOf, one.strict(true))
	}
	return &out
}

// sentences joins two texts, and ends the first one with a full stop if there are two.
func sentences(a, b string) string {
	if a != "" && b != "" && !strings.HasSuffix(a, ".") && !strings.HasSuffix(a, "…") {
		a += "."
	}
	return strings.TrimSpace(a + " " + b)
}

// A Form is a way in which an agent may write arguments.
type Form int

// Forms of arguments. In every form, a list, object, number or boolean may also be given as JSON text if the schema
// accepts nothing else.
const (
	Plain  Form = iota // as Parameters describes them
	Sparse             // like Plain, with null for an optional argument that is not given
	// Unknown is Strict if the object has all arguments, otherwise Sparse. For a value without a schema, JSON text of
	// an object, list or string is decoded.
	Unknown
	Strict // as Strict describes them
)

// read returns the plain form of the value. given is false for a null that means "not given".
func (s *shape) read(value json.RawMessage, form Form, required bool,
	at string) (out json.RawMessage, given bool, err error) {
	kind := agent.Kind(value)
	switch {
	case kind == "null" && !required && form != Plain:
		return nil, false, nil
	case kind == "string":
		out, err = s.readText(value, form, at)
		return out, true, err
	case s.textual():
		return value, true, nil
	}
	for _, one := range append([]*shape{s}, s.anyOf...) {
		switch {
		case one.kind == "object" && kind == "object":
			out, err = one.readObject(value, form, at)
			return out, true, err
		case one.kind == "array" && kind == "array":
			out, err = one.readArray(value, form, at)
			return out, true, err
		}
	}
	return value, true, nil
}

// readText converts a JSON string given for a value of the shape: the string itself, or the JSON text of another value.
func (s *shape) readText(value json.RawMessage, form Form, at string) (json.RawMessage, error) {
	t, _ := textOf(value)
	inner := bytes.TrimSpace([]byte(t))
	whole := len(inner) > 0 && strict.Check(inner) == nil
	list := s.kind == "object" || s.kind == "array"
	switch {
	case whole && agent.Kind(inner) == s.scalarKind():
		return inner, nil
	case list && whole && agent.Kind(inner) == s.kind:
		out, _, err := s.read(inner, form, true, at)
		return out, err
	case !s.textual() || form < Unknown:
	case form == Strict && !whole:
		return nil, wrongArguments(at, "must be JSON text")
	case form == Strict, !list && whole && bytes.ContainsAny(inner[:1], `{["`):
		return inner, nil
	}
	return value, nil
}

// scalarKind returns "number" or "boolean" for shapes that accept only these, otherwise "". Text for such a shape must
// be JSON text.
func (s *shape) scalarKind() string {
	switch s.kind {
	case "integer", "number":
		return "number"
	case "boolean":
		return "boolean"
	}
	return ""
}

// readObject converts the members of an object to the plain form. Members that the shape does not list stay as they
// are.
func (s *shape) readObject(value json.RawMessage, form Form, at string) (json.RawMessage, error) {
	out, changed := []byte{'{'}, false
	var failed error
	rawjson.Members(value, func(name string, v []byte) {
		read, given := json.RawMessage(v), true
		if p := s.property(name); p != nil && failed == nil {
			read, given, failed = p.of.read(v, form, p.required, at+"/"+strings.NewReplacer("~", "~0", "/",
				"~1").Replace(name))
		}
		if changed = changed || !given || !bytes.Equal(read, v); given {
			out = append(append(append(append(out, agent.Encoded(name)...), ':'), read...), ',')
		}
	})
	if failed != nil || !changed {
		return value, failed
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}'), nil
}

// readArray converts the elements of an array to the plain form.
func (s *shape) readArray(value json.RawMessage, form Form, at string) (json.RawMessage, error) {
	list, changed := elements(value), false
	for i, v := range list {
		one, _, err := s.items.read(v, form, true, at+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(one, v)
		list[i] = one
	}
	if !changed {
		return value, nil
	}
	return agent.Encoded(list), nil
}

// Gemini returns the schema of the arguments in the form that Gemini's function declarations accept, or nil if there
// are none: each value has a type, each object has properties, and anyOf stands alone. A value without a schema is
// passed as JSON text. Arguments reads such arguments in the form Strict.
func (t *Tool) Gemini() json.RawMessage {
	if len(t.shape.properties) > 0 {
		return t.shape.declared().schema()
	}
	return nil
}

// declared returns Gemini's form of a shape that has properties or is not textual.
func (s *shape) declared() *shape {
	out := *s
	out.properties, out.anyOf = nil, nil
	for _, p := range s.properties {
		out.properties = append(out.properties, property{p.name, p.required, p.of.declaredValue()})
	}
	if s.items != nil {
		out.items = s.items.declaredValue()
	}
	var null bool
	for _, one := range s.anyOf {
		if null = null || one.kind == "null"; one.kind != "null" {
			out.anyOf = append(out.anyOf, one.declaredValue())
		}
	}
	if len(out.anyOf) == 0 {
		return &out
	}
	first := *out.anyOf[0]
	first.orNull = null
	if len(out.anyOf) == 1 {
		first.description = sentences(out.description, first.description)
		return &first
	}
	out.anyOf[0] = &first
	return &out
}

// declaredValue returns Gemini's form of the shape of a value.
func (s *shape) declaredValue() *shape {
	if s.textual() {
		return s.text()
	}
	return s.declared()
}
