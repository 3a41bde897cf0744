package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/api/strict"
)

// Strict returns the schema of the arguments for models that are held to it: it lists all that there is, each property is required, one that a call
// may lack is nullable, and a value without a schema comes as its JSON text. Arguments reads them.
func (t *Tool) Strict() json.RawMessage {
	return t.listed().listed().schema()
}

// listed returns the shape whose properties the strict form lists.
func (t *Tool) listed() *shape {
	if len(t.shape.properties) == 0 && t.takes != nil && t.takes.Open {
		return freeForm // the program reads keywords that nobody knows
	}
	return t.shape
}

// readObject returns the object of arguments in the plain form. Other values stay as they are.
func (t *Tool) readObject(object json.RawMessage, form Form) (json.RawMessage, error) {
	s := t.listed()
	if form == Unknown && !s.lists(object) {
		form = Sparse
	}
	return s.readObject(object, form, "")
}

// lists reports whether the object has all properties, as the strict form has them.
func (s *shape) lists(object json.RawMessage) bool {
	n := 0
	rawjson.Members(object, func(name string, _ []byte) {
		if s.property(name) != nil {
			n++
		}
	})
	return n == len(s.properties)
}

// textual reports whether the value comes as its JSON text in the strict form: nobody could list its members, or say how it is to be read.
func (s *shape) textual() bool {
	if s.kind == "object" {
		return len(s.properties) == 0
	}
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

// strict is the strict form of the shape of a value, which is nullable where it is not required.
func (s *shape) strict(required bool) *shape {
	var out *shape
	if s.textual() {
		out = &shape{kind: "string", description: sentences(s.description, "As JSON text.")}
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

// listed is the strict form of a shape that is not textual, or of all arguments.
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

func sentences(a, b string) string {
	if a != "" && !strings.HasSuffix(a, ".") {
		a += "."
	}
	return strings.TrimSpace(a + " " + b)
}

// A Form is how arguments may have been written.
type Form int

// Forms of arguments. In each a list, an object, a number or a boolean is also read from its JSON text, where the schema takes nothing else.
const (
	Plain  Form = iota // as Parameters describes them
	Sparse             // as Parameters describes them, with null for an optional one that is not given
	// Sparse, or where the object has all arguments Strict: of any value the text of an object, a list or a text is read
	Unknown
	Strict // as Strict describes them
)

// read returns the value as its plain form, and whether it was given.
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

// readText reads a text in the place of a value of the shape: a text, or the JSON text of something else.
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

// scalarKind is the kind of the JSON values of the shape, "" unless they are numbers, or booleans: of these the text can be nothing else.
func (s *shape) scalarKind() string {
	switch s.kind {
	case "integer", "number":
		return "number"
	case "boolean":
		return "boolean"
	}
	return ""
}

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
