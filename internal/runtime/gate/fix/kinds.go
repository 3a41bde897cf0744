package fix

import (
	"go/types"
)

func basic(t types.Type) *types.Basic {
	if t == nil {
		return nil
	}
	b, _ := t.Underlying().(*types.Basic)
	return b
}

func isKind(t types.Type, info types.BasicInfo) bool {
	b := basic(t)
	return b != nil && b.Info()&info != 0
}

func isFloat(t types.Type) bool  { return isKind(t, types.IsFloat) }
func isWhole(t types.Type) bool  { return isKind(t, types.IsInteger) }
func isString(t types.Type) bool { return isKind(t, types.IsString) }

func isBasic(t types.Type, kind types.BasicKind) bool {
	b := basic(t)
	return b != nil && b.Kind() == kind
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

func elemIs(t types.Type, kind types.BasicKind) bool {
	s, ok := t.Underlying().(*types.Slice)
	return ok && isBasic(s.Elem(), kind)
}

// isEmptyInterface reports whether the type is any, or interface{}, and not a name for one.
func isEmptyInterface(t types.Type) bool {
	if t == nil {
		return false
	}
	i, ok := types.Unalias(t).(*types.Interface)
	return ok && i.Empty()
}

func isPlainString(t types.Type) bool { return types.Identical(t, types.Typ[types.String]) }
