package order

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/astutil"
)

// bindMethods replaces method values whose receiver has a type parameter's type by function literals, and reports whether there were any. The
// compiler evaluates only the receiver, panics if it is a nil interface, and follows embedded fields when the method is called. go/ssa knows the type
// argument: it would follow embedded fields at once, and panic where an embedded pointer or interface is nil.
func (o *orderer) bindMethods(file *ast.File) bool {
	found, recovering := false, recoveringMethods(file)
	astutil.Apply(file, nil, func(c *astutil.Cursor) bool {
		s, ok := c.Node().(*ast.SelectorExpr)
		if !ok {
			return true
		}
		sel := o.info.Selections[s]
		if sel == nil || sel.Kind() != types.MethodVal {
			return true
		}
		if _, ok := types.Unalias(sel.Recv()).(*types.TypeParam); !ok || isCalled(c) {
			return true
		}
		found = true
		if lit := o.bound(s, sel.Type().(*types.Signature)); lit != nil && !recovering[s.Sel.Name] {
			c.Replace(lit)
		} else {
			o.fail(s.Pos())
		}
		return true
	})
	return found
}

// recoveringMethods returns the names of the methods that call recover: called by a function literal that is deferred they would find nothing.
func recoveringMethods(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Body != nil && recovers(f.Body) {
			names[f.Name.Name] = true
		}
	}
	return names
}

// isCalled reports whether the node is the function of a call.
func isCalled(c *astutil.Cursor) bool {
	call, ok := c.Parent().(*ast.CallExpr)
	return ok && c.Name() == "Fun" && call.Fun == c.Node()
}

func (o *orderer) bound(s *ast.SelectorExpr, sig *types.Signature) ast.Expr {
	at := s.Pos()
	inner, _ := o.funcType(sig, at, o.prefix+"p").(*ast.FuncType)
	outer := o.funcType(sig, at, "")
	if inner == nil || outer == nil {
		return nil
	}
	def, recv := o.variable(at)
	call := &ast.CallExpr{Fun: &ast.SelectorExpr{X: recv, Sel: s.Sel}, Lparen: at, Rparen: at}
	for i := range sig.Params().Len() {
		call.Args = append(call.Args, &ast.Ident{NamePos: at, Name: fmt.Sprintf("%sp%d", o.prefix, i)})
	}
	if sig.Variadic() {
		call.Ellipsis = at
	}
	var body ast.Stmt = &ast.ExprStmt{X: call}
	if sig.Results().Len() > 0 {
		body = &ast.ReturnStmt{Return: at, Results: []ast.Expr{call}}
	}
	lit := &ast.FuncLit{Type: inner, Body: block(s, []ast.Stmt{body})}
	empty := &ast.InterfaceType{Interface: at, Methods: &ast.FieldList{Opening: at, Closing: at}}
	none := &ast.CallExpr{Fun: &ast.ParenExpr{Lparen: at, X: &ast.StarExpr{Star: at, X: empty}, Rparen: at}, Lparen: at, Args: []ast.Expr{&ast.Ident{NamePos: at, Name: "nil"}}, Rparen: at}
	fails := &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{NamePos: at, Name: "_"}}, TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{&ast.StarExpr{Star: at, X: none}}}
	isNil := &ast.BinaryExpr{X: &ast.CallExpr{Fun: &ast.ParenExpr{Lparen: at, X: empty, Rparen: at}, Lparen: at, Args: []ast.Expr{name(def)}, Rparen: at},
		OpPos: at, Op: token.EQL, Y: &ast.Ident{NamePos: at, Name: "nil"}}
	return called(s, outer, []ast.Stmt{define(def, s.X), &ast.IfStmt{If: at, Cond: isNil, Body: block(s, []ast.Stmt{fails})}, &ast.ReturnStmt{Return: at, Results: []ast.Expr{lit}}})
}
