package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// untypedNil declares x := nil as a value that may be anything.
func (m *fixer) untypedNil(_ types.Error, path []ast.Node, _ []string) bool {
	as, ok := nearest(path, func(a *ast.AssignStmt) bool { return a.Tok == token.DEFINE })
	return ok && len(as.Lhs) == 1 && len(as.Rhs) == 1 && isName(as.Rhs[0], "nil") && m.inBlock(as) &&
		m.fix("a variable that is nil at first may hold anything", m.replace(as, "var "+m.text(as.Lhs[0])+" any"))
}

// hasKey is added to a program that compares a member of a map with nil where the members have no nil.
const hasKey = `func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}`

// comparedWithNil repairs x == nil of a type that has no nil: a member of a map is there or not, the value of an
// assertion that was checked is there, and so is the result of a function whose error is returned.
func (m *fixer) comparedWithNil(b *ast.BinaryExpr) bool {
	x := b.X
	if isName(x, "nil") {
		x = b.Y
	} else if !isName(b.Y, "nil") {
		return false
	}
	if b.Op != token.EQL && b.Op != token.NEQ || !hasNoNil(m.Info.TypeOf(x)) {
		return false
	}
	not, never := "!", "false"
	if b.Op == token.NEQ {
		not, never = "", "true"
	}
	if ix, ok := ast.Unparen(x).(*ast.IndexExpr); ok && isMap(m.Info.TypeOf(ix.X)) {
		edits, ok := m.given("hasKey", hasKey)
		return ok && len(m.edits) == 0 && m.fix("a key is there or not", append(edits,
			m.replace(b, not+"hasKey("+m.text(ix.X)+", "+m.text(ix.Index)+")"))...)
	}
	return m.definedBefore(m.variable(x), b, not, never)
}

// definedBefore repairs the comparison of a variable whose type has no nil, by what it was set to. not stands before
// what says that there is a value; never is the comparison of one that is always there.
func (m *fixer) definedBefore(v *types.Var, b *ast.BinaryExpr, not, never string) bool {
	def, value := m.definition(v)
	as, ok := def.(*ast.AssignStmt)
	if !ok || value == nil || !m.setOnce(v, def) {
		return false
	}
	const note = "a value of this type is never nil"
	switch value := ast.Unparen(value).(type) {
	case *ast.IndexExpr:
		if isMap(m.Info.TypeOf(value.X)) && len(as.Lhs) == 1 && as.Tok == token.DEFINE && len(m.edits) == 0 {
			there := m.unused("there", "found")
			return m.fix("a key is there or not", m.after(as.Lhs[0], ", "+there), m.replace(b, not+there))
		}
	case *ast.TypeAssertExpr:
		if len(as.Lhs) == 1 {
			return m.fix(note, m.replace(b, never))
		}
		held := m.variable(as.Lhs[1])
		if by, _ := m.definition(held); by == def && m.setOnce(held, def) {
			return m.fix("an assertion says whether it held", m.replace(b, not+held.Name()))
		}
	case *ast.CallExpr:
		if len(as.Lhs) == 2 && isError(m.Info.TypeOf(as.Lhs[1])) && m.checked(as) {
			return m.fix(note, m.replace(b, never))
		}
	}
	return false
}

// isMap reports whether a type, which may be nil, is one of maps.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, is := t.Underlying().(*types.Map)
	return is
}

// checked reports whether the statement after an assignment returns its error.
func (m *fixer) checked(as *ast.AssignStmt) bool {
	list := m.siblings(as)
	i := slices.Index(list, ast.Stmt(as)) + 1
	if i >= len(list) {
		return false
	}
	s, ok := list[i].(*ast.IfStmt)
	if !ok || s.Init != nil || len(s.Body.List) == 0 {
		return false
	}
	b, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr)
	_, returns := s.Body.List[len(s.Body.List)-1].(*ast.ReturnStmt)
	return ok && returns && b.Op == token.NEQ && isName(b.Y, "nil") && m.variable(b.X) != nil &&
		m.variable(b.X) == m.variable(as.Lhs[1])
}

