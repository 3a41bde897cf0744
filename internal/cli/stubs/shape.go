package stubs

import (
	"encoding/json"
	"slices"
)

type kind int

const (
	kindAny kind = iota
	kindText
	kindNumber
	kindInteger
	kindBoolean
	kindNull
	kindList
	kindObject
	kindFile // a reference to a file
	kindUnion
)

// A shape describes the values of a JSON Schema as far as the types of all three languages can express it.
type shape struct {
	kind  kind
	item  *shape   // item type of a list
	union []shape  // alternatives, one of each kind
	texts []string // allowed strings, at most 32; nil means any
}

const deepest = 4 // maximum nesting of lists in lists

var kinds = map[string]kind{"string": kindText, "number": kindNumber, "integer": kindInteger, "boolean": kindBoolean,
	"null": kindNull, "array": kindList, "object": kindObject, "file": kindFile}

// shapeOf returns the shape of a schema, which takes precedence over the plain type. An unsupported schema gives the
// shape of any value.
func shapeOf(plain string, schema json.RawMessage) shape {
	if len(schema) == 0 {
		schema, _ = json.Marshal(map[string]string{"type": plain}) // strings can always be encoded
	}
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return shape{}
	}
	return read(v, 0)
}

// read returns the shape of a decoded schema.
func read(v any, depth int) shape {
	m, ok := v.(map[string]any)
	if !ok || depth > deepest {
		return shape{}
	}
	types, typed := m["type"]
	if !typed {
		types = typesOf(m["enum"])
	}
	switch t := types.(type) {
	case string:
		return one(t, m, depth)
	case []any:
		var u []shape
		for _, name := range t {
			text, _ := name.(string)
			s := one(text, m, depth)
			if s.kind == kindAny {
				return shape{}
			}
			if !slices.ContainsFunc(u, func(o shape) bool { return o.kind == s.kind }) {
				u = append(u, s)
			}
		}
		if len(u) == 1 {
			return u[0]
		}
		if len(u) > 1 {
			return shape{kind: kindUnion, union: u}
		}
	}
	return shape{}
}

// typesOf returns the names of the types of allowed values, for a schema without a type.
func typesOf(enum any) []any {
	values, _ := enum.([]any)
	var types []any
	for _, v := range values {
		name := ""
		switch v.(type) {
		case string:
			name = "string"
		case float64:
			name = "number"
		case bool:
			name = "boolean"
		case nil:
			name = "null"
		}
		types = append(types, name)
	}
	return types
}

// one returns the shape of the schema's values of one type.
func one(name string, m map[string]any, depth int) shape {
	s := shape{kind: kinds[name]}
	switch s.kind {
	case kindList:
		item := read(m["items"], depth+1)
		s.item = &item
	case kindText:
		values, _ := m["enum"].([]any)
		for _, v := range values {
			if len(values) > 32 {
				return shape{kind: kindText}
			}
			if text, ok := v.(string); ok { // a union has the other values
				s.texts = append(s.texts, text)
			}
		}
	case kindObject:
		if required, _ := m["required"].([]any); len(required) == 1 && required[0] == "$file" {
			s.kind = kindFile
		}
	}
	return s
}
