package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// Where the compiler initialises a package variable by a literal, it sets one part after the other, and where it assigns one, it calls functions first. A literal that calls functions of the
// program and reads variables could show the difference: its parts become variables, one after the other, and the literal is made of these.

// inTurn returns a value of a package variable, with what goes before it.
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

// literalIn returns the literal that a value is, or the address of one is; nil for other values.
func literalIn(value ast.Expr) *ast.CompositeLit {
	value = ast.Unparen(value)
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.AND {
		value = ast.Unparen(u.X)
	}
	lit, _ := value.(*ast.CompositeLit)
	return lit
}

// partsInTurn puts variables in the place of a literal's parts. The compiler makes a map as a whole.
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

// before has a variable of the text take a value, where it matters when the value is computed, and returns what stands for it.
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

// withType returns a value that has its type wherever it stands: what is untyped and no constant, as comparisons and shifts are, takes it from its place.
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

// pointed returns what a pointer's type points to, and other types as they are.
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

// callsProgram reports whether a call may run code of the program: all but conversions, built-in functions and functions of other packages.
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
