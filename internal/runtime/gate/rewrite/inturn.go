package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// A compiler that initialises a package variable with a literal sets one element after the other. A compiler that
// assigns a literal calls the functions in it first. A literal that calls functions of the program and reads variables
// could show the difference. Its elements therefore become variables, one after the other, and the literal is built
// from these.

// inTurn returns the value of a package variable and the statements that go before it.
func (w *writer) inTurn(value ast.Expr) (ast.Expr, []ast.Stmt) {
	lit := literalIn(value)
	if lit == nil || overMap(w.info.TypeOf(lit)) {
		return value, nil
	}
	if calls, reads := w.mixture(lit); !calls || !reads {
		return value, nil
	}
	var before []ast.Stmt
	w.partsInTurn(lit, &before)
	return value, before
}

// literalIn returns the literal that a value is or is the address of, or nil for other values.
func literalIn(value ast.Expr) *ast.CompositeLit {
	value = ast.Unparen(value)
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.AND {
		value = ast.Unparen(u.X)
	}
	lit, _ := value.(*ast.CompositeLit)
	return lit
}

// partsInTurn replaces the elements of a literal by variables. It leaves maps alone, because the compiler builds a map
// as a whole.
func (w *writer) partsInTurn(lit *ast.CompositeLit, before *[]ast.Stmt) {
	for i, part := range lit.Elts {
		at := &lit.Elts[i]
		if pair, ok := part.(*ast.KeyValueExpr); ok {
			at = &pair.Value
		}
		if inner := literalIn(*at); inner != nil && !overMap(pointed(w.info.TypeOf(inner))) {
			w.partsInTurn(inner, before)
			continue
		}
		*at = w.before(*at, before)
	}
}

// before adds a statement that assigns a value to a new variable, and returns the variable. If it does not matter when
// the value is computed, it returns the value itself.
func (w *writer) before(value ast.Expr, statements *[]ast.Stmt) ast.Expr {
	if v := w.info.Types[value]; v.Value != nil || v.IsNil() || literalIn(value) != nil &&
		literalIn(value).Type == nil {
		return value
	}
	if _, body := ast.Unparen(value).(*ast.FuncLit); body {
		return value
	}
	w.made++
	name := w.name("Part") + strconv.Itoa(w.made)
	ident := func() *ast.Ident { return &ast.Ident{NamePos: value.Pos(), Name: name} }
	*statements = append(*statements, &ast.AssignStmt{Lhs: []ast.Expr{ident()}, TokPos: value.Pos(), Tok: token.DEFINE,
		Rhs: []ast.Expr{w.withType(value)}})
	return ident()
}

// withType returns the value with an explicit type. An untyped value that is not constant, such as a shift, would
// otherwise take its type from its context.
func (w *writer) withType(value ast.Expr) ast.Expr {
	switch ast.Unparen(value).(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		t := w.info.TypeOf(value)
		if _, basic := t.Underlying().(*types.Basic); basic && t.Underlying() != types.Typ[types.UntypedBool] {
			return &ast.CallExpr{Fun: &ast.ParenExpr{Lparen: value.Pos(),
				X: &ast.Ident{NamePos: value.Pos(), Name: w.typeText(t)}, Rparen: value.Pos()}, Lparen: value.Pos(),
				Args: []ast.Expr{value}, Rparen: value.End()}
		}
	}
	return value
}

// pointed returns the element type of a pointer type, or any other type itself.
func pointed(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// mixture reports whether a literal calls functions of the program, and whether it reads variables.
func (w *writer) mixture(lit *ast.CompositeLit) (calls, reads bool) {
	ast.Inspect(lit, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			calls = calls || w.callsProgram(n)
		case *ast.Ident:
			v, ok := w.info.Uses[n].(*types.Var)
			reads = reads || ok && !v.IsField() && v.Pkg() == w.pkg
		}
		return true
	})
	return calls, reads
}

// callsProgram reports whether a call may run code of the program: any call except conversions, built-in functions and
// functions of other packages.
func (w *writer) callsProgram(call *ast.CallExpr) bool {
	fun := ast.Unparen(call.Fun)
	if w.info.Types[fun].IsType() || w.info.Types[fun].IsBuiltin() {
		return false
	}
	if s, ok := fun.(*ast.SelectorExpr); ok {
		fun = s.Sel
	}
	id, ok := fun.(*ast.Ident)
	if !ok {
		return true
	}
	if strings.HasPrefix(id.Name, w.support("")) {
		return false
	}
	f, ok := w.info.Uses[id].(*types.Func)
	return !ok || f.Pkg() == w.pkg
}
