package fix

import (
	"go/types"
)

// basic returns the underlying basic type of t, or nil.
func basic(t types.Type) *types.Basic {
	if t == nil {
		return nil
	}
	b, _ := t.Underlying().(*types.Basic)
	return b
}

// isKind reports whether t is a basic type with one of these properties.
func isKind(t types.Type, info types.BasicInfo) bool {
	b := basic(t)
	return b != nil && b.Info()&info != 0
}

func isFloat(t types.Type) bool  { return isKind(t, types.IsFloat) }
func isWhole(t types.Type) bool  { return isKind(t, types.IsInteger) }
func isString(t types.Type) bool { return isKind(t, types.IsString) }

// isBasic reports whether the underlying type of t is this basic type.
func isBasic(t types.Type, kind types.BasicKind) bool {
	b := basic(t)
	return b != nil && b.Kind() == kind
}

// isError reports whether t is the type error.
func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// isDigits reports whether the type is json.Number. Decoded JSON has it only for whole numbers beyond 2^53.
func isDigits(t types.Type) bool { return types.TypeString(t, nil) == "encoding/json.Number" }

// elemIs reports whether t is a slice of this basic type.
func elemIs(t types.Type, kind types.BasicKind) bool {
	s, ok := t.Underlying().(*types.Slice)
	return ok && isBasic(s.Elem(), kind)
}

// isRune reports whether the type is spelled rune. An int32 may be any number.
func isRune(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Kind() == types.Int32 && b.Name() == "rune"
}

// areRunes reports whether the type is a list of runes.
func areRunes(t types.Type) bool {
	if t == nil {
		return false
	}
	s, ok := t.Underlying().(*types.Slice)
	return ok && isRune(s.Elem())
}

// isEmptyInterface reports whether the type is any or interface{}, and not a named type.
func isEmptyInterface(t types.Type) bool {
	if t == nil {
		return false
	}
	i, ok := types.Unalias(t).(*types.Interface)
	return ok && i.Empty()
}

// hasWhole reports whether the type is an integer or contains integers.
func hasWhole(t types.Type) bool {
	if e, ok := t.(interface{ Elem() types.Type }); ok {
		return hasWhole(e.Elem())
	}
	return isWhole(t)
}

// isPlainString reports whether t is string itself, and not a named type.
func isPlainString(t types.Type) bool { return types.Identical(t, types.Typ[types.String]) }

// jsonKind returns the kind of JSON that can be converted to the type, or "" if decoded JSON has the type anyway or
// cannot be converted to it.
func jsonKind(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		if t.Info()&types.IsInteger != 0 {
			return "number"
		}
	case *types.Slice:
		if decodedAs(t) == "" && !isBasic(t.Elem(), types.Uint8) &&
			(decodedAs(t.Elem()) != "" || jsonKind(t.Elem()) != "") {
			return "array"
		}
	case *types.Map:
		if decodedAs(t) == "" && isPlainString(t.Key()) && (decodedAs(t.Elem()) != "" || jsonKind(t.Elem()) != "") {
			return "object"
		}
	}
	return ""
}

// kindWords names kinds of JSON in notes.
var kindWords = map[string]string{"number": "a number", "array": "a list", "object": "an object"}

// decodedAs returns the kind of JSON that is decoded to the type, or "".
func decodedAs(t types.Type) string {
	if t == nil {
		return ""
	}
	switch u := types.Unalias(t).(type) {
	case *types.Basic:
		switch u.Kind() {
		case types.Float64:
			return "number"
		case types.String:
			return "string"
		case types.Bool:
			return "boolean"
		}
	case *types.Slice:
		if isEmptyInterface(u.Elem()) {
			return "array"
		}
	case *types.Map:
		if isEmptyInterface(u.Elem()) && isPlainString(u.Key()) {
			return "object"
		}
	}
	return ""
}
