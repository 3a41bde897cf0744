package inputs

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
)

// Limits on resolving expressions.
const (
	maxWays  = 4096 // per program
	maxDepth = 16   // length of a chain of variables
)

// A way is one way in which the program reaches a place. It fixes the values of the variables of loops over literal
// lists and of the parameters of the program's own functions.
type way struct {
	bound map[types.Object]binding
	outer *way          // way to the enclosing loop or function literal
	site  *ast.CallExpr // call of the function that contains the place; nil in Run
	from  *way          // way to that call
}

// A binding is the expression that a variable stands for, and the way in which to read it.
type binding struct {
	expr ast.Expr
	in   *way
	hit  *hit // set by a loop that ends with the first name it finds
}

// A hit is the parameter that a loop looks for under several names.
type hit struct{ read *read }

// lookup returns what a variable stands for on this way or one around it.
func (w *way) lookup(obj types.Object) (binding, bool) {
	for ; w != nil; w = w.outer {
		if b, ok := w.bound[obj]; ok {
			return b, true
		}
	}
	return binding{}, false
}

// waysTo returns the ways to a node. If there are too many it returns nil, and the program counts as reading
// everything.
func (s *scan) waysTo(n ast.Node) []*way {
	var loops []*ast.RangeStmt
	for p := s.parents[n]; ; n, p = p, s.parents[p] {
		switch x := p.(type) {
		case *ast.RangeStmt:
			if n == x.Body {
				loops = append(loops, x)
			}
		case nil, *ast.FuncDecl, *ast.FuncLit:
			all := s.waysInto(p)
			for _, loop := range slices.Backward(loops) {
				var next []*way
				for _, w := range all {
					next = append(next, s.around(loop, w)...)
				}
				all = next
			}
			return s.bounded(all)
		}
	}
}

// bounded returns the ways, or nil if the program has had too many by now.
func (s *scan) bounded(all []*way) []*way {
	if s.made += len(all); s.made > maxWays {
		s.everything()
		return nil
	}
	return all
}

// waysInto returns the ways into a function: one for each way to each of its calls, if all calls are known. A nil fn
// stands for the package level.
func (s *scan) waysInto(fn ast.Node) []*way {
	if all, ok := s.ways[fn]; ok {
		return all
	}
	outer := []*way{{}}
	s.ways[fn] = outer // stops the recursion for a function that calls itself
	if lit, ok := fn.(*ast.FuncLit); ok {
		outer = s.waysTo(lit)
	}
	all := outer
	if sites, known := s.sites(fn); known && fn != s.run {
		all = nil
		for _, around := range outer {
			for _, site := range sites {
				for _, from := range s.waysTo(site) {
					all = append(all, &way{bound: s.bindings(fn, site, from), outer: around, site: site, from: from})
				}
			}
		}
	}
	s.ways[fn] = s.bounded(all)
	return s.ways[fn]
}

// sites returns the calls of a function. known is false if it may have others.
func (s *scan) sites(fn ast.Node) (sites []*ast.CallExpr, known bool) {
	obj := s.names[fn]
	for _, id := range s.uses[obj] {
		var e ast.Expr = id
		if sel, ok := s.parents[id].(*ast.SelectorExpr); ok && sel.Sel == id {
			e = sel
		}
		call, ok := s.parents[e].(*ast.CallExpr)
		if !ok || call.Fun != e {
			return nil, false
		}
		sites = append(sites, call)
	}
	return sites, obj != nil
}

// bindings returns what the parameters of a function stand for in one call. Parameters that are assigned to are left
// out.
func (s *scan) bindings(fn ast.Node, site *ast.CallExpr, from *way) map[types.Object]binding {
	bound := map[types.Object]binding{}
	all, variadic := s.parameters(fn)
	for i, obj := range all {
		switch {
		case obj == nil || len(s.set[obj]) > 0:
		case variadic && i == len(all)-1 && !site.Ellipsis.IsValid() && i <= len(site.Args):
			bound[obj] = binding{expr: &ast.CompositeLit{Elts: site.Args[i:]}, in: from}
		case i < len(site.Args):
			bound[obj] = binding{expr: site.Args[i], in: from}
		}
	}
	return bound
}

