package inputs

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/tokens"
)

// evidence is what a condition says of missing arguments.
type evidence struct {
	reads []*read
	count int // of positional arguments
}

func (e evidence) or(o evidence) evidence {
	return evidence{union(e.reads, o.reads), max(e.count, o.count)}
}

func (e evidence) and(o evidence) evidence {
	var both []*read
	for _, r := range e.reads {
		if contains(o.reads, r) {
			both = append(both, r)
		}
	}
	return evidence{both, min(e.count, o.count)}
}

// absent says which missing arguments make the condition true.
func (fr *frame) absent(cond ast.Expr) evidence { return fr.missingMakes(cond, true) }

// there says which missing arguments make the condition false: where it is true, they are there.
func (fr *frame) there(cond ast.Expr) evidence { return fr.missingMakes(cond, false) }

// missingMakes returns the arguments without which the condition has the value.
func (fr *frame) missingMakes(cond ast.Expr, want bool) evidence {
	switch e := cond.(type) {
	case *ast.ParenExpr:
		return fr.missingMakes(e.X, want)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return fr.missingMakes(e.X, !want)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x, y := fr.missingMakes(e.X, want), fr.missingMakes(e.Y, want)
			if (e.Op == token.LOR) == want { // one side is enough
				return x.or(y)
			}
			return x.and(y)
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return fr.compared(e, want)
		}
	case *ast.Ident:
		if v := fr.lookup(fr.f.info.ObjectOf(e)); v != nil && !want && !v.other {
			return evidence{reads: append(v.present[:len(v.present):len(v.present)], ifDerived(v)...)}
		}
	}
	return evidence{}
}

// ifDerived returns the reads of a boolean that was made of them: a missing one gives false.
func ifDerived(v *value) []*read {
	if v.derived {
		return v.reads
	}
	return nil
}

// compared is missingMakes of a comparison with a constant.
func (fr *frame) compared(e *ast.BinaryExpr, want bool) evidence {
	x, y, op := e.X, e.Y, e.Op
	if fr.f.info.Types[x].Value != nil || isNil(fr.f.info, x) {
		x, y, op = y, x, tokens.Mirrored(op)
	}
	v := fr.eval(x)
	if v == nil || v.other {
		return evidence{}
	}
	if isNil(fr.f.info, y) {
		if (op == token.EQL) == want {
			return evidence{reads: v.reads}
		}
		return evidence{}
	}
	c := fr.f.info.Types[y].Value
	if c == nil {
		if n, ok := fr.number(y); ok { // a constant that the caller gave
			c = constant.MakeInt64(int64(n))
		}
	}
	switch {
	case c == nil:
		return evidence{}
	case v.count:
		return evidence{count: counted(op, c, v.from, want)}
	case len(v.sizes) > 0:
		return holds(v.sizes, constant.MakeInt64(0), op, c, want)
	case len(v.reads) > 0 && v.derived:
		return holds(v.reads, zeroOf(fr.f.info.TypeOf(x)), op, c, want)
	case len(v.reads) > 0 && (op == token.EQL) != want: // nil equals no constant
		return evidence{reads: v.reads}
	}
	return evidence{}
}

// holds gives the reads when the comparison of what they are without an argument comes out as wanted.
func holds(reads []*read, zero constant.Value, op token.Token, c constant.Value, want bool) evidence {
	if zero == nil || !ordered(zero, c) || constant.Compare(zero, op, c) != want {
		return evidence{}
	}
	return evidence{reads: reads}
}

func ordered(a, b constant.Value) bool {
	number := func(v constant.Value) bool { return v.Kind() == constant.Int || v.Kind() == constant.Float }
	return a.Kind() == b.Kind() && a.Kind() == constant.String || number(a) && number(b)
}

func zeroOf(t types.Type) constant.Value {
	if t == nil {
		return nil
	}
	b, ok := t.Underlying().(*types.Basic)
	switch {
	case !ok:
		return nil
	case b.Info()&types.IsString != 0:
		return constant.MakeString("")
	case b.Info()&(types.IsInteger|types.IsFloat) != 0:
		return constant.MakeInt64(0)
	}
	return nil
}

func isZero(info *types.Info, e ast.Expr) bool {
	c := info.Types[e].Value
	if c == nil {
		return isNil(info, e)
	}
	switch c.Kind() {
	case constant.String:
		return constant.StringVal(c) == ""
	case constant.Int, constant.Float:
		return constant.Sign(c) == 0
	}
	return false
}

// counted is the number of positional arguments below which len(call.Args) compared with c gives the wanted result.
func counted(op token.Token, c constant.Value, from int, want bool) int {
	if c.Kind() != constant.Int {
		return 0
	}
	n := 0
	for n <= maxPlaces && constant.Compare(constant.MakeInt64(int64(n)), op, c) == want {
		n++
	}
	if n == 0 || n > maxPlaces {
		return 0
	}
	return from + n
}
