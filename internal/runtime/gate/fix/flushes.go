package fix

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// holding are functions that make a writer which holds back what is written to it, with the methods that write it out.
var holding = map[string][]string{"encoding/csv.NewWriter": {"Flush", "WriteAll"}, "bufio.NewWriter": {"Flush"},
	"bufio.NewWriterSize": {"Flush"}, "compress/gzip.NewWriter": {"Close"}, "compress/gzip.NewWriterLevel": {"Close"}}

// unflushed reports writers that hold back what is written to them until the program has ended.
func (m *fixer) unflushed() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || len(as.Rhs) != 1 {
			return true
		}
		call, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		by, v := holding[m.calledName(call)], m.variable(as.Lhs[0])
		if by == nil || v == nil {
			return true
		}
		switch flushes, known := m.flushes(v, by); {
		case !known:
		case len(flushes) == 0:
			m.name(as, v.Name()+" holds back what is written to it: call "+v.Name()+"."+by[0]+
				"() before what it writes to is closed or used")
		case m.ofBuffer(call.Args[0]) && !slices.ContainsFunc(flushes, func(c ast.Node) bool { return !m.deferred(c) }):
			m.name(flushes[0], "the deferred "+clip(m.text(flushes[0]))+
				" writes after the value has been made: call it before what it writes to is used")
		}
		return true
	})
}

// flushes returns the calls that write out what a writer holds. known is false if others may do so, too.
func (m *fixer) flushes(v *types.Var, by []string) (calls []ast.Node, known bool) {
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.SelectorExpr:
			call, ok := m.parents[p].(*ast.CallExpr)
			if !ok || call.Fun != ast.Expr(p) {
				return nil, false // a method value
			}
			if slices.Contains(by, p.Sel.Name) {
				calls = append(calls, call)
			}
		case *ast.CallExpr:
			if !strings.Contains(m.calledName(p), ".") {
				return nil, false // a function of the program
			}
		default:
			return nil, false
		}
	}
	return calls, true
}

// ofBuffer reports whether a writer is the address of a buffer of the program.
func (m *fixer) ofBuffer(x ast.Expr) bool {
	t := types.TypeString(m.Info.TypeOf(x), nil)
	return t == "*bytes.Buffer" || t == "*strings.Builder"
}

// deferred reports whether a call is deferred to the end of a declared function.
func (m *fixer) deferred(call ast.Node) bool {
	p := m.parents[call]
	if _, ok := p.(*ast.DeferStmt); !ok {
		return false
	}
	for ; p != nil; p = m.parents[p] {
		if _, ok := p.(*ast.FuncLit); ok {
			return false
		}
	}
	return true
}
