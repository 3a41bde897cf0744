package interp

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"unsafe"

	"golang.org/x/tools/go/ssa"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// convertedTexts returns where the program's text converts constant strings. Of []byte("abc") and []rune("abc") the compiler makes an array of three, so
// that append copies what it appends to; of other strings a slice may have room for more, which two calls of append share. Values do not say
// which they are of: go/ssa makes constants of variables, too.
func convertedTexts(units []gate.Unit) map[token.Pos]bool {
	found := map[token.Pos]bool{}
	for _, u := range units {
		for _, f := range u.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && u.Info.Types[call.Fun].IsType() && isConstantText(u.Info, call.Args[0]) {
					found[call.Lparen] = true
				}
				return true
			})
		}
	}
	return found
}

func isConstantText(info *types.Info, e ast.Expr) bool {
	v := info.Types[e].Value
	return v != nil && v.Kind() == constant.String
}

// withoutRoom compiles a conversion. A slice of what is a constant string in the program's text has no room for more.
func (c *compiler) withoutRoom(in ssa.Value, convert op) op {
	if _, slice := in.Type().Underlying().(*types.Slice); !slice || !c.mc.constantTexts[in.Pos()] {
		return convert
	}
	d := c.off(in)
	return func(m unsafe.Pointer) {
		convert(m)
		s := at[sliceHeader](m, d)
		s.cap = s.len
	}
}
