package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// orderCalls makes statements evaluate in the toolchain's order. The language leaves open whether the operands of node{pos: p.pos, kid: p.parse()} or
// t.nodes[i].left = t.build() are read before or after the call; the toolchain makes the calls of a statement first and reads variables, fields and elements
// afterwards, go/ssa reads each as it comes, and programs come to rely on the former. So where a statement both calls and reads,
// its calls move into variables before it, in their order. orderCalls reports whether it moved any.
func (c *check) orderCalls() bool {
	o := &orderer{c: c, packages: map[string]string{}, prefix: "moved_"}
	for strings.Contains(c.source, o.prefix) {
		o.prefix += "_"
	}
	for _, spec := range c.file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			o.packages[c.importName(spec)] = path
		}
	}
	o.survey()
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			n.List = o.list(n.List)
		case *ast.CaseClause:
			n.Body = o.list(n.Body)
		case *ast.CommClause:
			n.Body = o.list(n.Body)
		case *ast.IfStmt:
			if next, ok := n.Else.(*ast.IfStmt); ok {
				if _, out := o.open(next); out != ast.Stmt(next) {
					n.Else = out
				} else if moved := o.stmt(next); len(moved) > 0 {
					n.Else = &ast.BlockStmt{Lbrace: next.Pos(), List: append(moved, next), Rbrace: next.End()}
				}
			}
		}
		return true
	})
	return o.count > 0
}

type orderer struct {
	c        *check
	packages map[string]string    // name to path
	shared   map[*ast.Object]bool // variables that calls may change
	jumps    map[string]bool      // labels of goto statements
	prefix   string               // of the names of new variables; the program has no such name
	count    int
}

func (o *orderer) list(stmts []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for i, s := range stmts {
		moved, opened := o.open(s)
		if opened == s {
			moved = append(moved, o.stmt(s)...)
		}
		if (len(moved) > 0 || opened != s) && out == nil {
			out = slices.Clone(stmts[:i])
		}
		if out != nil {
			out = append(append(out, moved...), opened)
		}
	}
	if out == nil {
		return stmts
	}
	return out
}

// stmt moves the calls of a statement that also reads, and returns the statements that go before it.
func (o *orderer) stmt(s ast.Stmt) (moved []ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return o.assign(s)
	case *ast.ReturnStmt:
		o.exprs(s.Results, 0, &moved)
	case *ast.ExprStmt:
		if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok && o.risky(0, call) {
			o.operands(call, &moved)
		}
	case *ast.DeferStmt: // the function and its operands are evaluated now
		if o.risky(0, s.Call) {
			o.operands(s.Call, &moved)
		}
	case *ast.SendStmt:
		if o.risky(0, s.Chan, s.Value) {
			o.move(&s.Chan, &moved)
			o.move(&s.Value, &moved)
		}
	case *ast.IfStmt:
		if s.Init == nil && o.risky(0, s.Cond) {
			o.move(&s.Cond, &moved)
		}
	case *ast.DeclStmt:
		if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR && len(g.Specs) == 1 {
			o.exprs(g.Specs[0].(*ast.ValueSpec).Values, 0, &moved)
		}
	}
	return moved
}

// exprs moves the calls of expressions that are evaluated together. A single call stays, whatever it returns; so do its reads,
// which come after its operands' calls anyway.
func (o *orderer) exprs(list []ast.Expr, reads int, moved *[]ast.Stmt) {
	if !o.risky(reads, list...) {
		return
	}
	if len(list) == 1 && reads == 0 {
		if call, ok := ast.Unparen(list[0]).(*ast.CallExpr); ok {
			o.operands(call, moved)
			return
		}
	}
	for i := range list {
		o.move(&list[i], moved)
	}
}

// assign moves the calls of an assignment.
func (o *orderer) assign(a *ast.AssignStmt) (moved []ast.Stmt) {
	reads := 0
	if a.Tok != token.DEFINE {
		for _, l := range a.Lhs {
			if _, plain := ast.Unparen(l).(*ast.Ident); !plain || a.Tok != token.ASSIGN {
				reads++
			}
		}
	}
	if !o.risky(reads, a.Rhs...) {
		return nil
	}
	if a.Tok != token.DEFINE {
		for i := range a.Lhs {
			o.moveOperand(a.Lhs[i], &moved)
		}
	}
	if len(a.Rhs) == 1 && len(a.Lhs) > 1 {
		call, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
		if !ok {
			return moved
		}
		o.operands(call, &moved)
		if reads > 0 {
			moved = append(moved, o.tuple(a, call))
		}
		return moved
	}
	o.exprs(a.Rhs, reads, &moved)
	return moved
}

// tuple moves a call with several results.
func (o *orderer) tuple(a *ast.AssignStmt, call *ast.CallExpr) ast.Stmt {
	var names, uses []ast.Expr
	for range a.Lhs {
		def, use := o.variable(call.Pos())
		names, uses = append(names, def), append(uses, use)
	}
	a.Rhs = uses
	return &ast.AssignStmt{Lhs: names, TokPos: call.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{call}}
}

func (o *orderer) variable(pos token.Pos) (def, use *ast.Ident) {
	o.count++
	name := fmt.Sprintf("%s%d", o.prefix, o.count)
	return &ast.Ident{NamePos: pos, Name: name}, &ast.Ident{NamePos: pos, Name: name}
}

// risky reports whether expressions that are evaluated together call something of the program's own and, besides, read
// what it may change.
func (o *orderer) risky(reads int, list ...ast.Expr) bool {
	calls, nested := 0, false
	for _, e := range list {
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.KeyValueExpr:
				if _, field := n.Key.(*ast.Ident); field {
					ast.Inspect(n.Value, func(m ast.Node) bool {
						if x, ok := m.(ast.Expr); ok && x == n.Value {
							nested = nested || o.risky(0, x)
							if o.ownCall(x) {
								calls++
							}
						}
						return true
					})
				}
			case *ast.CallExpr:
				if o.ownCall(n) {
					calls++
				}
			case *ast.Ident:
				if n.Obj == nil || n.Obj.Kind == ast.Var {
					reads++
				}
			}
			return true
		})
	}
	return nested || calls > 0 && reads > 0
}

// inOrder returns the built-in functions that the toolchain calls in order with others.
func inOrder() []string {
	return []string{"append", "cap", "complex", "copy", "imag", "len", "make", "max", "min", "new", "real"}
}

func predeclared(name string) bool {
	return slices.Contains([]string{"append", "cap", "clear", "complex", "copy", "imag", "len", "make", "max", "min", "new", "real", "recover",
		"string", "bool", "byte", "rune", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr",
		"float32", "float64", "complex64", "complex128", "any", "error"}, name)
}
