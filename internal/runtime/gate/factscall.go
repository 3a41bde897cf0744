package gate

import (
	"go/ast"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// assertion records assertions to float64, and whether one of them discards ok and so takes other values for zero.
func (ff *factFinder) assertion(n *ast.TypeAssertExpr) {
	if n.Type == nil || !types.Identical(ff.c.info.TypeOf(n.Type), types.Typ[types.Float64]) {
		return
	}
	ff.floats = true
	ff.f.TakesForZero = ff.f.TakesForZero || ff.blind[n]
}

// unlooked marks the assertions of an assignment that discards ok.
func (ff *factFinder) unlooked(n *ast.AssignStmt) {
	if len(n.Lhs) != 2 || len(n.Rhs) != 1 {
		return
	}
	ok, blank := n.Lhs[1].(*ast.Ident)
	if assert, asserts := ast.Unparen(n.Rhs[0]).(*ast.TypeAssertExpr); asserts && blank && ok.Name == "_" {
		ff.blind[assert] = true
	}
}

// isHostCall reports whether the variable holds the call or a pointer to it. encoding/json and fmt reach all its
// fields.
func isHostCall(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	return ok && hostCall(v.Type())
}

// hostCall reports whether t is the type Call of the host package or a pointer to it.
func hostCall(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == allow.HostPath && n.Obj().Name() == "Call"
}

// handsOn marks the arguments that pass the call to a function. That function is examined itself, so passing the call
// does not count as a read.
func (ff *factFinder) handsOn(call *ast.CallExpr) {
	sig, ok := ff.c.info.TypeOf(call.Fun).(*types.Signature)
	for i, arg := range call.Args {
		if ok && i < sig.Params().Len() && hostCall(sig.Params().At(i).Type()) {
			ff.skip[ast.Unparen(arg)] = true
		}
	}
}
