package gate

import (
	"go/ast"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

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
