package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// rangeLengths puts an empty array in the place of each array over whose indexes alone a statement ranges, and reports whether there is one. The
// language does not evaluate such an array, unless it has calls or receives to make; go/ssa does, and would read a nil pointer or copy the
// whole array.
func (c *check) rangeLengths() bool {
	found := false
	ast.Inspect(c.file, func(n ast.Node) bool {
		s, ok := n.(*ast.RangeStmt)
		if !ok || s.Value != nil {
			return true
		}
		t := c.info.TypeOf(s.X).Underlying()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem().Underlying()
		}
		if array, ok := t.(*types.Array); ok && !c.hasEffects(s.X) {
			s.X = emptyArray(s.X.Pos(), array.Len())
			found = true
		}
		return true
	})
	return found
}

// emptyArray returns [n]struct{}{}.
func emptyArray(at token.Pos, n int64) ast.Expr {
	length := &ast.BasicLit{ValuePos: at, Kind: token.INT, Value: strconv.FormatInt(n, 10)}
	empty := &ast.StructType{Struct: at, Fields: &ast.FieldList{Opening: at, Closing: at}}
	return &ast.CompositeLit{Type: &ast.ArrayType{Lbrack: at, Len: length, Elt: empty}, Lbrace: at, Rbrace: at}
}

// hasEffects reports whether an expression calls a function or receives from a channel. The length of its value is then not a constant.
func (c *check) hasEffects(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.CallExpr:
			found = found || !c.info.Types[n.Fun].IsType() && c.info.Types[n].Value == nil
		}
		return !found
	})
	return found
}
