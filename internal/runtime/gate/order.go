package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// orderCalls makes assignments evaluate in the toolchain's order. The language leaves open whether the operands of t.nodes[i].left = t.build() are
// read before or after the call; the toolchain makes the call first, go/ssa reads first, and programs come to rely on it: build may
// append to t.nodes. So calls on the right of an assignment that stores through an operand, or that combines its old value, move
// into variables before it.
func (c *check) orderCalls() {
	o := &orderer{packages: map[string]bool{}}
	for _, spec := range c.file.Imports {
		o.packages[c.importName(spec)] = true
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			n.List = o.list(n.List)
		case *ast.CaseClause:
			n.Body = o.list(n.Body)
		case *ast.CommClause:
			n.Body = o.list(n.Body)
		}
		return true
	})
}

type orderer struct {
	packages map[string]bool
	count    int
}

func (o *orderer) list(stmts []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for i, s := range stmts {
		a, ok := s.(*ast.AssignStmt)
		var moved []ast.Stmt
		if ok {
			moved = o.assign(a)
		}
		if len(moved) > 0 && out == nil {
			out = slices.Clone(stmts[:i])
		}
		if out != nil {
			out = append(append(out, moved...), s)
		}
	}
	if out == nil {
		return stmts
	}
	return out
}

// assign moves the calls of an assignment into statements before it.
func (o *orderer) assign(a *ast.AssignStmt) []ast.Stmt {
	if a.Tok == token.DEFINE {
		return nil
	}
	risky := a.Tok != token.ASSIGN || len(a.Rhs) == 1 && isBinary(a.Rhs[0])
	for _, l := range a.Lhs {
		if _, plain := ast.Unparen(l).(*ast.Ident); !plain {
			risky = true
		}
	}
	if !risky || !slices.ContainsFunc(a.Rhs, o.callsOwn) {
		return nil
	}
	if len(a.Rhs) == 1 && len(a.Lhs) > 1 {
		var moved []ast.Stmt
		for i := range a.Lhs {
			o.moveOperand(a.Lhs[i], &moved)
		}
		return append(moved, o.tuple(a)...)
	}
	var moved []ast.Stmt
	for i := range a.Lhs {
		o.moveOperand(a.Lhs[i], &moved)
	}
	for i := range a.Rhs {
		o.move(&a.Rhs[i], &moved)
	}
	return moved
}

func isBinary(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok
}

// tuple moves a call with several results.
func (o *orderer) tuple(a *ast.AssignStmt) []ast.Stmt {
	call, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return nil
	}
	var names, uses []ast.Expr
	for range a.Lhs {
		def, use := o.variable(call.Pos())
		names, uses = append(names, def), append(uses, use)
	}
	a.Rhs = uses
	return []ast.Stmt{&ast.AssignStmt{Lhs: names, TokPos: call.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{call}}}
}

func (o *orderer) variable(pos token.Pos) (def, use *ast.Ident) {
	o.count++
	name := fmt.Sprintf("·%d", o.count) // no program can write that
	return &ast.Ident{NamePos: pos, Name: name}, &ast.Ident{NamePos: pos, Name: name}
}

// move replaces the outermost calls in e, which are always evaluated, by variables.
func (o *orderer) move(e *ast.Expr, moved *[]ast.Stmt) {
	switch x := (*e).(type) {
	case *ast.ParenExpr:
		o.move(&x.X, moved)
	case *ast.BinaryExpr:
		o.move(&x.X, moved)
		if x.Op != token.LAND && x.Op != token.LOR {
			o.move(&x.Y, moved)
		}
	case *ast.UnaryExpr:
		if x.Op != token.AND && x.Op != token.ARROW {
			o.move(&x.X, moved)
		}
	case *ast.CallExpr:
		if !movable(x) {
			return
		}
		def, use := o.variable(x.Pos())
		*moved = append(*moved, &ast.AssignStmt{Lhs: []ast.Expr{def}, TokPos: x.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{x}})
		*e = use
	}
}

// moveOperand moves the calls in the operands of what is assigned to: they come first.
func (o *orderer) moveOperand(e ast.Expr, moved *[]ast.Stmt) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		o.moveOperand(x.X, moved)
	case *ast.IndexExpr:
		o.moveInner(&x.X, moved)
		o.move(&x.Index, moved)
	case *ast.SelectorExpr:
		o.moveInner(&x.X, moved)
	case *ast.StarExpr:
		o.moveInner(&x.X, moved)
	}
}

func (o *orderer) moveInner(e *ast.Expr, moved *[]ast.Stmt) {
	if _, ok := (*e).(*ast.CallExpr); ok {
		o.move(e, moved)
		return
	}
	o.moveOperand(*e, moved)
}

// movable reports whether a call may become a variable: not a conversion to, nor a built-in of, a predeclared name, whose result may be
// an untyped constant.
func movable(call *ast.CallExpr) bool {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return !predeclared(f.Name) && (f.Obj == nil || f.Obj.Kind != ast.Typ)
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr, *ast.FuncLit, *ast.CallExpr:
		return true
	}
	return false
}

func predeclared(name string) bool {
	return slices.Contains([]string{"append", "cap", "clear", "complex", "copy", "imag", "len", "make", "max", "min", "new", "real", "recover",
		"string", "bool", "byte", "rune", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr",
		"float32", "float64", "complex64", "complex128", "any", "error"}, name)
}

// callsOwn reports whether an expression calls something of the program's own, which may change what the assignment reads.
func (o *orderer) callsOwn(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			switch f := ast.Unparen(n.Fun).(type) {
			case *ast.Ident:
				found = found || movable(n)
			case *ast.SelectorExpr:
				x, ok := f.X.(*ast.Ident)
				found = found || !ok || !o.packages[x.Name] || x.Obj != nil
			default:
				found = found || movable(n)
			}
		}
		return true
	})
	return found
}
