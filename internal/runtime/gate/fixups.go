package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// addImports adds a missing import if only one allowed package can be meant: the undeclared name is the package's, and
// the package has every name selected from it. Positions do not change, because the imports go into the AST without
// positions.
func (c *check) addImports() {
	unresolved := map[*ast.Ident]bool{}
	for _, id := range c.file.Unresolved {
		unresolved[id] = true
	}
	imported := map[string]bool{}
	for _, spec := range c.file.Imports {
		imported[c.importName(spec)] = true
	}
	wanted := map[string]map[string]bool{}
	ast.Inspect(c.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && unresolved[x] && !imported[x.Name] {
			if wanted[x.Name] == nil {
				wanted[x.Name] = map[string]bool{}
			}
			wanted[x.Name][s.Sel.Name] = true
		}
		return true
	})
	var paths []string
	for name, sels := range wanted {
		if path := c.packageFor(name, sels); path != "" {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	var text strings.Builder
	for _, path := range paths {
		spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path)}}
		decl := &ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}}
		c.file.Decls = slices.Insert(c.file.Decls, 0, ast.Decl(decl))
		c.file.Imports = append(c.file.Imports, spec)
		fmt.Fprintf(&text, "; import %q", path)
	}
	if text.Len() > 0 {
		// The imports go on the line of the package clause, so the lines of the source do not move.
		at := c.fset.PositionFor(c.file.Name.End(), false).Offset
		c.source = c.source[:at] + text.String() + c.source[at:]
	}
}

// importName returns the name by which the file refers to an import.
func (c *check) importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	path, _ := strconv.Unquote(spec.Path.Value)
	return c.gate.lib.allowed[path].Name()
}

// packageFor returns the path of the only allowed package with that name that has all the selected names, or "" if
// there is none or more than one.
func (c *check) packageFor(name string, sels map[string]bool) string {
	var found []string
	for path, p := range c.gate.lib.allowed {
		if p.Name() == name && c.hasAll(p, sels) {
			found = append(found, path)
		}
	}
	if len(found) == 2 {
		// If both "html" packages fit, the standard one is meant; allow.Page repeats its names.
		found = slices.DeleteFunc(found, func(path string) bool { return path == allow.Page })
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

// hasAll reports whether the package has all of the names.
func (c *check) hasAll(p allow.Package, sels map[string]bool) bool {
	pkg, err := c.gate.lib.load(p.Path)
	if err != nil {
		return false
	}
	for s := range sels {
		if pkg.Scope().Lookup(s) == nil {
			return false
		}
	}
	return true
}

// useVariables adds `_ = v` for each unused variable v, after the statement that declares it.
func (c *check) useVariables() {
	unused := map[token.Pos]bool{}
	for _, e := range c.unused {
		unused[e.Pos] = true
	}
	uses := func(ids []*ast.Ident) (out []ast.Stmt) {
		for _, id := range ids {
			if unused[id.Pos()] {
				out = append(out, &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{Name: "_"}}, Tok: token.ASSIGN,
					Rhs: []ast.Expr{&ast.Ident{NamePos: id.Pos(), Name: id.Name}}})
			}
		}
		return out
	}
	use := func(list []ast.Stmt) (out []ast.Stmt) {
		for _, s := range list {
			out = append(append(out, s), uses(declared(s))...)
		}
		return out
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			n.Body.List = append(uses(declared(&ast.AssignStmt{Lhs: []ast.Expr{n.Key, n.Value}, Tok: n.Tok})),
				n.Body.List...)
		case *ast.BlockStmt:
			n.List = use(n.List)
		case *ast.CaseClause:
			n.Body = use(n.Body)
		case *ast.CommClause:
			n.Body = use(n.Body)
		}
		return true
	})
}

// declared returns the variables that a statement declares in its block.
func declared(s ast.Stmt) []*ast.Ident {
	var ids []*ast.Ident
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			for _, l := range s.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					ids = append(ids, id)
				}
			}
		}
	case *ast.DeclStmt:
		if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				ids = append(ids, spec.(*ast.ValueSpec).Names...)
			}
		}
	}
	return ids
}
