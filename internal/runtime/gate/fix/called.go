package fix

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"sync"
)

// functionValues calls a function or method without parameters that stands where its result is printed or stored in a
// value of any type, as in fmt.Sprint(t.Hour). It reports functions that it cannot call.
func (m *fixer) functionValues() {
	asserted := sync.OnceValue(m.assertsFunctions)
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		sig, ok := m.Info.TypeOf(x).(*types.Signature)
		if _, literal := x.(*ast.FuncLit); !ok || literal || m.checker.Spent() || !m.asValue(x, asserted) {
			return true
		}
		switch {
		case isGetter(sig) && !isError(sig.Results().At(0).Type()):
			m.fix(clip(m.text(x))+" is called", m.after(x, "()"))
		default:
			m.name(x, clip(m.text(x))+" is a function here, whose address is no value: write its call, "+
				clip(m.text(x))+"(...)")
		}
		return false
	})
}

// asValue reports whether a function makes no sense in the place of an expression: it is printed, or a member of any
// type of a program that asserts no functions.
func (m *fixer) asValue(x ast.Expr, asserted func() bool) bool {
	switch p := m.parents[x].(type) {
	case *ast.CallExpr:
		return p.Fun != x && m.prints(p)
	case *ast.KeyValueExpr:
		return p.Value == x && isEmptyInterface(m.memberType(p, x)) && !asserted()
	case *ast.CompositeLit:
		return p.Type != x && isEmptyInterface(m.elementType(p, x)) && !asserted()
	case *ast.AssignStmt:
		if _, member := p.Lhs[0].(*ast.IndexExpr); !member || len(p.Lhs) != 1 || p.Rhs[0] != x {
			return false
		}
		return isEmptyInterface(m.Info.TypeOf(p.Lhs[0])) && !asserted()
	}
	return false
}

// prints reports whether a call writes its arguments as text. The formats %T and %p are about a function itself.
func (m *fixer) prints(c *ast.CallExpr) bool {
	if !strings.HasPrefix(m.callee(c), "fmt.") || strings.Contains(m.callee(c), "can") {
		return false
	}
	for _, a := range c.Args {
		if text := constantText(a); strings.Contains(text, "%T") || strings.Contains(text, "%p") {
			return false
		}
	}
	return true
}

// callers are packages that call functions among the values that they are given.
var callers = []string{"html/template", "reflect", "text/template"}

// assertsFunctions reports whether the program, or a package that it imports, takes functions out of values of any
// type.
func (m *fixer) assertsFunctions() bool {
	found := slices.ContainsFunc(m.file.Imports, func(spec *ast.ImportSpec) bool {
		return slices.Contains(callers, importPath(spec))
	})
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type == nil {
				found = true
			} else if t := m.Info.TypeOf(n.Type); t != nil {
				_, is := t.Underlying().(*types.Signature)
				found = found || is
			}
		}
		return !found
	})
	return found
}

// recursion declares a function literal before it is set, where its own body calls it: walk := func() { walk() }.
func (m *fixer) recursion(id *ast.Ident) bool {
	for p := m.parents[id]; p != nil; p = m.parents[p] {
		f, ok := p.(*ast.FuncLit)
		if !ok {
			continue
		}
		as, ok := m.parents[f].(*ast.AssignStmt)
		if !ok || len(as.Lhs) != 1 || as.Tok.String() != ":=" || !isName(as.Lhs[0], id.Name) || !m.inBlock(as) {
			continue
		}
		at := m.offset(as.TokPos)
		return m.fix(id.Name+" is declared before its body calls it",
			m.before(as, "var "+id.Name+" "+m.text(f.Type)+"\n"), edit{at, at + 2, "="})
	}
	return false
}
