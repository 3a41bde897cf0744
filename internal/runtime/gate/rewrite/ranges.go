package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
)

// mapRange returns a loop that visits a map's keys in sorted order, or nil for a range over anything else.
func (w *writer) mapRange(s *ast.RangeStmt) ast.Stmt {
	if !overMap(w.info.TypeOf(s.X)) {
		return nil
	}
	at := s.For
	name := func() *ast.Ident { return &ast.Ident{NamePos: at, Name: w.name("Range")} }
	method := func(m string) ast.Expr {
		return &ast.CallExpr{Fun: &ast.SelectorExpr{X: name(), Sel: &ast.Ident{NamePos: at, Name: m}}, Lparen: at,
			Rparen: at}
	}
	over := &ast.CallExpr{Fun: &ast.Ident{NamePos: at, Name: w.support("Over")}, Lparen: at, Args: []ast.Expr{s.X},
		Rparen: s.X.End()}
	assign := &ast.AssignStmt{TokPos: at, Tok: s.Tok}
	for _, part := range []struct {
		to ast.Expr
		m  string
	}{{s.Key, "Key"}, {s.Value, "Value"}} {
		if id, blank := part.to.(*ast.Ident); part.to == nil || blank && id.Name == "_" {
			continue
		}
		assign.Lhs, assign.Rhs = append(assign.Lhs, part.to), append(assign.Rhs, method(part.m))
	}
	body := s.Body
	if len(assign.Lhs) > 0 {
		body = &ast.BlockStmt{Lbrace: s.Body.Lbrace, List: []ast.Stmt{assign, s.Body}, Rbrace: s.Body.Rbrace}
	}
	return &ast.ForStmt{For: at, Init: &ast.AssignStmt{Lhs: []ast.Expr{name()}, TokPos: at, Tok: token.DEFINE,
		Rhs: []ast.Expr{over}}, Cond: method("Next"), Body: body}
}

// overMap reports whether a range over a value of the type ranges over a map. For a type parameter it is enough to look
// at one type, because a mix of maps and other types does not compile.
func overMap(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface: // of a type parameter
		for e := range t.EmbeddedTypes() {
			if u, ok := types.Unalias(e).(*types.Union); ok {
				e = u.Term(0).Type()
			}
			if overMap(e) {
				return true
			}
		}
	}
	return false
}