// parameters returns the parameters of one of the program's own functions, and whether the last one is variadic.
func (s *scan) parameters(fn ast.Node) (all []types.Object, variadic bool) {
	var t *ast.FuncType
	switch fn := fn.(type) {
	case *ast.FuncLit:
		t = fn.Type
	case *ast.FuncDecl:
		t = fn.Type
	}
	for _, f := range t.Params.List {
		for _, name := range f.Names {
			all = append(all, s.info.Defs[name])
		}
		_, variadic = f.Type.(*ast.Ellipsis)
	}
	return all, variadic
}

// parameter returns the parameter of the program's own function that an argument is passed to, or nil.
func (s *scan) parameter(call *ast.CallExpr, arg ast.Expr) types.Object {
	fn, i := s.callee(call), slices.Index(call.Args, arg)
	if fn == nil || i < 0 {
		return nil
	}
	all, variadic := s.parameters(fn)
	if i >= len(all) || variadic && i == len(all)-1 {
		return nil
	}
	return all[i]
}

// callee returns the program's own function that is called, or nil.
func (s *scan) callee(call *ast.CallExpr) ast.Node {
	switch x := ast.Unparen(call.Fun).(type) {
	case *ast.FuncLit:
		return x
	case *ast.Ident:
		return s.decls[origin(s.info.Uses[x])]
	case *ast.SelectorExpr:
		return s.decls[origin(s.info.Uses[x.Sel])]
	}
	return nil
}

// resolve follows variables and elements to the expression that they stand for. The hit is not nil if they come from a
// loop that ends early.
func (s *scan) resolve(e ast.Expr, w *way) (ast.Expr, *way, *hit) {
	var found *hit
	for range maxDepth {
		e = ast.Unparen(e)
		var next ast.Expr
		in := w
		switch x := e.(type) {
		case *ast.Ident:
			obj := s.object(x)
			if b, ok := w.lookup(obj); ok {
				next, in = b.expr, b.in
				if b.hit != nil {
					found = b.hit
				}
			} else if _, ok := obj.(*types.Var); ok {
				next = s.single(obj)
			}
		case *ast.IndexExpr:
			list, of, ok := s.elements(x.X, w)
			if i, known := s.number(x.Index, w); known && ok && i >= 0 && i < len(list) {
				next, in = list[i], of
				_, _, found = s.resolve(x.Index, w)
			}
		}
		if next == nil {
			break
		}
		e, w = next, in
	}
	return e, w, found
}

// text returns the constant string that an expression stands for.
func (s *scan) text(e ast.Expr, w *way) (string, *hit, bool) {
	e, _, found := s.resolve(e, w)
	if c := s.info.Types[e].Value; c != nil && c.Kind() == constant.String {
		return constant.StringVal(c), found, true
	}
	return "", nil, false
}

// number returns the constant integer that an expression stands for.
func (s *scan) number(e ast.Expr, w *way) (int, bool) {
	if e, w, _ = s.resolve(e, w); e == nil {
		return 0, false
	}
	switch x := e.(type) {
	case *ast.BasicLit: // the literal of a loop index has no type
		n, err := strconv.Atoi(x.Value)
		return n, err == nil
	case *ast.BinaryExpr:
		a, ok := s.number(x.X, w)
		if b, known := s.number(x.Y, w); ok && known && x.Op == token.ADD {
			return a + b, true
		}
	}
	c := s.info.Types[e].Value
	if c == nil {
		return 0, false
	}
	n, ok := constant.Int64Val(constant.ToInt(c))
	return int(n), ok && int64(int(n)) == n
}
