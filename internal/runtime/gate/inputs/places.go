package inputs

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Limits of an interface.
const (
	maxPlaces     = 32 // later positions share one variadic parameter
	maxParameters = 64
)

// ofCall examines one mention of the call. If the call goes anywhere but to a variable or one of the program's own
// functions, all of it may be read.
func (s *scan) ofCall(e ast.Expr) {
	e, p := s.up(e)
	switch p := p.(type) {
	case *ast.SelectorExpr:
		s.selected(p)
	case *ast.CallExpr:
		if s.callee(p) == nil {
			s.everything()
		}
	case *ast.AssignStmt, *ast.ValueSpec:
		to, values := sides(p)
		if i := slices.Index(values, e); i >= 0 && i < len(to) && !isCall(s.info.TypeOf(to[i])) {
			s.everything()
		}
	case *ast.CompositeLit, *ast.KeyValueExpr:
		lit, inside := p.(*ast.CompositeLit)
		if !inside {
			lit, _ = s.parents[p].(*ast.CompositeLit)
		}
		// The fields of a struct are examined where they are used.
		if _, isStruct := s.info.TypeOf(lit).Underlying().(*types.Struct); !isStruct {
			s.everything()
		}
	case *ast.ReturnStmt:
		s.everything()
	}
}

// everything records that the program may read any argument.
func (s *scan) everything() {
	s.open = true
	s.readRest(0)
}

// readRest records that every position from that one on may be read, and returns the read of their elements.
func (s *scan) readRest(from int) *read {
	if s.rest == nil {
		s.rest, s.restFrom = newRead(-1), from
	}
	s.restFrom = min(s.restFrom, from)
	return s.rest
}

// selected examines the use of a field or method of the call.
func (s *scan) selected(sel *ast.SelectorExpr) {
	call, called := s.parents[sel].(*ast.CallExpr)
	switch name := sel.Sel.Name; {
	case name == "Args":
		s.args(sel, 0)
	case name == "Kwargs":
		s.kwargs(sel)
	case name != "Arg" && name != "Bind":
	case called && name == "Bind" && len(call.Args) == 1:
		s.bind(call)
	case called && call.Fun == sel && len(call.Args) == 2:
		s.arg(call)
	default: // call.Arg(f()), or a method as a value
		s.everything()
	}
}

// arg examines call.Arg(i, name).
func (s *scan) arg(call *ast.CallExpr) {
	for _, w := range s.waysTo(call) {
		place, placed := s.number(call.Args[0], w)
		name, hit, named := s.text(call.Args[1], w)
		s.open = s.open || !named
		if !placed {
			s.readRest(0)
			place = -1
		}
		s.found(call, occurrence{place: place, name: name, hit: hit}, w)
	}
}

// args examines the use of the positional arguments after the first from.
func (s *scan) args(e ast.Expr, from int) {
	e, p := s.up(e)
	switch p := p.(type) {
	case *ast.IndexExpr:
		if s.isTarget(p) {
			return
		}
		for _, w := range s.waysTo(p) {
			if place, ok := s.number(p.Index, w); ok {
				s.found(p, occurrence{place: from + place}, w)
			} else {
				s.follow(s.readRest(from), p, w)
			}
		}
		return
	case *ast.SliceExpr:
		if low, ok := s.number(p.Low, nil); ok {
			s.args(p, from+low)
			return
		}
	case *ast.RangeStmt:
		if r := s.readRest(from); p.Value != nil {
			s.usesOf(r, s.object(p.Value), &way{})
		}
		return
	case *ast.CallExpr:
		if s.builtin(p) == "len" {
			s.atLeast(p, from)
			return
		}
	}
	if !s.alias(e, p, func(u ast.Expr) { s.args(u, from) }) {
		s.readRest(from)
	}
}

// kwargs examines the use of the keyword arguments.
func (s *scan) kwargs(e ast.Expr) {
	e, p := s.up(e)
	switch p := p.(type) {
	case *ast.IndexExpr:
		if s.isTarget(p) {
			return
		}
		for _, w := range s.waysTo(p) {
			name, hit, ok := s.text(p.Index, w)
			s.open = s.open || !ok
			s.found(p, occurrence{place: -1, name: name, hit: hit}, w)
		}
		return
	case *ast.CallExpr:
		if name := s.builtin(p); name == "len" || name == "delete" {
			return
		}
	}
	if !s.alias(e, p, s.kwargs) {
		s.open = true
	}
}

// alias examines the uses of a variable, or of a parameter of a function, that only ever holds e. It returns false if e
// goes elsewhere.
func (s *scan) alias(e ast.Expr, p ast.Node, look func(ast.Expr)) bool {
	var v types.Object
	switch p := p.(type) {
	case *ast.BinaryExpr: // a comparison with nil
		return true
	case *ast.CallExpr:
		if v = s.parameter(p, e); v == nil || len(s.set[v]) > 0 || !s.everywhere(p, e) {
			return false
		}
	default:
		to, values := sides(p)
		i := slices.Index(values, e)
		if i < 0 || i >= len(to) {
			return false
		}
		if v = s.object(to[i]); v == nil {
			return isBlank(to[i])
		}
		if s.single(v) != e {
			return false
		}
	}
	if s.looked[e] {
		return true
	}
	s.looked[e] = true
	for _, u := range s.uses[v] {
		look(u)
	}
	return true
}

// everywhere reports whether every call of the function passes the same argument as this one passes as e.
func (s *scan) everywhere(call *ast.CallExpr, e ast.Expr) bool {
	sites, known := s.sites(s.callee(call))
	i := slices.Index(call.Args, e)
	return known && !slices.ContainsFunc(sites, func(c *ast.CallExpr) bool {
		return types.ExprString(c.Args[i]) != types.ExprString(e) || s.object(c.Args[i]) != s.object(e)
	})
}

// bind examines call.Bind(&v): the fields of the struct are parameters, in order.
func (s *scan) bind(call *ast.CallExpr) {
	target := ast.Unparen(call.Args[0])
	if u, ok := target.(*ast.UnaryExpr); ok && u.Op == token.AND {
		target = ast.Unparen(u.X)
	}
	t := s.info.TypeOf(target)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	of, ok := t.Underlying().(*types.Struct)
	if !ok || convertsItself(t, reads) {
		s.everything()
		return
	}
	place := -1
	for i := range of.NumFields() {
		name, ok := fieldName(of, i)
		s.open = s.open || of.Field(i).Embedded()
		if !ok {
			continue
		}
		place++
		// A position that the program also reads under another name belongs to that other parameter.
		at := place
		if slices.ContainsFunc(s.reads, func(r *read) bool {
			return r.place == place &&
				!slices.Contains(r.names, name)
		}) {
			at = -1
		}
		if r := s.parameterOf(occurrence{place: at, name: name}); r != nil {
			s.kind(r, of.Field(i).Type(), true)
			s.needField(r, call, s.object(target), of.Field(i).Name())
		}
	}
}

// isTarget reports whether an expression is the target of an assignment.
func (s *scan) isTarget(e ast.Expr) bool {
	e, p := s.up(e)
	a, ok := p.(*ast.AssignStmt)
	return ok && (a.Tok == token.ASSIGN || a.Tok == token.DEFINE) && slices.Contains(a.Lhs, e)
}

// isBlank reports whether e is the blank identifier.
func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// builtin returns the name of the built-in function that is called, or "".
func (s *scan) builtin(call *ast.CallExpr) string {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := s.info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}