// hasNoNil reports whether values of the type are never nil.
func hasNoNil(t types.Type) bool {
	if t == nil {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UntypedNil && u.Kind() != types.UnsafePointer && u.Kind() != types.Invalid
	case *types.Struct, *types.Array:
		return true
	}
	return false
}

// neverNil reports whether the first value that a call returns has a type without nil. Another may be nil though
// nothing failed.
func (m *fixer) neverNil(as *ast.AssignStmt) bool {
	call, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return false
	}
	sig, ok := m.Info.TypeOf(call.Fun).(*types.Signature)
	return ok && sig.Results().Len() > 0 && hasNoNil(sig.Results().At(0).Type())
}

// nilForFailure takes the check of a result that says failure by nil for the check of the error: if t == nil after
// t := time.Parse(...).
func (m *fixer) nilForFailure(as *ast.AssignStmt, err string) (edits []edit) {
	list := m.siblings(as)
	i := slices.Index(list, ast.Stmt(as)) + 1
	if i >= len(list) || as.Tok != token.DEFINE || !m.neverNil(as) {
		return nil
	}
	s, ok := list[i].(*ast.IfStmt)
	if !ok || s.Init != nil || s.Else != nil || len(s.Body.List) == 0 {
		return nil
	}
	b, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL || !isName(b.Y, "nil") || m.text(b.X) != m.text(as.Lhs[0]) {
		return nil
	}
	if _, returns := s.Body.List[len(s.Body.List)-1].(*ast.ReturnStmt); !returns {
		return nil
	}
	return []edit{m.after(as.Lhs[0], ", "+err), m.replace(s.Cond, err+" != nil")}
}

// pointed converts between a value and a pointer to one. It returns "" for other types.
func (m *fixer) pointed(x ast.Expr, from, to types.Type) string {
	if behindPointers().MatchString(types.TypeString(to, nil)) {
		return ""
	}
	if p, ok := types.Unalias(from).(*types.Pointer); ok && types.Identical(p.Elem(), to) {
		return "*" + m.operandText(x)
	}
	p, ok := types.Unalias(to).(*types.Pointer)
	if !ok || !types.Identical(p.Elem(), from) {
		return ""
	}
	if ix, ok := ast.Unparen(x).(*ast.IndexExpr); ok && m.isPlain(ix) {
		if _, list := m.Info.TypeOf(ix.X).Underlying().(*types.Slice); list {
			return "&" + m.text(x)
		}
	}
	if _, literal := ast.Unparen(x).(*ast.CompositeLit); literal || m.variable(x) != nil && m.ownOfTurn(m.variable(x)) {
		return "&" + m.operandText(x)
	}
	return ""
}

// isPointerTo reports whether a type is a pointer to another.
func (m *fixer) isPointerTo(t, elem types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && types.Identical(p.Elem(), types.Default(elem))
}

// ownOfTurn reports whether a variable is new in each turn of a range and the program changes no part of it, so that
// its address leads to the value that it has now.
func (m *fixer) ownOfTurn(v *types.Var) bool {
	for _, id := range m.usesOf(v) {
		x := ast.Expr(id)
		for m.isPartOf(x) {
			x = m.parents[x].(ast.Expr)
		}
		switch p := m.parents[x].(type) {
		case *ast.AssignStmt:
			if slices.Contains(p.Lhs, x) {
				return false
			}
		case *ast.IncDecStmt:
			return false
		case *ast.RangeStmt:
			if p.X != x {
				return false
			}
		case *ast.UnaryExpr:
			if p.Op == token.AND {
				return false
			}
		case *ast.CallExpr:
			if p.Fun == x && x != ast.Expr(id) { // a method may change it
				return false
			}
		}
	}
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		found = found || ok && m.Info.Scopes[r] != nil && m.Info.Scopes[r] == v.Parent()
		return !found
	})
	return found
}

