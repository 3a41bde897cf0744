package gate

import (
	"go/ast"
	"go/token"
)

// survey finds the variables that a call may change: those of the package, those that a function literal captures, those whose
// address is taken or may be, for a method; and the labels that goto statements jump to.
func (o *orderer) survey() {
	s := surveyor{shared: map[*ast.Object]bool{}, jumps: map[string]bool{}}
	for _, d := range o.c.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			s.packageVariables(g)
		}
		ast.Inspect(d, s.visit)
	}
	o.shared, o.jumps = s.shared, s.jumps
}

type surveyor struct {
	shared map[*ast.Object]bool
	jumps  map[string]bool
	lit    *ast.FuncLit // the innermost around what is visited; nil outside of all
}

func (s *surveyor) packageVariables(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			for _, id := range v.Names {
				s.shared[id.Obj] = true
			}
		}
	}
}

func (s *surveyor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		outer := s.lit
		s.lit = n
		ast.Inspect(n.Body, s.visit)
		s.lit = outer
		return false
	case *ast.BranchStmt:
		if n.Tok == token.GOTO && n.Label != nil {
			s.jumps[n.Label.Name] = true
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			s.share(n.X)
		}
	case *ast.SliceExpr:
		s.share(n.X)
	case *ast.CallExpr:
		if f, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
			s.share(f.X)
		}
	case *ast.Ident:
		if s.captured(n) {
			s.shared[n.Obj] = true
		}
	}
	return true
}

// captured reports whether a name in a function literal is that of a variable declared outside of it.
func (s *surveyor) captured(id *ast.Ident) bool {
	return s.lit != nil && id.Obj != nil && id.Obj.Kind == ast.Var && (id.Obj.Pos() < s.lit.Pos() || id.Obj.Pos() > s.lit.End())
}

// share notes the variable of which an expression is a part.
func (s *surveyor) share(e ast.Expr) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		s.share(x.X)
	case *ast.SelectorExpr:
		s.share(x.X)
	case *ast.IndexExpr:
		s.share(x.X)
	case *ast.Ident:
		if x.Obj != nil {
			s.shared[x.Obj] = true
		}
	}
}
