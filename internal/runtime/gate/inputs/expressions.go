package inputs

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// eval visits an expression and returns what is known of its value.
func (fr *frame) eval(e ast.Expr) *value {
	if e == nil || !fr.f.step() {
		return nil
	}
	if tv := fr.f.info.Types[e]; tv.Value != nil {
		return constantValue(tv.Value)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return fr.eval(e.X)
	case *ast.Ident:
		return fr.lookup(fr.f.info.ObjectOf(e))
	case *ast.SelectorExpr:
		return fr.selector(e)
	case *ast.IndexExpr:
		return fr.index(e)
	case *ast.SliceExpr:
		return fr.slice(e)
	case *ast.StarExpr:
		return fr.eval(e.X)
	case *ast.TypeAssertExpr:
		return fr.asserted(e, false)
	case *ast.CallExpr:
		if results := fr.call(e); len(results) > 0 {
			return results[0]
		}
	case *ast.FuncLit:
		return &value{fn: &closure{e, fr}}
	case *ast.CompositeLit:
		return fr.composite(e)
	case *ast.UnaryExpr:
		if v := fr.eval(e.X); e.Op == token.AND {
			return v
		}
	case *ast.BinaryExpr:
		return fr.binary(e)
	}
	return nil
}

func constantValue(v constant.Value) *value {
	if v.Kind() == constant.String {
		return &value{texts: []string{constant.StringVal(v)}}
	}
	return nil
}

// number returns the constant value of an expression, or of the parameter of an own function that it names.
func (fr *frame) number(e ast.Expr) (int, bool) {
	if e == nil {
		return 0, true
	}
	if v := fr.f.info.Types[e].Value; v != nil && v.Kind() == constant.Int {
		n, exact := constant.Int64Val(v)
		return int(n), exact && n < 1<<20 && n > -1<<20
	}
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		return fr.constant(fr.f.info.ObjectOf(id))
	}
	return 0, false
}

func (fr *frame) selector(e *ast.SelectorExpr) *value {
	x := fr.eval(e.X)
	if x == nil {
		return nil
	}
	if x.fields != nil {
		if r := x.fields[e.Sel.Name]; r != nil {
			return &value{reads: []*read{r}, derived: true, other: r.root().preset != nil}
		}
		return nil
	}
	if !x.call {
		return nil
	}
	switch e.Sel.Name {
	case "Args":
		return &value{args: true}
	case "Kwargs":
		return &value{kwargs: true}
	case "Arg", "Bind": // a method value
		fr.f.open = true
	}
	return nil
}

func (fr *frame) index(e *ast.IndexExpr) *value {
	x := fr.eval(e.X)
	key := fr.eval(e.Index)
	switch {
	case x == nil:
		return nil
	case x.kwargs:
		if key == nil || len(key.texts) == 0 {
			fr.f.open = true
			return nil
		}
		return single(fr.f.named(key.texts))
	case x.args:
		if i, ok := fr.number(e.Index); ok {
			return single(fr.f.at(x.from + i))
		}
		fr.f.readRest(x.from)
		return single(fr.f.rest)
	case len(x.texts) > 0:
		return &value{texts: x.texts}
	}
	return fr.element(x)
}

func single(r *read) *value {
	if r == nil {
		return nil
	}
	return &value{reads: []*read{r}}
}

// element is an element of a list that came as an argument.
func (fr *frame) element(x *value) *value {
	if len(x.reads) != 1 {
		return nil
	}
	return &value{reads: []*read{x.reads[0].element()}}
}

func (fr *frame) slice(e *ast.SliceExpr) *value {
	x := fr.eval(e.X)
	fr.eval(e.Low)
	fr.eval(e.High)
	fr.eval(e.Max)
	switch {
	case x == nil:
		return nil
	case x.args:
		low, ok := fr.number(e.Low)
		if !ok || e.High != nil {
			fr.f.readRest(x.from)
			return &value{args: true, from: x.from}
		}
		return &value{args: true, from: x.from + max(low, 0)}
	case len(x.reads) > 0:
		return &value{reads: x.reads, derived: true, other: x.other}
	}
	return x
}

// asserted is the value of a type assertion; checked says that the program looks whether it held.
func (fr *frame) asserted(e *ast.TypeAssertExpr, checked bool) *value {
	x := fr.eval(e.X)
	if x == nil || e.Type == nil {
		return x
	}
	t := fr.typeOf(e.Type)
	for _, r := range x.reads {
		x.asserted(r.root(), t)
		if !checked && !x.or {
			fr.require(r) // it panics without
		}
	}
	out := *x
	out.derived, out.as = true, false
	return &out
}

// asserted notes that a read of the value is asserted to a type: one that decoded JSON has or, of a converted value, one that it becomes.
func (v *value) asserted(r *read, t types.Type) {
	if !v.as || jsonTypeOf(t) != "" {
		r.is(jsonTypeOf(t))
		return
	}
	of := schemaOf(t, 0)
	name, _ := of["type"].(string)
	r.is(name)
	if items, ok := of["items"].(map[string]any); ok {
		if name, _ = items["type"].(string); name != "" {
			r.element().is(name)
		}
	}
}

func (fr *frame) composite(e *ast.CompositeLit) *value {
	out := &value{}
	for _, el := range e.Elts {
		key := ""
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				key = id.Name
			} else {
				fr.escape(fr.eval(kv.Key))
			}
			el = kv.Value
		}
		v := fr.eval(el)
		if c := fr.f.info.Types[el].Value; c != nil && key != "" {
			if text := encodedConstant(c); text != nil {
				if out.preset == nil {
					out.preset = map[string][]byte{}
				}
				out.preset[key] = text
			}
		}
		if v != nil && len(v.texts) > 0 && key == "" {
			out.texts = unionTexts(out.texts, v.texts)
			continue
		}
		fr.escape(v)
	}
	if out.texts == nil && out.preset == nil {
		return nil
	}
	return out
}

// binary visits both sides. Comparisons are looked at where they are conditions.
func (fr *frame) binary(e *ast.BinaryExpr) *value {
	x, y := fr.eval(e.X), fr.eval(e.Y)
	if e.Op != token.EQL && e.Op != token.NEQ {
		return nil
	}
	for _, side := range []struct {
		v     *value
		other ast.Expr
	}{{x, e.Y}, {y, e.X}} { // call.Arg(0, "mode") == "fast" takes a string
		if side.v == nil || side.v.derived {
			continue
		}
		for _, r := range side.v.reads {
			if t := fr.f.info.TypeOf(side.other); t != nil && !isNil(fr.f.info, side.other) {
				r.root().is(jsonTypeOf(types.Default(t)))
			}
		}
	}
	return nil
}

func isNil(info *types.Info, e ast.Expr) bool {
	tv := info.Types[e]
	return tv.IsNil()
}

// escape notes that a value goes where it is not followed.
func (fr *frame) escape(v *value) {
	if v == nil {
		return
	}
	if v.call || v.kwargs {
		fr.f.open = true
	}
	if v.args {
		fr.f.readRest(v.from)
		fr.f.rest.anything = true
	}
	if !v.derived && fr.failing == 0 {
		for _, r := range v.reads {
			r.root().anything = true
		}
	}
	if v.fn != nil {
		fr.f.unknown(v.fn)
	}
}