// isPartOf reports whether an expression stands before a field or an index.
func (m *fixer) isPartOf(x ast.Expr) bool {
	switch p := m.parents[x].(type) {
	case *ast.ParenExpr:
		return true
	case *ast.SelectorExpr:
		return p.X == x
	case *ast.IndexExpr:
		return p.X == x
	}
	return false
}

// operandText returns the text of an expression in parentheses, if an operator before it needs them.
func (m *fixer) operandText(x ast.Expr) string {
	if _, ok := x.(*ast.BinaryExpr); ok {
		return "(" + m.text(x) + ")"
	}
	return m.text(x)
}

// behindPointer reads what a pointer leads to, where its length, its elements or its turns are wanted.
func (m *fixer) behindPointer(x ast.Expr) bool {
	t := m.Info.TypeOf(x)
	if t == nil {
		return false
	}
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	switch p.Elem().Underlying().(type) {
	case *types.Slice, *types.Map, *types.Basic:
		return m.fix(clip(m.text(x))+" is a pointer: what it leads to is read", m.replace(x, "(*"+m.text(x)+")"))
	}
	return false
}

// setBehind appends to the list that a parameter points to, as in s = append(*s, v) of a method of a list.
func (m *fixer) setBehind(x ast.Expr) bool {
	as, ok := m.parents[x].(*ast.AssignStmt)
	if !ok || as.Tok != token.ASSIGN || len(as.Lhs) != 1 || len(as.Rhs) != 1 {
		return false
	}
	v := m.variable(as.Lhs[0])
	if def, _ := m.definition(v); v == nil || def != nil || v.IsField() {
		return false
	}
	// Another value may be meant as the next place of a walk: n = *n.Next.
	if c, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr); !ok || !isName(c.Fun, "append") {
		return false
	}
	return m.isPointerTo(v.Type(), m.Info.TypeOf(x)) &&
		m.fix(v.Name()+" is a pointer: what it leads to is set", m.before(as.Lhs[0], "*"))
}

// appendedTo appends to the list that a pointer leads to.
func (m *fixer) appendedTo(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return isName(c.Fun, "append") && len(c.Args) > 0 })
	return ok && (m.behindPointer(c.Args[0]) || m.retyped(c.Args[0]))
}

// retyped gives a map of any the type of its members where the program sets them to lists of one type only, and appends
// to them.
func (m *fixer) retyped(x ast.Expr) bool {
	ix, ok := ast.Unparen(x).(*ast.IndexExpr)
	if !ok {
		return false
	}
	v := m.variable(ix.X)
	def, value := m.definition(v)
	var typ ast.Expr
	switch e := value.(type) {
	case *ast.CallExpr:
		if isName(e.Fun, "make") {
			typ = e.Args[0]
		}
	case *ast.CompositeLit:
		if len(e.Elts) == 0 {
			typ = e.Type
		}
	}
	mt, ok := typ.(*ast.MapType)
	if !ok || !m.setOnce(v, def) {
		return false
	}
	to := ""
	for _, id := range m.usesOf(v) {
		p, indexed := m.parents[id].(*ast.IndexExpr)
		switch _, returned := m.parents[id].(*ast.ReturnStmt); {
		case returned:
			continue
		case !indexed:
			if r, over := m.parents[id].(*ast.RangeStmt); !over || r.X != ast.Expr(id) {
				return false
			}
			continue
		}
		as, set := m.parents[p].(*ast.AssignStmt)
		if !set || !slices.Contains(as.Lhs, ast.Expr(p)) || len(as.Lhs) != 1 {
			continue
		}
		switch e := as.Rhs[0].(type) {
		case *ast.CompositeLit:
			if _, list := e.Type.(*ast.ArrayType); !list || to != "" && to != m.text(e.Type) {
				return false
			}
			to = m.text(e.Type)
		case *ast.CallExpr:
			if !isName(e.Fun, "append") || m.text(e.Args[0]) != m.text(p) {
				return false
			}
		default:
			return false
		}
	}
	return to != "" && m.fix("the members of "+v.Name()+" are "+to, m.replace(mt.Value, to))
}
