package order

import (
	"go/ast"
	"go/token"
	"go/types"
	"runtime"
)

// This file has the type-dependent part of the compiler's order. Its functions accept only original expressions of the program: moved ones have no type
// in info yet. The layout of types that depend on a type parameter is unknown.

var sizes = types.SizesFor("gc", runtime.GOARCH)

// under returns the underlying type of t if it is a T.
func under[T types.Type](t types.Type) (T, bool) {
	if t == nil {
		var none T
		return none, false
	}
	u, ok := t.Underlying().(T)
	return u, ok
}

func (o *orderer) typeOf(e ast.Expr) types.Type {
	if e == nil {
		return nil
	}
	return o.info.TypeOf(e)
}

func (o *orderer) typesOf(list []ast.Expr) (out []types.Type) {
	for _, e := range list {
		out = append(out, o.typeOf(e))
	}
	return out
}

// settled reports whether there is nothing to evaluate: the expression is a constant, nil, a type or a function literal.
func (o *orderer) settled(e ast.Expr) bool {
	if _, ok := e.(*ast.FuncLit); ok {
		return true
	}
	tv := o.info.Types[e]
	return tv.Value != nil || tv.IsNil() || tv.IsType()
}

func (o *orderer) element(e ast.Expr) types.Type {
	if c, ok := under[*types.Chan](o.typeOf(e)); ok {
		return c.Elem()
	}
	return nil
}

// parameter returns the type of the parameter that receives argument i of a call; nil if it is unknown.
func parameter(sig *types.Signature, i int, x *ast.CallExpr) types.Type {
	if sig == nil || sig.Params().Len() == 0 {
		return nil
	}
	last := sig.Params().Len() - 1
	if sig.Variadic() && i >= last && !x.Ellipsis.IsValid() {
		if s, ok := under[*types.Slice](sig.Params().At(last).Type()); ok {
			return s.Elem()
		}
		return nil
	}
	return sig.Params().At(min(i, last)).Type()
}

// builtinName returns the name of the built-in function that is called.
func (o *orderer) builtinName(x *ast.CallExpr) string {
	if id, ok := ast.Unparen(x.Fun).(*ast.Ident); ok {
		if b, ok := o.info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// converts reports whether a call is a conversion, of a value that is not constant, from one kind of type to another.
func (o *orderer) converts(x *ast.CallExpr, from, to func(types.Type) bool) bool {
	if len(x.Args) != 1 || !o.info.Types[x.Fun].IsType() || o.info.Types[x.Args[0]].Value != nil {
		return false
	}
	return from(o.typeOf(x.Args[0])) && to(o.typeOf(x))
}

func isText(t types.Type) bool {
	b, ok := under[*types.Basic](t)
	return ok && b.Info()&types.IsString != 0
}

func isBytes(t types.Type) bool {
	_, ok := under[*types.Slice](t)
	return ok
}

func isRunes(t types.Type) bool {
	s, ok := under[*types.Slice](t)
	if !ok {
		return false
	}
	elem, ok := under[*types.Basic](s.Elem())
	return ok && elem.Kind() == types.Int32
}

func array(t types.Type) bool {
	if p, ok := under[*types.Pointer](t); ok {
		t = p.Elem()
	}
	_, ok := under[*types.Array](t)
	return ok
}

// aggregate reports whether a type is a struct or an array. The compiler compares these by address.
func aggregate(t types.Type) bool {
	_, isStruct := under[*types.Struct](t)
	_, isArray := under[*types.Array](t)
	return isStruct || isArray
}

func comparison(op token.Token) bool {
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	}
	return false
}

// addressable reports whether an expression has an address. New variables have one.
func (o *orderer) addressable(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return o.addressable(x.X)
	case *ast.Ident, *ast.StarExpr:
		return true
	case *ast.SelectorExpr:
		sel := o.info.Selections[x]
		return sel == nil || sel.Kind() == types.FieldVal && (sel.Indirect() || o.addressable(x.X))
	case *ast.IndexExpr:
		switch t := o.typeOf(x.X); {
		case t == nil:
			return true
		case isText(t):
			return false
		default:
			if _, isArray := under[*types.Array](t); isArray {
				return o.addressable(x.X)
			}
			_, isMap := under[*types.Map](t)
			return !isMap
		}
	}
	return false
}

// assertedLate reports whether the compiler evaluates an assertion to the type after the calls of its statement: interfaces hold values of the type
// directly, or the type depends on a type parameter.
func assertedLate(t types.Type) bool {
	return t == nil || direct(t) || open(t)
}

// direct reports whether an interface holds values of a type directly.
func direct(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Chan, *types.Map, *types.Signature:
		return true
	case *types.Struct:
		return u.NumFields() == 1 && direct(u.Field(0).Type())
	case *types.Array:
		return u.Len() == 1 && direct(u.Elem())
	}
	return false
}

// byAddress reports whether a value of the type is converted to an interface by its address. Only words without pointers, strings and slices are not.
func byAddress(t types.Type) bool {
	if open(t) {
		return false
	}
	size, align := sizes.Sizeof(t), sizes.Alignof(t)
	switch {
	case size == 2 && align == 2:
		return false
	case (size == 4 || size == 8) && align == size && !pointers(t):
		return false
	}
	sole := component(t)
	return !isText(sole) && !isBytes(sole)
}

// component returns the only field or element of a struct or array type that has exactly one, recursively; otherwise the type itself.
func component(t types.Type) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		if u.NumFields() == 1 {
			return component(u.Field(0).Type())
		}
	case *types.Array:
		if u.Len() == 1 {
			return component(u.Elem())
		}
	}
	return t
}
