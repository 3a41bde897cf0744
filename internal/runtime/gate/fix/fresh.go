package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// isFresh reports whether a variable is the only reference to its list: the function creates the list, and neither
// stores nor passes it elsewhere before it returns. It does not matter then whether the list is changed or copied.
func (m *fixer) isFresh(v *types.Var) bool {
	if v == nil || isNamed(v.Type()) || v.Parent() == nil || v.Parent() == m.Pkg.Scope() || v.IsField() {
		return false
	}
	def, value := m.definition(v)
	if def == nil || value != nil && !m.makesList(value, v) {
		return false
	}
	for id, obj := range m.Info.Uses {
		if obj == v && !m.ofOwner(id, v) {
			return false
		}
	}
	return true
}

// makesList reports whether an expression is a new list, or the variable's own with elements appended or sorted.
func (m *fixer) makesList(x ast.Expr, v *types.Var) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		return isName(x.Fun, "make") || makers().MatchString(m.text(x.Fun)) || splits().MatchString(m.callee(x)) ||
			isName(x.Fun, "append") &&
				m.variable(x.Args[0]) == v || sorting().MatchString(m.callee(x)) && m.variable(x.Args[0]) == v
	}
	return isName(x, "nil")
}

// splits matches functions that return a new list.
var splits = lazy.Regexp(`^(?:strings\.(?:Fields|FieldsFunc|Split|SplitN)|slices\.Clone)$`)

// makers matches helpers that return a new list, and functions that collect one.
var makers = lazy.Regexp(`^(?:filtered|mapped|unique|reversed|slices\.(?:Collect|Sorted|SortedFunc|Concat|Repeat))$`)

// readers matches functions that keep nothing of the lists they are given.
var readers = lazy.Regexp(`^(?:len|cap|strings\.\w+|fmt\.\w+|slices\.(?:Contains|Index|Max|Min))$`)

// ofOwner reports whether a use of the variable creates no other reference to its list.
func (m *fixer) ofOwner(id *ast.Ident, v *types.Var) bool {
	switch p := m.parents[id].(type) {
	case *ast.IndexExpr:
		return p.X == id
	case *ast.RangeStmt:
		return p.X == id
	case *ast.BinaryExpr, *ast.SelectorExpr:
		return true
	case *ast.KeyValueExpr:
		lit, _ := m.parents[p].(*ast.CompositeLit)
		r, returned := m.parents[lit].(*ast.ReturnStmt)
		return lit != nil && returned && p.Value == ast.Expr(id) && !m.inLiteral(r)
	case *ast.ReturnStmt:
		t, _ := m.resultsOf(p)
		_, declared := m.parents[t].(*ast.FuncDecl)
		return declared
	case *ast.AssignStmt:
		i := slices.Index(p.Lhs, ast.Expr(id))
		return i >= 0 && len(p.Lhs) == len(p.Rhs) && m.makesList(p.Rhs[i], v)
	case *ast.CallExpr:
		if isName(p.Fun, "append") {
			as, set := m.parents[p].(*ast.AssignStmt)
			_, stands := m.parents[p].(*ast.ExprStmt)
			return p.Args[0] == id && (stands || set && len(as.Lhs) == 1 && m.variable(as.Lhs[0]) == v)
		}
		if sorting().MatchString(m.callee(p)) {
			return p.Args[0] == id
		}
		return readers().MatchString(m.text(p.Fun))
	}
	return false
}

// appendMethod rewrites list.append(x) in Go.
func (m *fixer) appendMethod(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	_, stands := m.parents[call].(*ast.ExprStmt)
	if !stands || len(call.Args) != 1 || !slices.Contains([]string{"append", "push", "add"},
		strings.ToLower(s.Sel.Name)) || !m.isFresh(m.variable(s.X)) && !m.isMemberOfOwn(s.X) {
		return false
	}
	x := m.text(s.X)
	return m.fix("append returns the list", m.replace(call, x+" = append("+x+", "+m.text(call.Args[0])+")"))
}

// isMemberOfOwn reports whether an expression is an element of a map that the function has created in a variable.
func (m *fixer) isMemberOfOwn(x ast.Expr) bool {
	ix, ok := ast.Unparen(x).(*ast.IndexExpr)
	if !ok || !m.isPlain(ix.Index) {
		return false
	}
	v := m.variable(ix.X)
	def, value := m.definition(v)
	_, isMap := m.Info.TypeOf(ix.X).Underlying().(*types.Map)
	if c, made := value.(*ast.CallExpr); made {
		return isMap && isName(c.Fun, "make") && m.setOnce(v, def)
	}
	_, literal := value.(*ast.CompositeLit)
	return isMap && literal && m.setOnce(v, def)
}

// appended repairs a statement that consists of append(list, x) alone.
func (m *fixer) appended(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return isName(c.Fun, "append") })
	return ok && len(c.Args) > 0 && m.isFresh(m.variable(c.Args[0])) &&
		m.fix("append returns the list", m.before(c, m.text(c.Args[0])+" = "))
}

// sorting matches functions that change a list in place.
var sorting = lazy.Regexp(
	`^(?:sort\.(?:Strings|Ints|Float64s|Slice|SliceStable)|slices\.(?:Sort|SortFunc|SortStableFunc|Reverse))$`)

// sorted repairs return sort.Strings(list), nil and list = sort.Strings(list): the function changes the list and
// returns nothing.
func (m *fixer) sorted(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return sorting().MatchString(m.callee(c)) })
	if !ok || !m.isFresh(m.variable(c.Args[0])) && !m.isTaken(m.variable(c.Args[0])) {
		return false
	}
	list, note := m.text(c.Args[0]), m.text(c.Fun)+" returns nothing"
	if p, ok := m.parents[c].(*ast.AssignStmt); ok && p.Tok == token.ASSIGN && len(p.Lhs) == 1 &&
		m.text(p.Lhs[0]) == list {
		return m.fix(note, m.replace(p, m.text(c)))
	}
	st := m.evaluates(c)
	return st != nil && st.Pos() != c.Pos() && m.isLast(c, st) && !m.callsBefore(st, c) &&
		m.fix(note, m.before(st, m.text(c)+"\n"), m.replace(c, list))
}

// isTaken reports whether a variable is an argument that Run reads only there, so that Run may change its list.
func (m *fixer) isTaken(v *types.Var) bool {
	def, value := m.definition(v)
	a, ok := value.(*ast.TypeAssertExpr)
	return ok && m.once(def) && m.origin(m.unhelped(a.X)) == ofArguments && m.countText(m.text(m.unhelped(a.X))) == 1
}

// isLast reports whether the program does not use the list that a call changes in the rest of the statement or after
// it. Otherwise the author may have expected a copy.
func (m *fixer) isLast(c *ast.CallExpr, st ast.Stmt) bool {
	_, returns := st.(*ast.ReturnStmt)
	if m.inLiteral(st) || !returns && m.repeats(st) {
		return false
	}
	return !slices.ContainsFunc(m.usesOf(m.variable(c.Args[0])), func(id *ast.Ident) bool {
		within := c.Pos() <= id.Pos() && id.End() <= c.End()
		return !within && (id.Pos() >= st.Pos() || m.inLiteral(id))
	})
}

// inLiteral reports whether a node is in a function literal.
func (m *fixer) inLiteral(n ast.Node) bool {
	t, _ := m.resultsOf(n)
	_, literal := m.parents[t].(*ast.FuncLit)
	return literal
}
