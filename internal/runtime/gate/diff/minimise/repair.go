package minimise

import (
	"errors"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// repair removes declarations that the kept functions do not reach, and imports, variables and labels that have become
// unused. It returns "" if the program still does not type-check.
func repair(source string, keep func(string) bool, imp types.Importer) string {
	// Each removal may make other names unused, so the rounds repeat. The bound is a safeguard.
	for range 12 {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", source, 0)
		if err != nil {
			return ""
		}
		unused := map[token.Pos]bool{}
		bad := false
		conf := types.Config{Importer: imp, Sizes: types.SizesFor("gc", "amd64"), Error: func(err error) {
			var te types.Error
			switch {
			case !errors.As(err, &te):
				bad = true
			case strings.HasPrefix(te.Msg, "declared and not used"), strings.HasSuffix(te.Msg, "declared and not used"),
				strings.HasSuffix(te.Msg, "imported and not used"),
				strings.HasPrefix(te.Msg, "label ") && strings.HasSuffix(te.Msg, "declared and not used"):
				unused[te.Pos] = true
			default:
				bad = true
			}
		}}
		info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		_, _ = conf.Check("tool", fset, []*ast.File{f}, info)
		if bad {
			return ""
		}
		if !dropUnreachable(f, info, keep) && len(unused) == 0 {
			return source
		}
		dropUnused(f, unused)
		var b strings.Builder
		if format.Node(&b, fset, f) != nil {
			return ""
		}
		source = b.String()
	}
	return ""
}

// dropUnused removes the names that the type checker has reported as unused, by position.
func dropUnused(f *ast.File, unused map[token.Pos]bool) {
	dropImports(f, unused)
	d := dropper{unused}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			d.labels(n.List)
		case *ast.CaseClause:
			d.labels(n.Body)
		case *ast.CommClause:
			d.labels(n.Body)
		case *ast.AssignStmt:
			any := false
			for _, e := range n.Lhs {
				any = d.blank(e) || any
			}
			if n.Tok == token.DEFINE && !any {
				n.Tok = token.ASSIGN
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				d.blank(id)
			}
		case *ast.RangeStmt:
			d.rangeVariables(n)
		case *ast.TypeSwitchStmt:
			if a, ok := n.Assign.(*ast.AssignStmt); ok && unused[a.Lhs[0].Pos()] {
				n.Assign = &ast.ExprStmt{X: a.Rhs[0]}
			}
		}
		return true
	})
}

// dropImports removes unused imports.
func dropImports(f *ast.File, unused map[token.Pos]bool) {
	var decls []ast.Decl
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			g.Specs = filter(g.Specs, func(s ast.Spec) bool { return unused[s.Pos()] })
			if len(g.Specs) == 0 {
				continue
			}
		}
		decls = append(decls, d)
	}
	f.Decls = decls
}

// A dropper removes unused names from statements.
type dropper struct{ unused map[token.Pos]bool }

// blank replaces an unused variable by _, and reports whether the expression still names something.
func (d dropper) blank(e ast.Expr) (named bool) {
	id, ok := e.(*ast.Ident)
	if ok && d.unused[id.Pos()] {
		id.Name = "_"
	}
	return e != nil && (!ok || id.Name != "_")
}

// labels removes unused labels from statements.
func (d dropper) labels(list []ast.Stmt) {
	for i, s := range list {
		if l, ok := s.(*ast.LabeledStmt); ok && d.unused[l.Pos()] {
			list[i] = l.Stmt
		}
	}
}

// rangeVariables removes unused variables of a range statement.
func (d dropper) rangeVariables(n *ast.RangeStmt) {
	named := d.blank(n.Key)
	if v := n.Value; v != nil {
		named = d.blank(v) || named
		if id, ok := v.(*ast.Ident); ok && id.Name == "_" {
			n.Value = nil
		}
	}
	if n.Tok == token.DEFINE && !named {
		n.Key, n.Value, n.Tok = nil, nil, token.ILLEGAL
	}
}

// dropUnreachable removes declarations that the kept functions do not reach, and reports whether it removed any. A
// method is reached if its type is.
func dropUnreachable(f *ast.File, info *types.Info, keep func(string) bool) bool {
	reached := reachable(f, info, keep)
	before := len(f.Decls)
	f.Decls = filter(f.Decls, func(d ast.Decl) bool {
		g, general := d.(*ast.GenDecl)
		return !(general && g.Tok == token.IMPORT) && !slices.ContainsFunc(declared(d, info),
			func(obj types.Object) bool { return reached[obj] })
	})
	return len(f.Decls) < before
}

// reachable returns the package-level names that the kept functions reach, including those functions.
func reachable(f *ast.File, info *types.Info, keep func(string) bool) map[types.Object]bool {
	parts := map[types.Object][]ast.Node{} // declarations of each package-level name
	for _, d := range f.Decls {
		for _, obj := range declared(d, info) {
			parts[obj] = append(parts[obj], d)
		}
	}
	reached := map[types.Object]bool{}
	var reach func(obj types.Object)
	reach = func(obj types.Object) {
		if obj == nil || reached[obj] {
			return
		}
		reached[obj] = true
		for _, n := range parts[obj] {
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && info.Uses[id] != nil && parts[info.Uses[id]] != nil {
					reach(info.Uses[id])
				}
				return true
			})
		}
	}
	for obj := range parts {
		if obj != nil && keep(obj.Name()) {
			reach(obj)
		}
	}
	return reached
}

// declared returns the package-level names that a declaration declares or belongs to. A method belongs to its type.
func declared(d ast.Decl, info *types.Info) (out []types.Object) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []types.Object{info.Uses[receiver(d.Recv.List[0].Type)]}
		}
		return []types.Object{info.Defs[d.Name]}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			out = append(out, declaredBy(s, info)...)
		}
	}
	return out
}

// declaredBy returns the names that a specification declares.
func declaredBy(s ast.Spec, info *types.Info) []types.Object {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return []types.Object{info.Defs[s.Name]}
	case *ast.ValueSpec:
		var out []types.Object
		for _, id := range s.Names {
			out = append(out, info.Defs[id])
		}
		return out
	}
	return nil
}

// receiver returns the name of a receiver's type, or nil.
func receiver(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}
