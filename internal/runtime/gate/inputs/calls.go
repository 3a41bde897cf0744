package inputs

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// call visits a call and returns what is known of its results.
func (fr *frame) call(e *ast.CallExpr) []*value {
	if tv := fr.f.info.Types[e.Fun]; tv.IsType() && len(e.Args) == 1 {
		v := fr.eval(e.Args[0])
		if v != nil && len(v.reads) > 0 {
			return []*value{{reads: v.reads, derived: true, other: v.other}}
		}
		return []*value{v}
	}
	fun := ast.Unparen(e.Fun)
	switch x := fun.(type) { // instances of generic functions
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	switch x := fun.(type) {
	case *ast.Ident:
		switch obj := fr.f.info.Uses[x].(type) {
		case *types.Builtin:
			return fr.builtin(obj.Name(), e)
		case *types.Func:
			return fr.own(e, obj, x, nil)
		}
	case *ast.SelectorExpr:
		if fn, ok := fr.f.info.Uses[x.Sel].(*types.Func); ok {
			return fr.method(e, x, fn)
		}
	}
	if v := fr.eval(e.Fun); v != nil && v.fn != nil {
		return fr.closure(e, v.fn)
	}
	fr.foreign(e)
	return nil
}

func (fr *frame) builtin(name string, e *ast.CallExpr) []*value {
	if name == "panic" {
		fr.failing++
		defer func() { fr.failing-- }()
	}
	var first *value
	for i, a := range e.Args {
		v := fr.eval(a)
		switch {
		case i == 0:
			first = v
		case name != "delete":
			fr.escape(v)
		}
	}
	switch {
	case name == "append":
		return []*value{first}
	case name != "len" && name != "cap" || first == nil:
		return nil
	case first.args:
		return []*value{{count: true, from: first.from}}
	case len(first.reads) > 0:
		return []*value{{sizes: first.reads, other: first.other}}
	}
	return nil
}

// method visits a call of a method or of a package's function.
func (fr *frame) method(e *ast.CallExpr, s *ast.SelectorExpr, fn *types.Func) []*value {
	if fr.f.decls[fn.Origin()] != nil {
		var receiver *value
		if fn.Signature().Recv() != nil {
			receiver = fr.eval(s.X)
		}
		return fr.own(e, fn.Origin(), s.Sel, receiver)
	}
	if x := fr.eval(s.X); x != nil && x.call {
		switch fn.Name() {
		case "Arg":
			return fr.arg(e)
		case "Bind":
			fr.bind(e)
			return nil
		}
	} else if x != nil && len(x.reads) > 0 {
		fr.escape(x)
	}
	if fn.Pkg() != nil && fn.Pkg().Path() == hostPath && fn.Signature().Recv() == nil {
		switch fn.Name() {
		case "Fail", "FailRetriable":
			fr.failing++
			defer func() { fr.failing-- }()
		case "As", "Must", "Maybe", "Or", "Held", "Case":
			return fr.converts(e, fn.Name() == "Or")
		}
	}
	values := fr.foreign(e)
	if keeps(fn) && len(values) > 0 && values[0] != nil && len(values[0].reads) > 0 {
		return []*value{{reads: values[0].reads, derived: true, other: values[0].other}}
	}
	return nil
}

// converts is a call of recurgent.As and its kin: the value of its first argument, for an assertion to be made of. or says that the second one stands for a
// missing one.
func (fr *frame) converts(e *ast.CallExpr, or bool) []*value {
	values := make([]*value, len(e.Args))
	for i, a := range e.Args {
		values[i] = fr.eval(a)
	}
	if values[0] == nil || len(values[0].reads) == 0 {
		return nil
	}
	out := *values[0]
	out.as, out.or = true, or
	if or && len(e.Args) == 2 {
		for _, r := range out.reads {
			fr.defaulted(r, e.Args[1])
		}
	}
	return []*value{&out}
}

// keeps reports whether a function of package strings gives nothing for nothing.
func keeps(fn *types.Func) bool {
	return fn.Pkg() != nil && fn.Pkg().Path() == "strings" && slices.Contains([]string{"TrimSpace", "Trim", "TrimRight", "TrimLeft", "ToLower", "ToUpper", "TrimPrefix", "TrimSuffix", "Fields"}, fn.Name())
}

// foreign visits the arguments of a function that is not followed.
func (fr *frame) foreign(e *ast.CallExpr) []*value {
	out := make([]*value, len(e.Args))
	for i, a := range e.Args {
		out[i] = fr.eval(a)
		fr.escape(out[i])
	}
	return out
}

// arg is call.Arg(i, name).
func (fr *frame) arg(e *ast.CallExpr) []*value {
	if len(e.Args) != 2 {
		fr.f.open = true // call.Arg(f())
		return nil
	}
	place, known := fr.number(e.Args[0])
	name := fr.eval(e.Args[1])
	fr.eval(e.Args[0])
	if name == nil || len(name.texts) == 0 {
		fr.f.open = true
		return nil
	}
	if !known {
		fr.f.readRest(0)
		return []*value{single(fr.f.named(name.texts))}
	}
	return []*value{single(fr.f.either(place, name.texts))}
}

// bind is call.Bind(&v): the fields of the struct in their order.
func (fr *frame) bind(e *ast.CallExpr) {
	if len(e.Args) != 1 {
		fr.f.open = true
		return
	}
	target := ast.Unparen(e.Args[0])
	if u, ok := target.(*ast.UnaryExpr); ok && u.Op == token.AND {
		target = ast.Unparen(u.X)
	}
	t := fr.typeOf(target)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = fr.resolve(p.Elem())
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || decodesItself(t) {
		fr.f.open = true
		return
	}
	before := fr.eval(target)
	fields, place := map[string]*read{}, 0
	for i := range s.NumFields() {
		name, ok := fieldName(s, i)
		if !ok {
			continue
		}
		if s.Field(i).Embedded() {
			fr.f.open = true
		}
		r := fr.field(place, name, s.Field(i))
		if place++; r == nil {
			continue
		}
		if before != nil && before.preset[s.Field(i).Name()] != nil {
			r.optional, r.preset = true, before.preset[s.Field(i).Name()]
		}
		fields[s.Field(i).Name()] = r
	}
	if id, ok := target.(*ast.Ident); ok {
		obj := fr.f.info.ObjectOf(id)
		fr.owner(obj).vars[obj] = &value{fields: fields}
	}
}

// field is the read of a struct's field. A position that the program reads otherwise, too, is that other parameter's.
func (fr *frame) field(place int, name string, v *types.Var) *read {
	n := fr.f.named([]string{name})
	if n == nil {
		return nil
	}
	if p := fr.f.positions[place]; p == nil || p.root() == n.root() {
		n = fr.f.merge(fr.f.at(place), n)
	}
	n = n.root()
	if of := schemaOf(v.Type(), 0); of != nil && n.schema == nil {
		n.schema = encoded(of)
	} else if of == nil {
		n.anything = true
	}
	return n
}

// closure follows a call of a function literal.
func (fr *frame) closure(e *ast.CallExpr, c *closure) []*value {
	f := fr.f
	f.visited[c.lit] = true
	sig, _ := f.info.TypeOf(c.lit).(*types.Signature)
	return fr.follow(e, callee{node: c.lit, typ: c.lit.Type, body: c.lit.Body, sig: sig, parent: c.frame})
}

// own follows a call of one of the program's own functions.
func (fr *frame) own(e *ast.CallExpr, fn *types.Func, name *ast.Ident, receiver *value) []*value {
	d := fr.f.decls[fn.Origin()]
	if d == nil || d.Body == nil {
		fr.foreign(e)
		return nil
	}
	c := callee{node: d, typ: d.Type, body: d.Body, sig: fn.Origin().Signature(), parent: fr.f.globals}
	if in, ok := fr.f.info.Instances[name]; ok && c.sig.TypeParams() != nil {
		c.typeArgs = map[*types.TypeParam]types.Type{}
		for i := range c.sig.TypeParams().Len() {
			c.typeArgs[c.sig.TypeParams().At(i)] = fr.resolve(in.TypeArgs.At(i))
		}
	}
	if d.Recv != nil && len(d.Recv.List) == 1 && len(d.Recv.List[0].Names) == 1 {
		c.receiver, c.received = d.Recv.List[0].Names[0], receiver
	}
	return fr.follow(e, c)
}
