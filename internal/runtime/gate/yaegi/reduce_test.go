package yaegi_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// reduce removes statements, cases and declarations from a program as long as it still fails.
func reduce(source string, fails func(string) bool) string {
	for again := true; again; {
		again = false
		for size := 16; size > 0; size /= 2 {
			for i := 0; ; i += size {
				smaller, more := without(source, i, size)
				if !more {
					break
				}
				if len(smaller) < len(source) && fails(smaller) {
					source, again = smaller, true
					i -= size
				}
			}
		}
		for i := 0; ; i++ {
			options, more := simpler(source, i)
			if !more {
				break
			}
			for _, o := range options {
				if len(o) < len(source) && fails(o) {
					source, again = o, true
					break
				}
			}
		}
	}
	return source
}

// without returns the program without the statements from first to first+size, counted over all lists, and whether
// there are any.
func without(source string, first, size int) (string, bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		return "", false
	}
	n := 0
	cut := func(list []ast.Stmt) []ast.Stmt {
		var out []ast.Stmt
		for _, s := range list {
			if n < first || n >= first+size || ends(source, s) {
				out = append(out, s)
			}
			n++
		}
		return out
	}
	var decls []ast.Decl
	for _, d := range f.Decls {
		if fd, ok := d.(*ast.FuncDecl); !ok || fd.Name.Name != "Run" {
			if n++; n > first && n <= first+size {
				continue
			}
		}
		decls = append(decls, d)
	}
	f.Decls = decls
	ast.Inspect(f, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.BlockStmt:
			s.List = cut(s.List)
		case *ast.CaseClause:
			s.Body = cut(s.Body)
		case *ast.IfStmt:
			if s.Else != nil {
				if n++; n > first && n <= first+size {
					s.Else = nil
				}
			}
		}
		return true
	})
	var b strings.Builder
	if format.Node(&b, fset, f) != nil {
		return "", false
	}
	return b.String(), n > first
}

// ends reports whether a statement may be the one that ends a loop.
func ends(source string, s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ForStmt, *ast.RangeStmt, *ast.BlockStmt, *ast.SwitchStmt:
		return false
	case *ast.BranchStmt:
		return true
	}
	text := source[s.Pos()-1 : s.End()-1]
	return strings.HasPrefix(text, "count") || strings.HasPrefix(text, "if count")
}

// simpler returns programs with expression or statement i replaced by simpler ones, and whether there is such an
// expression or statement.
func simpler(source string, i int) ([]string, bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		return nil, false
	}
	n, found := 0, ast.Node(nil)
	ast.Inspect(f, func(node ast.Node) bool {
		if s, ok := node.(*ast.ForStmt); ok {
			s.Cond, s.Post, s.Init = nil, nil, nil // the statement that ends the loop stays
		}
		if s, ok := node.(ast.Stmt); ok && ends(source, s) {
			return false
		}
		switch node.(type) {
		case ast.Expr, *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.BlockStmt:
			if n == i {
				found = node
			}
			n++
		}
		return found == nil
	})
	if found == nil {
		return nil, false
	}
	at := func(n ast.Node) string { return source[n.Pos()-1 : n.End()-1] }
	replace := func(with string) string { return source[:found.Pos()-1] + with + source[found.End()-1:] }
	inner := func(b *ast.BlockStmt) string { return strings.TrimSuffix(strings.TrimPrefix(at(b), "{"), "}") }
	switch e := found.(type) {
	case *ast.IfStmt:
		return []string{replace(inner(e.Body))}, true
	case *ast.RangeStmt:
		return []string{replace(inner(e.Body))}, true
	case *ast.BlockStmt, *ast.ForStmt:
		return nil, true
	case *ast.BasicLit, *ast.Ident:
		return nil, true
	case *ast.BinaryExpr:
		return []string{replace(at(e.X)), replace(at(e.Y))}, true
	case *ast.ParenExpr:
		return []string{replace(at(e.X))}, true
	case *ast.CompositeLit:
		out := []string{replace(at(e.Type) + "{}")}
		for _, x := range e.Elts {
			out = append(out, replace(at(e.Type)+"{"+at(x)+"}"))
		}
		if e.Type == nil {
			return nil, true
		}
		return out, true
	}
	var out []string
	for _, s := range []string{"0", "1", "1.5", "nil", "\"\"", "\"a\"", "true", "false"} {
		out = append(out, replace(s))
	}
	return out, true
}
