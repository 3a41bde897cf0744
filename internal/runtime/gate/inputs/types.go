package inputs

import (
	"encoding/json"
	"go/constant"
	"go/types"
	"reflect"
	"strings"
)

// resolve puts the type argument in the place of a type parameter of the function that is followed.
func (fr *frame) resolve(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		for f := fr; f != nil; f = f.parent {
			if a := f.typeArgs[p]; a != nil {
				return a
			}
		}
	}
	return t
}

// jsonTypeOf names the JSON type of values that a type assertion to t lets through: decoded JSON has five Go types. It is "" for others.
func jsonTypeOf(t types.Type) string {
	if t == nil {
		return ""
	}
	switch u := types.Unalias(t).(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.String:
			return "string"
		case u.Kind() == types.Bool:
			return "boolean"
		case u.Kind() == types.Float64:
			return "number"
		}
	case *types.Slice:
		if isAny(u.Elem()) {
			return "array"
		}
	case *types.Map:
		if isAny(u.Elem()) && types.Identical(u.Key(), types.Typ[types.String]) {
			return "object"
		}
	}
	return ""
}

func isAny(t types.Type) bool {
	i, ok := types.Unalias(t).(*types.Interface)
	return ok && i.Empty()
}

// maxNesting bounds the schemas of nested types.
const maxNesting = 4

// schemaOf describes what encoding/json reads into a value of the type; nil where that is not known.
func schemaOf(t types.Type, depth int) map[string]any {
	if depth > maxNesting || decodesItself(t) {
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
		return schemaOf(u.Elem(), depth)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			return map[string]any{"type": "string"} // base64
		}
		return listOf(u.Elem(), depth)
	case *types.Array:
		return listOf(u.Elem(), depth)
	case *types.Map:
		out := map[string]any{"type": "object"}
		if values := schemaOf(u.Elem(), depth+1); values != nil {
			out["additionalProperties"] = values
		}
		return out
	case *types.Struct:
		return objectOf(u, depth)
	}
	return nil
}

func listOf(elem types.Type, depth int) map[string]any {
	out := map[string]any{"type": "array"}
	if items := schemaOf(elem, depth+1); items != nil {
		out["items"] = items
	}
	return out
}

func objectOf(s *types.Struct, depth int) map[string]any {
	properties := map[string]any{}
	for i := range s.NumFields() {
		name, ok := fieldName(s, i)
		if s.Field(i).Embedded() {
			return map[string]any{"type": "object"}
		}
		if !ok || len(properties) >= 32 {
			continue
		}
		if of := schemaOf(s.Field(i).Type(), depth+1); of != nil {
			properties[name] = of
		} else {
			properties[name] = map[string]any{}
		}
	}
	out := map[string]any{"type": "object"}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

// decodesItself reports whether the type has its own way to be read from JSON.
func decodesItself(t types.Type) bool {
	return isNumber(t) || hasMethod(t, "UnmarshalJSON", "UnmarshalText")
}

// encodesItself reports whether the type has its own way to be written as JSON.
func encodesItself(t types.Type) bool {
	return isNumber(t) || hasMethod(t, "MarshalJSON", "MarshalText")
}

// isNumber reports whether the type is json.Number, a string that JSON shows as a number.
func isNumber(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "encoding/json" && n.Obj().Name() == "Number"
}

func hasMethod(t types.Type, names ...string) bool {
	for _, name := range names {
		if obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, nil, name); obj != nil {
			return true
		}
	}
	return false
}

// fieldName returns the JSON name of a struct's field, and whether encoding/json uses the field.
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

// encodedConstant is a constant as JSON, nil for zero values and for what JSON has not.
func encodedConstant(v constant.Value) []byte {
	var plain any
	switch v.Kind() {
	case constant.String:
		plain = constant.StringVal(v)
	case constant.Bool:
		plain = constant.BoolVal(v)
	case constant.Int, constant.Float:
		f, _ := constant.Float64Val(v)
		plain = f
	default:
		return nil
	}
	text, err := json.Marshal(plain)
	if err != nil || len(text) > 200 {
		return nil
	}
	return text
}
