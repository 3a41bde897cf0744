// Package minimise shrinks Go programs while a given property still holds. It removes declarations, statements, fields
// and cases, and replaces statements by their bodies.
//
// Only tests import this package.
package minimise

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
)

// batchSize is the most programs that holds is called with at once.
const batchSize = 24

// Program returns the smallest program it finds for which holds is true. It calls holds with many programs at a time,
// because building many costs little more than building one; all of them type-check with imp. Functions for which keep
// is true stay.
func Program(source string, keep func(name string) bool, imp types.Importer, holds func([]string) []bool) string {
	m := &minimiser{keep: keep, imp: imp, holds: holds}
	for before := ""; before != source; {
		before = source
		for _, change := range []edit{elements, remove, unwrap} {
			source = m.pass(source, change)
		}
	}
	return source
}

// An edit changes the chosen units of a file and returns the number of units in it.
type edit func(f *ast.File, keep func(string) bool, chosen func(i int) bool) int

// A minimiser holds the arguments of Program.
type minimiser struct {
	keep  func(string) bool
	imp   types.Importer
	holds func([]string) []bool
}

// pass tries an edit on ever smaller parts of the program.
func (m *minimiser) pass(source string, change edit) string {
	_, n := m.apply(source, change, nil)
	// Large parts are tried first: if they can go, that saves many small steps.
	for size := max(n/2, 1); ; size /= 2 {
		for start := 0; ; {
			var tried [][]int
			var texts []string
			_, n = m.apply(source, change, nil)
			for ; start < n && len(texts) < batchSize; start += size {
				chunk := span(start, min(start+size, n))
				if text, _ := m.apply(source, change, chunk); text != "" && len(text) < len(source) {
					tried, texts = append(tried, chunk), append(texts, text)
				}
			}
			if len(texts) == 0 {
				break
			}
			smaller, removed := m.best(source, change, tried, texts)
			source = smaller
			start -= removed
		}
		if size == 1 {
			return source
		}
	}
}

// best returns the program without all chunks that can be removed together, or else without the first that can be
// removed, and how far the next search moves back.
func (m *minimiser) best(source string, change edit, chunks [][]int, texts []string) (string, int) {
	var all, first []int
	for i, ok := range m.holds(texts) {
		if ok {
			if first == nil {
				first = chunks[i]
			}
			all = append(all, chunks[i]...)
		}
	}
	if first == nil {
		return source, 0
	}
	if len(all) > len(first) {
		if text, _ := m.apply(source, change, all); text != "" && m.holds([]string{text})[0] {
			return text, len(all)
		}
	}
	text, _ := m.apply(source, change, first)
	// The search goes back to the removed chunk, so the units after it are tried again.
	return text, chunks[len(chunks)-1][len(chunks[len(chunks)-1])-1] + 1 - first[0]
}

// span returns the numbers in [from, to).
func span(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// apply returns the program after an edit, or "" if it does not type-check, and the number of units of the program.
func (m *minimiser) apply(source string, change edit, chosen []int) (string, int) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		return "", 0
	}
	set := map[int]bool{}
	for _, i := range chosen {
		set[i] = true
	}
	n := change(f, m.keep, func(i int) bool { return set[i] })
	var b strings.Builder
	if len(chosen) == 0 || format.Node(&b, fset, f) != nil {
		return "", n
	}
	return repair(b.String(), m.keep, m.imp), n
}

// elements removes elements of lists with more than five, because they shrink a program fastest.
func elements(f *ast.File, _ func(string) bool, chosen func(int) bool) int {
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		if x, ok := node.(*ast.CompositeLit); ok && len(x.Elts) > 5 {
			x.Elts = filter(x.Elts, func(ast.Expr) bool { n++; return chosen(n - 1) })
		}
		return true
	})
	return n
}

// remove removes declarations, statements, cases, fields and elements of lists.
func remove(f *ast.File, keep func(string) bool, chosen func(int) bool) int {
	n := 0
	drop := func() bool { n++; return chosen(n - 1) }
	f.Decls = filter(f.Decls, func(d ast.Decl) bool {
		if fd, ok := d.(*ast.FuncDecl); ok && keep(fd.Name.Name) {
			return false
		}
		g, ok := d.(*ast.GenDecl)
		return !(ok && g.Tok == token.IMPORT) && drop()
	})
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.GenDecl:
			if x.Tok == token.VAR && len(x.Specs) > 1 {
				x.Specs = filter(x.Specs, func(ast.Spec) bool { return drop() })
			}
		case *ast.BlockStmt:
			x.List = filter(x.List, func(ast.Stmt) bool { return drop() })
		case *ast.CaseClause:
			x.Body = filter(x.Body, func(ast.Stmt) bool { return drop() })
			if len(x.List) > 1 {
				x.List = filter(x.List, func(ast.Expr) bool { return drop() })
			}
		case *ast.CommClause:
			x.Body = filter(x.Body, func(ast.Stmt) bool { return drop() })
		case *ast.IfStmt:
			if x.Else != nil && drop() {
				x.Else = nil
			}
		case *ast.StructType:
			x.Fields.List = filter(x.Fields.List, func(*ast.Field) bool { return drop() })
		case *ast.InterfaceType:
			x.Methods.List = filter(x.Methods.List, func(*ast.Field) bool { return drop() })
		case *ast.CompositeLit:
			x.Elts = filter(x.Elts, func(ast.Expr) bool { return drop() })
		case *ast.CallExpr:
			if len(x.Args) > 1 {
				x.Args = filter(x.Args, func(ast.Expr) bool { return drop() })
			}
		}
		return true
	})
	return n
}

// filter returns the elements for which drop is false.
func filter[T any](list []T, drop func(T) bool) []T {
	var out []T
	for _, x := range list {
		if !drop(x) {
			out = append(out, x)
		}
	}
	return out
}

// unwrap replaces a statement by its body.
func unwrap(f *ast.File, _ func(string) bool, chosen func(int) bool) int {
	n := 0
	take := func() bool { n++; return chosen(n - 1) }
	open := func(list []ast.Stmt) []ast.Stmt {
		var out []ast.Stmt
		for _, s := range list {
			if body := bodyOf(s); body != nil && take() {
				out = append(out, body...)
			} else {
				out = append(out, s)
			}
		}
		return out
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.BlockStmt:
			x.List = open(x.List)
		case *ast.CaseClause:
			x.Body = open(x.Body)
		case *ast.CommClause:
			x.Body = open(x.Body)
		}
		return true
	})
	return n
}

// bodyOf returns the statements that may replace a statement, or nil.
func bodyOf(s ast.Stmt) []ast.Stmt {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return s.List
	case *ast.IfStmt:
		return append(initOf(s.Init), s.Body.List...)
	case *ast.ForStmt:
		return append(initOf(s.Init), s.Body.List...)
	case *ast.RangeStmt:
		return s.Body.List
	case *ast.LabeledStmt:
		return []ast.Stmt{s.Stmt}
	case *ast.DeferStmt:
		return []ast.Stmt{&ast.ExprStmt{X: s.Call}}
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			for _, e := range append([]ast.Expr{call.Fun}, call.Args...) {
				if lit, ok := e.(*ast.FuncLit); ok {
					return lit.Body.List
				}
			}
		}
	}
	return nil
}

// initOf returns a list of the init statement, if there is one.
func initOf(s ast.Stmt) []ast.Stmt {
	if s == nil {
		return nil
	}
	return []ast.Stmt{s}
}
