package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
)

// mapRange returns the loop that visits a map's keys in the engine's order; nil for a range over anything else.
func (w *writer) mapRange(s *ast.RangeStmt) ast.Stmt {
	switch w.rangeOver(w.info.TypeOf(s.X)) {
	case overChannel:
		w.refuse("it uses channels")
		return nil
	case overOther:
		return nil
	}
	at := s.For
	name := func() *ast.Ident { return &ast.Ident{NamePos: at, Name: rangeName} }
	method := func(m string) ast.Expr {
		return &ast.CallExpr{Fun: &ast.SelectorExpr{X: name(), Sel: &ast.Ident{NamePos: at, Name: m}}, Lparen: at, Rparen: at}
	}
	over := &ast.CallExpr{Fun: &ast.Ident{NamePos: at, Name: supportName + ".Over"}, Lparen: at, Args: []ast.Expr{s.X}, Rparen: s.X.End()}
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
	return &ast.ForStmt{For: at, Init: &ast.AssignStmt{Lhs: []ast.Expr{name()}, TokPos: at, Tok: token.DEFINE, Rhs: []ast.Expr{over}}, Cond: method("Next"), Body: body}
}

// What a range is over.
const (
	overOther = iota
	overMap
	overChannel
)

// rangeOver returns what a range over a value of the type is over. Of a type parameter's types all are of one kind, or the program would not compile.
func (w *writer) rangeOver(t types.Type) int {
	switch t := t.Underlying().(type) {
	case *types.Map:
		return overMap
	case *types.Chan:
		return overChannel
	case *types.Interface: // of a type parameter
		for e := range t.EmbeddedTypes() {
			switch e := types.Unalias(e).(type) {
			case *types.Union:
				return w.rangeOver(e.Term(0).Type())
			default:
				if over := w.rangeOver(e); over != overOther {
					return over
				}
			}
		}
	}
	return overOther
}
