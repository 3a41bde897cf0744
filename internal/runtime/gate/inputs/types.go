package inputs

import (
	"go/types"
	"reflect"
	"strings"
)

// maxNesting bounds the depth of schemas, and maxMembers the properties of an object.
const (
	maxNesting = 4
	maxMembers = 32
)

// jsonTypeOf returns a schema of the decoded JSON values that a type assertion to t accepts, or nil for a type that
// decoded JSON never has.
func jsonTypeOf(t types.Type) map[string]any {
	if isNumber(t) {
		return map[string]any{"type": "number"}
	}
	decoded := false
	switch u := types.Unalias(t).(type) {
	case *types.Basic:
		decoded = u.Kind() == types.String || u.Kind() == types.Bool || u.Kind() == types.Float64
	case *types.Slice:
		decoded = isAny(u.Elem())
	case *types.Map:
		decoded = isAny(u.Elem()) && types.Identical(u.Key(), types.Typ[types.String])
	}
	if !decoded {
		return nil
	}
	return schemaOf(t, reads, 0)
}

// isAny reports whether t is an interface without methods.
func isAny(t types.Type) bool {
	i, ok := types.Unalias(t).(*types.Interface)
	return ok && i.Empty()
}

// A direction distinguishes whether encoding/json reads or writes a value.
type direction bool

const (
	reads  direction = false
	writes direction = true
)

// schemaOf returns a schema of the JSON that encoding/json decodes into the type or encodes from it, or nil if that is
// not known.
func schemaOf(t types.Type, d direction, depth int) map[string]any {
	if t == nil || depth > maxNesting || convertsItself(t, d) {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsString != 0:
			return map[string]any{"type": "string"}
		case info&types.IsBoolean != 0:
			return map[string]any{"type": "boolean"}
		case info&types.IsInteger != 0:
			return map[string]any{"type": "integer"}
		case info&types.IsFloat != 0:
			return map[string]any{"type": "number"}
		}
	case *types.Pointer:
		if d == reads {
			return schemaOf(u.Elem(), d, depth)
		}
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			return map[string]any{"type": orNull("string", d)} // base64
		}
		return with(map[string]any{"type": orNull("array", d)}, "items", schemaOf(u.Elem(), d, depth+1))
	case *types.Array:
		return with(map[string]any{"type": "array"}, "items", schemaOf(u.Elem(), d, depth+1))
	case *types.Map:
		out := map[string]any{"type": orNull("object", d)}
		if d == reads {
			return with(out, "additionalProperties", schemaOf(u.Elem(), d, depth+1))
		}
		return out
	case *types.Struct:
		return objectOf(u, d, depth)
	}
	return nil
}

// orNull returns the type of a value that may be nil. encoding/json writes nil as null.
func orNull(name string, d direction) any {
	if d == writes {
		return []string{name, "null"}
	}
	return name
}

// with adds a member to a schema unless it is nil.
func with(schema map[string]any, key string, of map[string]any) map[string]any {
	if of != nil {
		schema[key] = of
	}
	return schema
}

// objectOf returns the schema of a struct. Embedded fields make it an object without known properties.
func objectOf(s *types.Struct, d direction, depth int) map[string]any {
	properties := map[string]any{}
	for i := range s.NumFields() {
		if s.Field(i).Embedded() {
			return map[string]any{"type": "object"}
		}
		name, ok := fieldName(s, i)
		if !ok || len(properties) >= maxMembers {
			continue
		}
		of := schemaOf(s.Field(i).Type(), d, depth+1)
		if of == nil || strings.HasSuffix(reflect.StructTag(s.Tag(i)).Get("json"), ",string") {
			of = map[string]any{}
		}
		properties[name] = of
	}
	return object(properties)
}

// object returns the schema of an object with these properties.
func object(properties map[string]any) map[string]any {
	if len(properties) == 0 {
		return map[string]any{"type": "object"}
	}
	return map[string]any{"type": "object", "properties": properties}
}

// convertsItself reports whether the type has its own JSON or text encoding in that direction.
func convertsItself(t types.Type, d direction) bool {
	verb := "Unmarshal"
	if d == writes {
		verb = "Marshal"
	}
	if _, generic := types.Unalias(t).(*types.TypeParam); generic || isNumber(t) {
		return true
	}
	for _, what := range []string{"JSON", "Text"} {
		if obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, nil, verb+what); obj != nil {
			return true
		}
	}
	return false
}

// isNumber reports whether the type is json.Number, a string that is encoded as a number.
func isNumber(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "encoding/json" && n.Obj().Name() == "Number"
}

// fieldName returns the JSON name of a struct field and whether encoding/json uses the field.
func fieldName(s *types.Struct, i int) (string, bool) {
	tag := reflect.StructTag(s.Tag(i)).Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-" || !s.Field(i).Exported():
		return "", false
	case name != "":
		return name, true
	}
	return s.Field(i).Name(), true
}
