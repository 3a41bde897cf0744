package catalog

import "encoding/json"

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
