package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// variable returns the variable that an expression names, or nil.
func (m *fixer) variable(x ast.Expr) *types.Var {
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := m.Info.ObjectOf(id).(*types.Var)
	return v
}

// callee returns the package function that is called, as in strings.Split, whatever names the program uses, or "" for
// any other call.
func (m *fixer) callee(c *ast.CallExpr) string {
	s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := m.Info.Uses[s.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return ""
	}
	return f.Pkg().Name() + "." + f.Name()
}

// usesOf returns the places that refer to a variable, without its definition.
func (m *fixer) usesOf(v types.Object) []*ast.Ident {
	if m.used == nil {
		m.used = map[types.Object][]*ast.Ident{}
		for id, obj := range m.Info.Uses {
			m.used[obj] = append(m.used[obj], id)
		}
	}
	return m.used[v]
}

// jumps reports whether the program has a goto, which must not jump over a variable declaration.
func (m *fixer) jumps() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		b, ok := n.(*ast.BranchStmt)
		found = found || ok && b.Tok == token.GOTO
		return !found
	})
	return found
}

// definition returns the statement that defines a variable and the expression that it sets it to. value is nil if there
// is none.
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

// mentions reports whether an expression uses the variable.
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

// quotient reports whether an integer may be the result of an integer division: in the expression itself, in what its
// variables are set to, or in one of the program's functions that it calls.
func (m *fixer) quotient(x ast.Expr) bool { return m.divided(x, map[*types.Var]bool{}) }

// divided is quotient with the variables visited so far.
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

// setToQuotient reports whether the variable is ever set to the result of an integer division.
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

// fieldOf returns the variable that an index expression indexes, or the field that a selector selects.
func (m *fixer) fieldOf(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return m.variable(e.X)
	case *ast.SelectorExpr:
		return m.variable(e.Sel)
	}
	return nil
}
