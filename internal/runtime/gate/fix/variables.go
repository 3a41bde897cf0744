package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// variable returns what an expression names, if that is a variable.
func (m *fixer) variable(x ast.Expr) *types.Var {
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := m.Info.ObjectOf(id).(*types.Var)
	return v
}

// definition returns the statement that defines a variable, and the expression that it is set to.
func (m *fixer) definition(v *types.Var) (def ast.Node, value ast.Expr) {
	if v == nil {
		return nil, nil
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if id, ok := l.(*ast.Ident); ok && n.Tok == token.DEFINE && m.Info.Defs[id] == v {
					def = n
					if len(n.Rhs) == len(n.Lhs) {
						value = n.Rhs[i]
					} else if i == 0 {
						value = n.Rhs[0]
					}
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if m.Info.Defs[id] == v {
					def = n
					if i < len(n.Values) {
						value = n.Values[i]
					}
				}
			}
		}
		return def == nil
	})
	return def, value
}

// madeWhole converts a number of JSON where an integer is wanted: there it has to be a whole one, and elsewhere it stays as it is.
func (m *fixer) madeWhole(x ast.Expr, to types.Type) bool {
	value := ast.Unparen(x)
	if v := m.variable(x); v != nil {
		_, value = m.definition(v)
	}
	a, ok := value.(*ast.TypeAssertExpr)
	if !ok || a.Type == nil || !isEmptyInterface(m.Info.TypeOf(a.X)) || !isName(a.Type, "float64") || m.reduced(m.variable(x)) {
		return false
	}
	text := m.asJSON(m.text(x), m.origin(a.X)|m.origin(x), to)
	return text != "" && m.useHost(clip(m.text(x))+" has to be a whole number here", m.replace(x, text))
}

// reduced reports whether the program divides a variable to set it: of an integer that would drop the fraction.
func (m *fixer) reduced(v *types.Var) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if ok && v != nil && m.variable(as.Lhs[0]) == v && as.Tok != token.DEFINE {
			_, quotient := ast.Unparen(as.Rhs[0]).(*ast.BinaryExpr)
			found = found || as.Tok == token.QUO_ASSIGN || quotient && strings.Contains(m.text(as.Rhs[0]), "/")
		}
		return !found
	})
	return found
}

func mentions(m *fixer, e ast.Node, v *types.Var) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && m.Info.Uses[id] == v {
			found = true
		}
		return !found
	})
	return found
}

// quotient reports whether a whole number is what an integer division left: in the expression itself, in what its variables are ever set to, or in a function
// of the program that it calls.
func (m *fixer) quotient(x ast.Expr) bool { return m.divided(x, map[*types.Var]bool{}) }

func (m *fixer) divided(x ast.Node, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			tv := m.Info.Types[n]
			found = found || n.Op == token.QUO && tv.Value == nil && !isFloat(tv.Type)
		case *ast.AssignStmt:
			found = found || n.Tok == token.QUO_ASSIGN && !isFloat(m.Info.TypeOf(n.Lhs[0]))
		case *ast.Ident:
			if v := m.variable(n); v != nil && !seen[v] {
				seen[v] = true
				found = found || m.setToQuotient(v, seen)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok {
				if f := m.function(id.Name); f != nil && f.Body != nil && m.enclosing(x) != f {
					found = found || m.divided(f.Body, seen)
				}
			}
		}
		return !found
	})
	return found
}

// setToQuotient reports whether the variable is ever set to what an integer division left.
func (m *fixer) setToQuotient(v *types.Var, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if m.variable(l) == v || m.fieldOf(l) == v {
					found = found || n.Tok == token.QUO_ASSIGN || m.divided(n.Rhs[min(i, len(n.Rhs)-1)], seen)
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				found = found || m.Info.Defs[id] == v && i < len(n.Values) && m.divided(n.Values[i], seen)
			}
		}
		return !found
	})
	return found
}

// fieldOf returns the variable that is an element's, or the field that is selected.
func (m *fixer) fieldOf(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return m.variable(e.X)
	case *ast.SelectorExpr:
		return m.variable(e.Sel)
	}
	return nil
}

// wholes converts numbers of JSON where an error says that an integer is wanted: as an index or a length, for a remainder, in the place of an int.
func (m *fixer) wholes(e types.Error) {
	path, message := m.at(e)
	if len(path) == 0 {
		return
	}
	if x := m.operandAt(e, path); x != nil && isFloat(m.Info.TypeOf(x)) && (strings.Contains(message, "must be integer") || isWhole(m.wanted(x))) {
		m.convert(x, types.Typ[types.Int])
		return
	}
	for _, n := range path {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || b.Op != token.REM && !m.wholeWanted(b) {
			continue
		}
		for _, x := range []ast.Expr{b.X, b.Y} {
			if isFloat(m.Info.TypeOf(x)) {
				m.madeWhole(x, types.Typ[types.Int])
			}
		}
		return
	}
}

// wholeWanted reports whether an expression is a part of one that has to be an integer.
func (m *fixer) wholeWanted(x ast.Expr) bool {
	for {
		switch p := m.parents[x].(type) {
		case *ast.BinaryExpr:
			if p.Op == token.LSS || p.Op == token.GTR || p.Op == token.LEQ || p.Op == token.GEQ || p.Op == token.EQL || p.Op == token.NEQ {
				return false
			}
			x = p
		case *ast.ParenExpr:
			x = p
		case *ast.IndexExpr:
			t := m.Info.TypeOf(p.X)
			_, list := t.(*types.Slice)
			return p.Index == x && (list || isString(t))
		case *ast.SliceExpr:
			return p.X != x
		default:
			return isWhole(m.wanted(x))
		}
	}
}
