package inputs

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// A taking describes how the program takes the value of a parameter.
type taking struct {
	top          ast.Expr     // the value with its conversions
	ends         bool         // a missing value ends the program there
	given        bool         // the conversion replaces a missing value
	stmt         ast.Node     // the assignment; nil if there is none
	value, there types.Object // the variables that it sets: the value, and whether it is there
}

// takes follows a read through its conversions to the assignment of its value.
func (s *scan) takes(e ast.Expr) (t taking) {
	for {
		var p ast.Node
		e, p = s.up(e)
		t.top = e
		to, values := sides(p)
		switch x := p.(type) {
		case *ast.CallExpr:
			name := s.converts(x, e)
			if name == "" {
				return t
			}
			t.ends, t.given, e = name == "Must", name == "Or", x
			continue
		case *ast.TypeAssertExpr:
			around, whole := s.up(x)
			if x.Type == nil {
				return t
			}
			to, values = sides(whole)
			t.ends, e = t.ends || !(len(to) == 2 && len(values) == 1), around
			continue
		}
		if i := slices.Index(values, e); i >= 0 && i < len(to) {
			t.stmt, t.value = p, s.object(to[i])
			if len(to) == 2 && len(values) == 1 {
				t.there = s.object(to[1])
			}
		}
		return t
	}
}

// need records whether the program fails without a parameter, or replaces a missing one.
func (s *scan) need(r *read, t taking, w *way) {
	if t.ends && !t.given {
		r.must = r.must || s.always(t.top, w)
	}
	if b, ok := s.parents[t.top].(*ast.BinaryExpr); ok && b.Op == token.EQL && isNil(s.info, b.Y) {
		r.must = r.must || s.fatal(b)
	}
	if t.ends || t.given || t.stmt == nil {
		return
	}
	for _, st := range s.behind(t.stmt) {
		test, ok := st.(*ast.IfStmt)
		if ok && s.any(test.Cond, func(cond ast.Expr) bool { return s.isMissing(cond, t) }) {
			other := s.replacement(test.Body, t.value)
			switch {
			case s.fails(test.Body):
				r.must = r.must || s.always(test, w)
				return
			case other == nil:
				return
			case s.info.Types[other].Value != nil:
				r.defaults(encodedConstant(s.info.Types[other].Value))
				return
			}
			if w.site == nil && w.outer == nil {
				s.fallback[s.unconverted(other)] = r // the program looks for the same parameter in another place
			}
		} else if s.assigns(st, t.value) || s.assigns(st, t.there) {
			return
		}
	}
}

// needField records whether the program fails if Bind leaves a field empty.
func (s *scan) needField(r *read, call *ast.CallExpr, v types.Object, field string) {
	var n ast.Node = call
	for ; n != nil; n = s.parents[n] {
		if _, ok := s.parents[n].(*ast.BlockStmt); ok {
			break
		}
	}
	for _, st := range s.behind(n) {
		test, ok := st.(*ast.IfStmt)
		if ok && s.any(test.Cond, func(cond ast.Expr) bool { return s.isZero(cond, v, field) }) {
			r.must = r.must || s.fails(test.Body) && s.always(test, &way{})
			return
		}
		if s.assigns(st, v) {
			return
		}
	}
}

// isMissing reports whether a condition holds if the argument is missing.
func (s *scan) isMissing(cond ast.Expr, t taking) bool {
	if not, ok := cond.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		return t.there != nil && s.object(not.X) == t.there
	}
	return s.isZero(cond, t.value, "")
}

// isZero reports whether a comparison holds for the zero value of a variable, or of one of its fields if field is not
// "".
func (s *scan) isZero(cond ast.Expr, v types.Object, field string) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok || v == nil {
		return false
	}
	x, length := b.X, false
	for call, ok := x.(*ast.CallExpr); ok && len(call.Args) == 1 &&
		(s.builtin(call) == "len" || types.ExprString(call.Fun) == "strings.TrimSpace"); call, ok = x.(*ast.CallExpr) {
		x, length = call.Args[0], length || s.builtin(call) == "len"
	}
	of := x
	if sel, ok := x.(*ast.SelectorExpr); ok && sel.Sel.Name == field {
		of = sel.X
	} else if field != "" {
		return false
	}
	c := s.info.Types[b.Y].Value
	switch {
	case s.object(of) != v:
		return false
	case isNil(s.info, b.Y):
		return b.Op == token.EQL
	case c == nil || types.IsInterface(s.info.TypeOf(x)):
		return false
	case c.Kind() == constant.String:
		return constant.Compare(constant.MakeString(""), b.Op, c)
	}
	return c.Kind() != constant.Bool && constant.Compare(constant.MakeInt64(0), b.Op, c)
}

// any reports whether is holds for a condition, or for one of the conditions that it joins by ||.
func (s *scan) any(cond ast.Expr, is func(ast.Expr) bool) bool {
	cond = ast.Unparen(cond)
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op == token.LOR {
		return s.any(b.X, is) || s.any(b.Y, is)
	}
	return is(cond)
}

