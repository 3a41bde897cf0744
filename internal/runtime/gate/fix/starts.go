package fix

import (
	"go/ast"
	"strings"
)

// inputStruct returns the name of the program's struct that a function takes as its only argument and that Bind can
// fill, or "".
func (m *fixer) inputStruct(p field, of int) (name string) {
	typ := p.typ
	// The function may take the struct or a pointer to it.
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	if !ok || of != 1 || m.isCall(p.typ) {
		return ""
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == id.Name {
			if st, ok := spec.Type.(*ast.StructType); ok && len(st.Fields.List) > 0 && m.fillable(st) {
				name = id.Name
			}
		}
		return name == ""
	})
	return name
}

// fillable reports whether JSON fills all fields of a struct: they are exported and have a tag or a name of one word.
func (m *fixer) fillable(st *ast.StructType) bool {
	for _, f := range st.Fields.List {
		for _, id := range f.Names {
			if !id.IsExported() || f.Tag == nil && !oneWord().MatchString(id.Name) || f.Tag != nil &&
				!strings.Contains(f.Tag.Value, "json:") {
				return false
			}
		}
		if len(f.Names) != 1 {
			return false
		}
	}
	return true
}

// showsOnly reports whether main only prints the results of the program's functions for values written in main.
func (m *fixer) showsOnly(main *ast.FuncDecl) bool {
	only := true
	ast.Inspect(main.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt,
			*ast.BinaryExpr:
			only = false
		case *ast.CallExpr:
			id, own := n.Fun.(*ast.Ident)
			only = only && (own && m.function(id.Name) != nil || printers().MatchString(m.text(n.Fun)+"("))
		}
		return only
	})
	return only
}
