package fix

import (
	"go/ast"
	"go/token"
	"strconv"
)

// function returns the function of that name, or nil.
func (m *fixer) function(name string) *ast.FuncDecl {
	for _, d := range m.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name && f.Recv == nil {
			return f
		}
	}
	return nil
}

// calledNames returns the names used outside of main and of the functions of those names.
func (m *fixer) calledNames() map[string]bool {
	out := map[string]bool{}
	for _, d := range m.file.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		if isFunc && f.Name.Name == "main" {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (!isFunc || id.Name != f.Name.Name) {
				out[id.Name] = true
			}
			return true
		})
	}
	return out
}

// A field is one parameter or result of a function.
type field struct {
	name string
	typ  ast.Expr
	id   *ast.Ident // nil if there is no name
}

// fieldsOf returns one field per name, or per type if there are no names.
func fieldsOf(list *ast.FieldList) (out []field) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		if len(f.Names) == 0 {
			out = append(out, field{"", f.Type, nil})
		}
		for _, n := range f.Names {
			out = append(out, field{n.Name, f.Type, n})
		}
	}
	return out
}

// isCall reports whether the type is the host package's Call or a pointer to it.
func (m *fixer) isCall(typ ast.Expr) bool {
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	s, ok := typ.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Call" && m.importedHost(s.X)
}

// importedHost reports whether the expression is the name of the host package.
func (m *fixer) importedHost(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	if !ok {
		return false
	}
	for _, spec := range m.file.Imports {
		if importPath(spec) == host && importName(spec) == id.Name {
			return true
		}
	}
	return id.Name == host
}

// isAnyExpr reports whether a type expression is any or interface{}.
func isAnyExpr(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "any"
	case *ast.InterfaceType:
		return len(e.Methods.List) == 0
	}
	return false
}

// isName reports whether e is the identifier name.
func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// called reports whether the parameters and results are those of Run.
func (m *fixer) called(params, results []field) bool {
	if len(params) != 1 || !m.isCall(params[0].typ) || len(results) != 2 {
		return false
	}
	_, pointer := params[0].typ.(*ast.StarExpr)
	return pointer && isAnyExpr(results[0].typ) && isName(results[1].typ, "error")
}

// declares reports whether the file declares the name anywhere.
func (m *fixer) declares(name string) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name && id.Obj != nil
		return !found
	})
	return found
}

// uses reports whether an identifier of that name occurs in a node, whatever it refers to.
func uses(body ast.Node, name string) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		found = found || isIdent(n, name)
		return !found
	})
	return found
}

// isIdent reports whether n is the identifier name.
func isIdent(n ast.Node, name string) bool {
	id, ok := n.(*ast.Ident)
	return ok && id.Name == name
}

// constantText returns the value of a string literal, or "" for any other expression.
func constantText(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	return ""
}
