package fix

import (
	"go/ast"
	"slices"
)

// jsonTexts returns the value instead of its JSON text where a list or an object is declared.
func (m *fixer) jsonTexts() {
	run := m.function("Run")
	if run == nil || m.terms.Returns != "array" && m.terms.Returns != "object" {
		return
	}
	ast.Inspect(run.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 2 && !m.checker.Spent() {
			if value := m.marshalled(r); value != nil {
				m.fix("the value is returned, not its JSON", m.replace(r.Results[0], m.text(value)))
			}
		}
		_, lit := n.(*ast.FuncLit)
		return !lit
	})
}

// marshalled returns the value whose JSON a statement returns as string(b), if the JSON was created just before, or nil
// otherwise.
func (m *fixer) marshalled(r *ast.ReturnStmt) ast.Expr {
	c, ok := r.Results[0].(*ast.CallExpr)
	if !ok || len(c.Args) != 1 || !isName(c.Fun, "string") {
		return nil
	}
	v := m.variable(c.Args[0])
	def, value := m.definition(v)
	write, ok := value.(*ast.CallExpr)
	st, isStmt := def.(ast.Stmt)
	if !ok || !isStmt || len(write.Args) == 0 || m.callee(write) != "json.Marshal" &&
		m.callee(write) != "json.MarshalIndent" || m.countText(v.Name()) > 1 {
		return nil
	}
	list := m.siblings(r)
	from := slices.Index(list, st)
	if from < 0 {
		return nil
	}
	// Between the encoding and the return there may only be checks that return an error.
	for _, between := range list[from+1 : slices.Index(list, ast.Stmt(r))] {
		if s, ok := between.(*ast.IfStmt); !ok || s.Init != nil || s.Else != nil || !m.isPlain(s.Cond) ||
			!m.fails(s.Body) && !m.passes(s.Body) {
			return nil
		}
	}
	if m.variable(write.Args[0]) == nil || isString(m.Info.TypeOf(write.Args[0])) || m.defers() {
		return nil // the value would be computed twice, or may have changed
	}
	return write.Args[0]
}

// defers reports whether the program has a defer statement.
func (m *fixer) defers() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		_, isDefer := n.(*ast.DeferStmt)
		found = found || isDefer
		return !found
	})
	return found
}

// passes reports whether a block only returns an error that it was given.
func (m *fixer) passes(b *ast.BlockStmt) bool {
	if len(b.List) != 1 {
		return false
	}
	r, ok := b.List[0].(*ast.ReturnStmt)
	return ok && len(r.Results) == 2 && isName(r.Results[0], "nil") && isError(m.Info.TypeOf(r.Results[1]))
}
