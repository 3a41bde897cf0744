package residue

import (
	"go/ast"
	"go/token"
	"go/types"
)

// flow examines an expression whose value is or leads to a table. As long as such a value keeps its type, the other
// checks see everything that can be done with it. Converted to an interface, it could be changed by a library through
// reflection.
func (f *finder) flow(n ast.Node) {
	switch n := n.(type) {
	case *ast.Ident:
		f.instance(n, &f.tables, pure)
	case *ast.SelectorExpr:
		if v, ok := f.info.Uses[n.Sel].(*types.Var); ok && v.Pkg() != f.pkg && f.foreign(v) {
			return
		}
	case *ast.IndexExpr:
		f.element(n.X)
	case *ast.SliceExpr:
		f.element(n.X)
	}
	e, ok := n.(ast.Expr)
	if !ok || f.found {
		return
	}
	if tv := f.info.Types[e]; tv.IsValue() && f.tables.in(tv.Type) && !f.fresh(e) {
		_, through := e.(*ast.StarExpr)
		f.found = through && f.isTable(tv.Type) || !f.keepsType(e, tv.Type)
	}
}

// foreign examines a field or variable of another package, and reports whether read has judged it already.
func (f *finder) foreign(v *types.Var) bool {
	if !v.IsField() {
		_, isPointer := v.Type().Underlying().(*types.Pointer)
		return !isPointer
	}
	if v.Pkg().Path() == "encoding/xml" && f.decoders && (v.Name() == "Entity" || v.Name() == "AutoClose") {
		parent, child := f.around()
		to, ok := parent.(*ast.AssignStmt)
		f.found = f.found || !ok || to.Tok != token.ASSIGN || indexOf(to.Lhs, child) < 0
	}
	return false
}

// isTable reports whether t is one of the tables.
func (f *finder) isTable(t types.Type) bool { return f.tables.names.has(nameOf(t)) }

// element examines the operand of an index or slice expression.
func (f *finder) element(x ast.Expr) {
	t := types.Unalias(f.info.TypeOf(x))
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	f.found = f.found || f.isTable(t)
}

// fresh reports whether an expression is a literal of a table, which belongs to the program.
func (f *finder) fresh(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	t := f.info.TypeOf(lit)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return f.isTable(t)
}

// instances examines the type arguments of all generic functions and types.
func (f *finder) instances(m *mentions, but names) {
	for id := range f.info.Instances {
		f.instance(id, m, but)
	}
}

// instance examines the type arguments of one instance. It skips the packages in but.
func (f *finder) instance(id *ast.Ident, m *mentions, but names) {
	inst, ok := f.info.Instances[id]
	if o := f.info.Uses[id]; !ok || o != nil && o.Pkg() != nil && but.has(o.Pkg().Path()) {
		return
	}
	for t := range inst.TypeArgs.Types() {
		f.found = f.found || m.in(t)
	}
}

// keepsType reports whether the current node, an expression of type t, is used only where its type stays t.
func (f *finder) keepsType(e ast.Expr, t types.Type) bool {
	parent, child := f.around()
	switch p := parent.(type) {
	case *ast.SelectorExpr, *ast.StarExpr, *ast.SliceExpr, *ast.UnaryExpr, *ast.BinaryExpr, *ast.ExprStmt,
		*ast.DeferStmt, *ast.SwitchStmt, *ast.CaseClause:
		return true
	case *ast.IndexExpr:
		m, isMap := f.info.TypeOf(p.X).Underlying().(*types.Map)
		return p.X == child || isMap && types.Identical(m.Key(), t)
	case *ast.RangeStmt:
		return p.Tok != token.ASSIGN
	case *ast.CallExpr:
		return f.passes(p, child, t)
	case *ast.AssignStmt:
		return f.assigns(p, child, t)
	case *ast.ValueSpec:
		places := make([]types.Type, len(p.Names))
		for i, name := range p.Names {
			places[i] = f.placeType(name)
		}
		return fits(places, indexOf(p.Values, child), len(p.Values), t)
	case *ast.KeyValueExpr:
		return f.joins(f.literal(), p, child, t)
	case *ast.CompositeLit:
		return f.joins(p, nil, child, t)
	case *ast.ReturnStmt:
		var results []types.Type
		for v := range f.function().Results().Variables() {
			results = append(results, v.Type())
		}
		return fits(results, indexOf(p.Results, child), len(p.Results), t)
	case *ast.SendStmt:
		ch, ok := f.info.TypeOf(p.Chan).Underlying().(*types.Chan)
		return p.Chan == child || ok && types.Identical(ch.Elem(), t)
	}
	return false
}

