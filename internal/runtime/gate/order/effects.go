package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// effects is what expressions do that are evaluated together.
type effects struct {
	o     *orderer
	calls bool // they call, or receive: what others read may change
	reads bool // they read what a call may change, or may fail, outside of what is evaluated in order with calls anyway
	mixed bool // the operands of one of their parts act and read
}

// mixed reports whether, among expressions that are evaluated together, one calls and another reads. Then their order is to be made the
// compiler's.
func (o *orderer) mixed(list ...ast.Expr) bool {
	f := o.effects(list...)
	return f.mixed || f.calls && f.reads
}

// effects looks at expressions, each of which may be nil.
func (o *orderer) effects(list ...ast.Expr) *effects {
	f := &effects{o: o}
	for _, e := range list {
		if e != nil {
			ast.Inspect(e, f.visit)
		}
	}
	return f
}

// operands takes in expressions whose reads are over when what they are the operands of is evaluated, in order with calls.
func (f *effects) operands(list ...ast.Expr) {
	own := f.o.effects(list...)
	f.calls = f.calls || own.calls
	f.mixed = f.mixed || own.mixed || own.calls && own.reads
}

// either takes in expressions of which each is evaluated by itself.
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

// literal looks at a composite literal. A map is made in order with calls, as far as it is not constant.
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

// binary looks at an operation; some may fail, as reads do.
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

// selector looks at a field or a method value.
func (f *effects) selector(x *ast.SelectorExpr) bool {
	sel := f.o.info.Selections[x]
	if sel == nil {
		return false // of a package
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

// copiesTarget reports whether a method of values is selected by a pointer.
func copiesTarget(sel *types.Selection) bool {
	_, byPointer := under[*types.Pointer](sel.Recv())
	recv := sel.Obj().(*types.Func).Signature().Recv()
	_, wants := under[*types.Pointer](recv.Type())
	return byPointer && !wants
}

// call looks at a call or a conversion, and reports whether its parts remain to be looked at.
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
		f.operands(append([]ast.Expr{s.X}, x.Args...)...) // a nil interface fails when it is called
		return false
	}
	f.operands(append([]ast.Expr{x.Fun}, x.Args...)...)
	return false
}

// harmless reports whether a call is of another package's function, and can reach nothing of the program's by its arguments.
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
