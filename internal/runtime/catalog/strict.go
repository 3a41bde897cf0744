package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Strict returns the schema of the arguments for models that are held to it: it lists all that there is, each property is required, one that a call
// may lack is nullable, and a value of which no schema says what it is comes as its JSON text. Arguments reads them.
func (t *Tool) Strict() json.RawMessage {
	s := t.shape
	if len(s.properties) == 0 && t.takes != nil && t.takes.Open {
		s = freeForm // the program reads keywords that nobody knows
	}
	return s.listed().schema()
}

// textual reports whether the value comes as its JSON text in the strict form: nobody could list its members, or tell how it is to be read.
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

// Forms of arguments. In each a list or an object is also read from its JSON text, where the schema takes no text.
const (
	Plain   Form = iota // as Parameters describes them
	Unknown             // by Parameters or by Strict: null is not given where the argument is optional; where any value may stand, the text of an object, a list or a text is read
	Strict              // as Strict describes them
)

// read returns the value as its plain form, and whether it was given.
func (s *shape) read(value json.RawMessage, form Form, required bool, at string) (out json.RawMessage, given bool, err error) {
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
	whole := validJSON(inner)
	list := s.kind == "object" || s.kind == "array"
	switch {
	case list && whole && agent.Kind(inner) == s.kind:
		out, _, err := s.read(inner, form, true, at)
		return out, err
	case !s.textual() || form == Plain:
	case form == Strict && !whole:
		return nil, wrongArguments(at, "must be JSON text")
	case form == Strict, !list && whole && bytes.ContainsAny(inner[:1], `{["`):
		return inner, nil
	}
	return value, nil
}

func (s *shape) readObject(value json.RawMessage, form Form, at string) (json.RawMessage, error) {
	var b bytes.Buffer
	var failed error
	rawjson.Members(value, func(name string, v []byte) {
		given := true
		if p := s.property(name); p != nil && failed == nil {
			v, given, failed = readProperty(p, v, form, at)
		}
		if given {
			b.WriteByte(',')
			b.Write(agent.Encoded(name))
			b.WriteByte(':')
			b.Write(v)
		}
	})
	if failed != nil {
		return nil, failed
	}
	return append(append([]byte{'{'}, bytes.TrimPrefix(b.Bytes(), []byte{','})...), '}'), nil
}

func readProperty(p *property, v json.RawMessage, form Form, at string) (json.RawMessage, bool, error) {
	return p.of.read(v, form, p.required, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(p.name))
}

func (s *shape) readArray(value json.RawMessage, form Form, at string) (json.RawMessage, error) {
	list := elements(value)
	for i, v := range list {
		one, _, err := s.items.read(v, form, true, at)
		if err != nil {
			return nil, err
		}
		list[i] = one
	}
	return agent.Encoded(list), nil
}