// literal returns the innermost composite literal around the current node. There must be one.
func (f *finder) literal() *ast.CompositeLit {
	for i := len(f.path) - 2; ; i-- {
		if lit, ok := f.path[i].(*ast.CompositeLit); ok {
			return lit
		}
	}
}

// indexOf returns the index of a node in a list of expressions, or -1.
func indexOf(list []ast.Expr, child ast.Node) int {
	for i, e := range list {
		if e == child {
			return i
		}
	}
	return -1
}

// fits reports whether the i-th of n values, of type t, has the type of its place. One value may be a tuple for several
// places. A nil place accepts any type.
func fits(places []types.Type, i, n int, t types.Type) bool {
	values := []types.Type{t}
	if tuple, ok := t.(*types.Tuple); ok {
		values = values[:0]
		for v := range tuple.Variables() {
			values = append(values, v.Type())
		}
	}
	if i < 0 || n != len(places) && (n != 1 || len(values) != len(places)) {
		return false
	}
	for j, v := range values {
		if p := places[i+j]; p != nil && !types.Identical(p, v) {
			return false
		}
	}
	return true
}

// placeType returns the type of an assignment's operand, or nil for the blank identifier.
func (f *finder) placeType(e ast.Expr) types.Type {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		if id.Name == "_" {
			return nil
		}
		if o := f.info.ObjectOf(id); o != nil {
			return o.Type()
		}
	}
	return f.info.TypeOf(e)
}

// assigns reports whether an assignment gives the value to a place of the same type.
func (f *finder) assigns(n *ast.AssignStmt, child ast.Node, t types.Type) bool {
	i := indexOf(n.Rhs, child)
	if i < 0 {
		return true // assigned to, not read
	}
	places := make([]types.Type, len(n.Lhs))
	for j, e := range n.Lhs {
		places[j] = f.placeType(e)
	}
	return fits(places, i, len(n.Rhs), t)
}

// joins reports whether an element of a literal has the element type of that literal.
func (f *finder) joins(lit *ast.CompositeLit, kv *ast.KeyValueExpr, child ast.Node, t types.Type) bool {
	of := f.info.TypeOf(lit).Underlying()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem().Underlying()
	}
	switch of := of.(type) {
	case *types.Slice:
		return types.Identical(of.Elem(), t)
	case *types.Array:
		return types.Identical(of.Elem(), t)
	case *types.Map:
		return kv != nil && (kv.Value == child && types.Identical(of.Elem(), t) || kv.Key == child &&
			types.Identical(of.Key(), t))
	case *types.Struct:
		if kv == nil {
			i := indexOf(lit.Elts, child)
			return i >= 0 && types.Identical(of.Field(i).Type(), t)
		}
		name, ok := kv.Key.(*ast.Ident)
		return ok && kv.Value == child && types.Identical(f.info.Uses[name].Type(), t)
	}
	return false
}

// passes reports whether a call passes the value on without changing its type.
func (f *finder) passes(call *ast.CallExpr, child ast.Node, t types.Type) bool {
	fun := f.info.Types[call.Fun]
	i := indexOf(call.Args, child)
	switch {
	case i < 0:
		return true // the value is what is called
	case fun.IsType():
		return types.Identical(fun.Type, t)
	case fun.IsBuiltin():
		return f.builtin(f.callee(call).Name(), call, i, t)
	}
	sig, ok := fun.Type.Underlying().(*types.Signature)
	if !ok {
		return false
	}
	var params []types.Type
	for v := range sig.Params().Variables() {
		params = append(params, v.Type())
	}
	if last := len(params) - 1; sig.Variadic() && call.Ellipsis == token.NoPos {
		elem := params[last].(*types.Slice).Elem()
		params = params[:last]
		for len(params) < len(call.Args) {
			params = append(params, elem)
		}
	}
	return fits(params, i, len(call.Args), t)
}

// builtin reports whether a built-in function leaves its argument i as it is, or keeps it with its type.
func (f *finder) builtin(name string, call *ast.CallExpr, i int, t types.Type) bool {
	switch name {
	case "len", "cap", "clear", "copy", "delete":
		return true
	case "append":
		list, ok := f.info.TypeOf(call.Args[0]).Underlying().(*types.Slice)
		return i == 0 || call.Ellipsis != token.NoPos || ok && types.Identical(list.Elem(), t)
	}
	return false
}

// function returns the signature of the innermost function around the current node, or an empty one at package level.
func (f *finder) function() *types.Signature {
	for i := len(f.path) - 1; i >= 0; i-- {
		switch n := f.path[i].(type) {
		case *ast.FuncLit:
			return f.info.TypeOf(n).(*types.Signature)
		case *ast.FuncDecl:
			return f.info.Defs[n.Name].Type().(*types.Signature)
		}
	}
	return types.NewSignatureType(nil, nil, nil, nil, nil, false)
}
