package gate

import (
	"go/ast"
	"go/types"
	"strings"
)

// A function that changes elements of its arguments may be called only as the sole effect of a statement: yaegi and the
// toolchain evaluate the other operands of the statement at different times relative to the call.

// changingFunctions returns the functions of the file that change elements of slices or maps, or call methods that
// change values, directly or through other functions of the file.
func changingFunctions(info *types.Info, f *ast.File) map[types.Object]bool {
	changing := map[types.Object]bool{}
	// A function may call one that is found later, so passes repeat until nothing changes.
	for before := -1; before != len(changing); {
		before = len(changing)
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok && changes(info, fd, changing) {
				changing[info.Defs[fd.Name]] = true
			}
		}
	}
	return changing
}

// changes reports whether a function may change elements of its arguments, given the functions that are known to do so.
func changes(info *types.Info, fd *ast.FuncDecl, changing map[types.Object]bool) (found bool) {
	element := func(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.IndexExpr); return ok }
	ast.Inspect(fd, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				found = found || element(l)
			}
		case *ast.IncDecStmt:
			found = found || element(n.X)
		case *ast.Ident:
			obj := info.Uses[n]
			found = found || changing[obj] || obj == types.Universe.Lookup("delete")
		case *ast.SelectorExpr:
			found = found || changesByName(info, n)
		}
		return !found
	})
	return found
}

// changesByName reports whether a function or method of another package may change its arguments or receiver, judging
// by its name.
func changesByName(info *types.Info, n *ast.SelectorExpr) bool {
	f, ok := info.Uses[n.Sel].(*types.Func)
	if !ok {
		return false
	}
	if f.Pkg() != nil && f.Pkg().Path() == "sort" {
		return true
	}
	for _, begin := range []string{"Write", "Set", "Add", "Del", "Reset", "Grow"} {
		if info.Selections[n] != nil && strings.HasPrefix(f.Name(), begin) {
			return true
		}
	}
	return false
}

// takesTurn records a call that is a whole statement, or the only value that the statement returns or assigns to
// variables.
func (c *chooser) takesTurn(n ast.Node) {
	var e ast.Expr
	switch n := n.(type) {
	case *ast.ExprStmt:
		e = n.X
	case *ast.ReturnStmt:
		if len(n.Results) == 1 {
			e = n.Results[0]
		}
	case *ast.AssignStmt:
		for _, l := range n.Lhs {
			if !variable(l) {
				return
			}
		}
		if len(n.Rhs) == 1 {
			e = n.Rhs[0]
		}
	}
	if call, ok := e.(*ast.CallExpr); ok {
		c.inTurn[call] = true
	}
}

// outOfTurn reports whether a statement does more than make a call that changes elements.
func outOfTurn(c *chooser, n *ast.CallExpr) bool {
	f, ok := n.Fun.(*ast.Ident)
	return ok && c.changing[c.info.Uses[f]] && !c.inTurn[n]
}
