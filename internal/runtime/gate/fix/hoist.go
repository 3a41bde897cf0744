package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// singleValue moves a call that also returns an error out of its expression into a statement of its own, and returns
// the error.
func (m *fixer) singleValue(_ types.Error, path []ast.Node, _ []string) bool {
	call, ok := nearest(path, func(c *ast.CallExpr) bool {
		t, ok := m.Info.TypeOf(c).(*types.Tuple)
		return ok && t.Len() == 2 && isError(t.At(1).Type())
	})
	if !ok {
		return false
	}
	if m.foundPattern(call) {
		return true
	}
	st := m.evaluatesFirst(call)
	// One call is moved per round. The new variables need unique names, and a goto must not jump over them.
	if st == nil || st.Pos() == call.Pos() || len(m.edits) > 0 || m.jumps() || m.callsBefore(st, call) {
		return false
	}
	err := m.unused("err", "failure")
	fails := m.failing(call, err)
	if fails == "" {
		return false
	}
	value := m.unused("value", "result", "part")
	return m.fix("the error of "+clip(m.text(call))+" is returned",
		m.before(st, value+", "+err+" := "+m.text(call)+"\nif "+err+" != nil {\n"+fails+"\n}\n"),
		m.replace(call, value))
}

// evaluatesFirst is evaluates, also of a call in what a loop goes over, or in the first condition of an if.
func (m *fixer) evaluatesFirst(call *ast.CallExpr) ast.Stmt {
	var n ast.Node = call
	for p := m.parents[n]; p != nil; n, p = p, m.parents[p] {
		switch s := p.(type) {
		case *ast.FuncLit:
			return nil
		case *ast.BinaryExpr:
			if (s.Op == token.LAND || s.Op == token.LOR) && s.Y == n {
				return nil
			}
		case *ast.RangeStmt:
			if s.X == n && m.inBlock(s) {
				return s
			}
			return nil
		case *ast.IfStmt:
			if s.Cond == n && s.Init == nil && m.inBlock(s) {
				return s
			}
			return nil
		case *ast.DeclStmt:
			if m.inBlock(s) {
				return s
			}
			return nil
		case ast.Stmt:
			return m.evaluates(call)
		}
	}
	return nil
}

// evaluates returns the statement in a block that evaluates an expression exactly once, or nil if it may be evaluated
// more than once or not at all.
func (m *fixer) evaluates(x ast.Expr) ast.Stmt {
	for n := ast.Node(x); n != nil; n = m.parents[n] {
		switch p := m.parents[n].(type) {
		case *ast.FuncLit:
			return nil
		case *ast.BinaryExpr:
			if (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {
				return nil
			}
		case ast.Stmt:
			switch p := p.(type) {
			case *ast.AssignStmt, *ast.ReturnStmt, *ast.ExprStmt:
				if m.inBlock(p) {
					return p
				}
			}
			return nil
		}
	}
	return nil
}

// callsBefore reports whether a statement has other calls before a call, apart from those around it. Moving the call
// would then change their order.
func (m *fixer) callsBefore(st ast.Stmt, call *ast.CallExpr) bool {
	found := false
	whole := ast.Node(st)
	switch s := st.(type) {
	case *ast.RangeStmt:
		whole = s.X
	case *ast.IfStmt:
		whole = s.Cond
	}
	ast.Inspect(whole, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || c == call {
			return c != call || !ok
		}
		around := c.Pos() <= call.Pos() && call.End() <= c.End()
		found = found || !around && c.Pos() < call.Pos() && !m.Info.Types[c.Fun].IsType() && !isName(c.Fun, "len")
		return !found
	})
	return found
}
