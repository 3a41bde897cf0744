package outside

import (
	"go/ast"
	"go/types"
)

// origins returns the expressions that a value may come from. A nil among them means that it may also come from
// elsewhere.
func (f *flows) origins(e ast.Expr, depth int) []ast.Expr {
	if f.steps--; e == nil || depth > maxDepth || f.steps < 0 {
		return []ast.Expr{nil}
	}
	if o := f.object(e); o != nil {
		return f.originsOf(o, depth)
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return f.elements(x.X, depth+1)
	case *ast.CallExpr:
		if id, ok := ast.Unparen(x.Fun).(*ast.Ident); ok {
			if fn, ok := f.info.Uses[id].(*types.Func); ok && f.returns[fn] != nil {
				return f.follow(f.returns[fn], depth)
			}
		}
		return []ast.Expr{x}
	case *ast.CompositeLit:
		return []ast.Expr{x}
	case *ast.BinaryExpr, *ast.BasicLit:
		return []ast.Expr{x}
	}
	return []ast.Expr{nil}
}

// follow returns the origins of all expressions in the list.
func (f *flows) follow(list []ast.Expr, depth int) (out []ast.Expr) {
	for _, e := range list {
		switch {
		case e == nil:
			out = append(out, nil)
		case f.info.Types[e].Value != nil:
			out = append(out, e)
		default:
			out = append(out, f.origins(e, depth+1)...)
		}
		if len(out) > maxTexts {
			return []ast.Expr{nil}
		}
	}
	return out
}

// originsOf returns the origins of a variable, a parameter or a field. An object that the program never sets may be set
// elsewhere.
func (f *flows) originsOf(o types.Object, depth int) []ast.Expr {
	values, known := f.values[o]
	out := f.follow(values, depth)
	if p, is := f.params[o]; is {
		known = true
		for _, c := range f.calls[p.of] {
			if c == nil || p.place >= len(c.Args) || c.Ellipsis.IsValid() {
				return []ast.Expr{nil}
			}
			out = append(out, f.follow(c.Args[p.place:p.place+1], depth)...)
		}
	}
	for _, x := range f.ranges[o] {
		known = true
		out = append(out, f.elements(x, depth+1)...)
	}
	if !known || len(out) > maxTexts {
		return []ast.Expr{nil}
	}
	return out
}

// elements returns the origins of the elements of a list or the values of a map.
func (f *flows) elements(e ast.Expr, depth int) (out []ast.Expr) {
	for _, o := range f.origins(e, depth+1) {
		switch x := o.(type) {
		case *ast.CompositeLit:
			for _, e := range x.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				out = append(out, f.follow([]ast.Expr{e}, depth)...)
			}
		default:
			return []ast.Expr{nil}
		}
		if len(out) > maxTexts {
			return []ast.Expr{nil}
		}
	}
	return out
}

// roles returns the possible roles of a tool. role returns the argument that names the role if a call creates a tool,
// and nil otherwise.
func (f *flows) roles(e ast.Expr, role func(*ast.CallExpr) ast.Expr, depth int) []text {
	var out []text
	for _, o := range f.origins(e, depth+1) {
		call, ok := o.(*ast.CallExpr)
		if !ok {
			return unknown()
		}
		name := role(call)
		if name == nil {
			return unknown()
		}
		out = append(out, f.texts(name, depth+1)...)
	}
	if len(out) == 0 {
		return unknown()
	}
	return out
}