// behind returns the statements that run after an assignment: the if statement whose header it is in, and the rest of
// the block.
func (s *scan) behind(n ast.Node) (out []ast.Stmt) {
	for n != nil {
		p := s.parents[n]
		switch x := p.(type) {
		case *ast.IfStmt:
			out = append(out, x)
		case *ast.BlockStmt:
			return append(out, x.List[slices.Index(x.List, n.(ast.Stmt))+1:]...)
		case *ast.GenDecl, *ast.DeclStmt:
		default:
			return out
		}
		n = p
	}
	return out
}

// fails reports whether a block ends by returning an error or by a panic.
func (s *scan) fails(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch last := b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt:
		return s.failing(last)
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		return ok && s.builtin(call) == "panic"
	}
	return false
}

// failing reports whether a statement returns an error.
func (s *scan) failing(r *ast.ReturnStmt) bool {
	if len(r.Results) == 0 {
		return false
	}
	last := r.Results[len(r.Results)-1]
	t := s.info.TypeOf(last)
	return !isNil(s.info, last) && t != nil && types.Implements(t,
		types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// replacement returns the value that a block assigns to the variable if that is its only statement, or nil.
func (s *scan) replacement(b *ast.BlockStmt, v types.Object) ast.Expr {
	if len(b.List) != 1 {
		return nil
	}
	if to, values := sides(b.List[0]); v != nil && len(values) == 1 && s.object(to[0]) == v {
		return values[0]
	}
	return nil
}

// unconverted removes a type assertion and a conversion by the host package from an expression.
func (s *scan) unconverted(e ast.Expr) ast.Expr {
	if x, ok := e.(*ast.TypeAssertExpr); ok {
		e = x.X
	}
	if x, ok := e.(*ast.CallExpr); ok && len(x.Args) > 0 && s.converts(x, x.Args[0]) != "" {
		e = x.Args[0]
	}
	return e
}

// assigns reports whether a statement assigns to a variable or one of its fields.
func (s *scan) assigns(st ast.Stmt, v types.Object) (found bool) {
	ast.Inspect(st, func(n ast.Node) bool {
		to, _ := sides(n)
		for _, e := range to {
			if sel, ok := e.(*ast.SelectorExpr); ok {
				e = sel.X
			}
			found = found || v != nil && s.object(e) == v
		}
		return !found
	})
	return found
}

// always reports whether every run reaches node n of Run, unless it fails before.
func (s *scan) always(n ast.Node, w *way) bool {
	for p := s.parents[n]; n != s.run; n, p = p, s.parents[p] {
		switch x := p.(type) {
		case *ast.BlockStmt:
			if slices.ContainsFunc(x.List[:slices.Index(x.List, n.(ast.Stmt))], s.leaves) {
				return false
			}
		case *ast.IfStmt:
			if n == x.Body || n == x.Else {
				return false
			}
		case *ast.RangeStmt:
			if list, _, ok := s.elements(x.X, w); n == x.Body && (!ok || len(list) == 0 || s.leaves(x.Body)) {
				return false
			}
		case *ast.BinaryExpr:
			if n == x.Y && (x.Op == token.LAND || x.Op == token.LOR) {
				return false
			}
		case nil, *ast.FuncLit, *ast.ForStmt, *ast.CaseClause, *ast.CommClause, *ast.GoStmt, *ast.DeferStmt,
			*ast.LabeledStmt:
			return false
		}
	}
	return true
}

// leaves reports whether a statement may end the function or the enclosing loop without a failure.
func (s *scan) leaves(st ast.Stmt) (leaves bool) {
	ast.Inspect(st, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BranchStmt:
			to := s.ended(n)
			leaves = leaves || n.Label != nil || n.Tok == token.GOTO || to == nil || to.Pos() < st.Pos()
		case *ast.ReturnStmt:
			leaves = leaves || !s.failing(n)
		}
		return true
	})
	return leaves
}

// fatal reports whether every run fails in which the comparison holds.
func (s *scan) fatal(b *ast.BinaryExpr) bool {
	e, p := s.up(b)
	for x, ok := p.(*ast.BinaryExpr); ok && x.Op == token.LOR; x, ok = p.(*ast.BinaryExpr) {
		e, p = s.up(x)
	}
	test, ok := p.(*ast.IfStmt)
	return ok && test.Cond == e && s.fails(test.Body) && s.always(test, &way{})
}

// atLeast derives the minimum number of positional arguments from a comparison of their number. length is the number of
// those after the first from.
func (s *scan) atLeast(length *ast.CallExpr, from int) {
	b, ok := s.parents[length].(*ast.BinaryExpr)
	if !ok || b.X != length || s.info.Types[b.Y].Value == nil || !s.fatal(b) {
		return
	}
	few := 0
	for few < maxPlaces && constant.Compare(constant.MakeInt64(int64(few)), b.Op, s.info.Types[b.Y].Value) {
		few++
	}
	s.minimum = max(s.minimum, from+few)
}
