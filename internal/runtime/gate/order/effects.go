package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// effects summarises what a group of expressions does. They are evaluated together, as the operands of one statement are.
type effects struct {
	o     *orderer
	calls bool // an expression calls or receives, and so may change what another one reads
	reads bool // an expression reads what a call may change, or may panic, and the compiler does not order it with calls
	mixed bool // the operands of a part both call and read
}

// mixed reports whether one of the expressions calls and another reads. Then their order matters, and has to be made the compiler's.
func (o *orderer) mixed(list ...ast.Expr) bool {
	f := o.effects(list...)
	return f.mixed || f.calls && f.reads
}

// effects summarises the expressions. Any of them may be nil.
func (o *orderer) effects(list ...ast.Expr) *effects {
	f := &effects{o: o}
	for _, e := range list {
		if e != nil {
			ast.Inspect(e, f.visit)
		}
	}
	return f
}

// operands adds the operands of an operation that the compiler orders with calls. Their own reads happen before that operation.
func (f *effects) operands(list ...ast.Expr) {
	own := f.o.effects(list...)
	f.calls = f.calls || own.calls
	f.mixed = f.mixed || own.mixed || own.calls && own.reads
}

// either adds expressions that are evaluated separately.
func (f *effects) either(list ...ast.Expr) {
	for _, e := range list {
		f.operands(e)
	}
}

func (f *effects) visit(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	if f.o.settled(e) {
		return false
	}
	switch x := e.(type) {
	case *ast.Ident:
		f.reads = f.reads || f.o.survey.shared[f.o.info.Uses[x]]
	case *ast.UnaryExpr:
		if x.Op == token.ARROW {
			f.calls = true
			f.operands(x.X)
			return false
		}
	case *ast.BinaryExpr:
		return f.binary(x)
	case *ast.CallExpr:
		return f.call(x)
	case *ast.SelectorExpr:
		return f.selector(x)
	case *ast.StarExpr:
		f.reads = true
	case *ast.IndexExpr:
		f.reads = f.reads || !f.o.info.Types[x.Index].IsType()
	case *ast.SliceExpr:
		f.operands(x.X, x.Low, x.High, x.Max)
		return false
	case *ast.TypeAssertExpr:
		f.reads = f.reads || assertedLate(f.o.typeOf(x))
		if !assertedLate(f.o.typeOf(x)) {
			f.operands(x.X)
			return false
		}
	case *ast.CompositeLit:
		return f.literal(x)
	}
	return true
}

// literal adds a composite literal. The compiler orders the making of a map with calls, except for its constant entries.
func (f *effects) literal(x *ast.CompositeLit) bool {
	t := f.o.typeOf(x)
	if p, ok := under[*types.Pointer](t); ok {
		t = p.Elem()
	}
	var values []ast.Expr
	for _, e := range x.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			values = append(values, kv.Value)
			if _, ok := under[*types.Struct](t); !ok {
				values = append(values, kv.Key)
			}
			continue
		}
		values = append(values, e)
	}
	if _, ok := under[*types.Map](t); ok {
		f.operands(values...)
		return false
	}
	for _, v := range values {
		ast.Inspect(v, f.visit)
	}
	return false
}

// binary adds a binary operation. One that may panic counts as a read.
func (f *effects) binary(x *ast.BinaryExpr) bool {
	switch t := f.o.typeOf(x.X); x.Op {
	case token.LAND, token.LOR:
		f.either(x.X, x.Y)
		return false
	case token.QUO, token.REM, token.SHL, token.SHR:
		f.reads = f.reads || f.o.info.Types[x.Y].Value == nil
	case token.EQL, token.NEQ:
		f.reads = f.reads || t != nil && (types.IsInterface(t) || aggregate(t))
	}
	return true
}

// selector adds a field or a method value.
func (f *effects) selector(x *ast.SelectorExpr) bool {
	sel := f.o.info.Selections[x]
	if sel == nil {
		return false // a name of another package
	}
	switch sel.Kind() {
	case types.FieldVal:
		f.reads = f.reads || sel.Indirect()
	case types.MethodVal:
		f.reads = f.reads || len(sel.Index()) > 1 || types.IsInterface(sel.Recv()) || copiesTarget(sel)
	}
	ast.Inspect(x.X, f.visit)
	return false
}

// copiesTarget reports whether a method with a value receiver is selected through a pointer, which copies the value.
func copiesTarget(sel *types.Selection) bool {
	_, byPointer := under[*types.Pointer](sel.Recv())
	recv := sel.Obj().(*types.Func).Signature().Recv()
	_, wants := under[*types.Pointer](recv.Type())
	return byPointer && !wants
}

// call adds a call or a conversion, and reports whether its parts remain to be visited.
func (f *effects) call(x *ast.CallExpr) bool {
	o := f.o
	fun := o.info.Types[x.Fun]
	switch {
	case fun.IsType():
		if o.converts(x, isText, isBytes) {
			f.operands(x.Args...)
			return false
		}
		_, fromSlice := under[*types.Slice](o.typeOf(x.Args[0]))
		f.reads = f.reads || fromSlice
		return true
	case fun.IsBuiltin():
		switch o.builtinName(x) {
		case "append", "copy", "clear", "delete", "close", "panic", "recover":
			f.calls = true
		}
		f.operands(x.Args...)
		return false
	}
	f.calls = f.calls || !o.harmless(x)
	s, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr)
	if sel := o.info.Selections[s]; ok && sel != nil && sel.Kind() == types.MethodVal && types.IsInterface(sel.Recv()) && len(sel.Index()) == 1 {
		f.operands(append([]ast.Expr{s.X}, x.Args...)...) // a nil interface panics only when the call is made
		return false
	}
	f.operands(append([]ast.Expr{x.Fun}, x.Args...)...)
	return false
}

// harmless reports whether the call cannot change anything of the program's: it calls another package's function with arguments of basic types.
func (o *orderer) harmless(x *ast.CallExpr) bool {
	s, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr)
	if !ok || o.info.Selections[s] != nil {
		return false
	}
	if _, ok := o.info.Uses[s.Sel].(*types.Func); !ok {
		return false
	}
	for _, a := range x.Args {
		if _, ok := under[*types.Basic](o.typeOf(a)); !ok {
			return false
		}
	}
	return true
}
