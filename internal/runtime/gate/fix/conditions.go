package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// conditions leaves out the value of a switch whose cases are all conditions.
func (m *fixer) conditions(s *ast.SwitchStmt) bool {
	for _, st := range s.Body.List {
		for _, x := range st.(*ast.CaseClause).List {
			if t := m.Info.TypeOf(x); t == nil || !isKind(t, types.IsBoolean) {
				return false
			}
		}
	}
	if isKind(m.Info.TypeOf(s.Tag), types.IsBoolean) || !m.isPlain(s.Tag) {
		return false
	}
	return m.fix("cases that are conditions need no value before them", m.replace(s.Tag, ""))
}

// truncating matches functions that return whole numbers.
var truncating = lazy.Regexp(`^math\.(?:Floor|Ceil|Round|Trunc)$`)

// isWholeFloat reports whether a float64 is the result of a rounding, directly or through a variable that is set once.
func (m *fixer) isWholeFloat(x ast.Expr) bool {
	if v := m.variable(x); v != nil {
		if def, value := m.definition(v); value != nil && m.setOnce(v, def) {
			x = value
		}
	}
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && truncating().MatchString(m.callee(c))
}

// leastOfTwo repairs min and max of an int and a float64: a rounded number becomes an int, and a variable that is an
// int only because of its first value a float64.
func (m *fixer) leastOfTwo(e types.Error, path []ast.Node) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return isName(c.Fun, "min") || isName(c.Fun, "max") })
	if !ok || !strings.Contains(e.Msg, "previous argument") {
		return false
	}
	done := false
	for _, a := range c.Args {
		if t := m.Info.TypeOf(a); isFloat(t) && m.Info.Types[a].Value == nil && m.isWholeFloat(a) {
			done = m.convert(a, types.Typ[types.Int]) || done
		}
	}
	for _, a := range c.Args {
		if v := m.variable(a); !done && v != nil && isBasic(v.Type(), types.Int) {
			done = m.fractional(v)
		}
	}
	for _, a := range c.Args {
		if of := m.Info.Types[a]; !done && isBasic(of.Type, types.Int) && of.Value == nil && m.variable(a) == nil {
			done = m.convert(a, types.Typ[types.Float64])
		}
	}
	return done
}

// notConstant declares a list, a map or the result of a call as a variable, where it is declared as a constant.
func (m *fixer) notConstant(_ types.Error, path []ast.Node, _ []string) bool {
	spec, ok := nearestSpec(path)
	if !ok {
		return false
	}
	g, ok := m.parents[spec].(*ast.GenDecl)
	if !ok || g.Tok != token.CONST || len(m.edits) > 0 {
		return false
	}
	const note = "what is not constant is a variable"
	at := m.offset(g.TokPos)
	if len(g.Specs) == 1 {
		return m.fix(note, edit{at, at + len("const"), "var"})
	}
	// The line after one without a value would repeat another one.
	if i := slices.Index(g.Specs, ast.Spec(spec)) + 1; uses(g, "iota") || i < len(g.Specs) &&
		len(g.Specs[i].(*ast.ValueSpec).Values) == 0 {
		return false
	}
	return m.fix(note, m.line(spec), m.after(g, "\n\nvar "+m.text(spec)))
}

// nearestSpec returns the declaration of a constant or a variable that a path leads through.
func nearestSpec(path []ast.Node) (*ast.ValueSpec, bool) {
	for _, n := range path {
		if s, ok := n.(*ast.ValueSpec); ok {
			return s, true
		}
	}
	return nil, false
}

// listOfType gives a literal of []any, or the empty list that a variable begins with, the type of list that its place
// asks for.
func (m *fixer) listOfType(x ast.Expr, to types.Type) bool {
	list, ok := types.Unalias(to).(*types.Slice)
	if !ok || isEmptyInterface(list.Elem()) || isNamed(to) || !types.Identical(m.Info.TypeOf(x), anyList) {
		return false
	}
	lit, ok := ast.Unparen(x).(*ast.CompositeLit)
	if v := m.variable(x); v != nil {
		def, value := m.definition(v)
		if a, asserted := value.(*ast.TypeAssertExpr); asserted {
			return m.listOfJSON(v, def, a, to)
		}
		if _, local := def.(*ast.AssignStmt); !local || !m.onlyAppended(v, def) {
			return false
		}
		lit, ok = ast.Unparen(value).(*ast.CompositeLit)
		ok = ok && len(lit.Elts) == 0
	}
	return ok && lit.Type != nil && len(m.edits) == 0 &&
		m.fix("the list is one of "+m.typeText(list.Elem()), m.replace(lit.Type, m.typeText(to)))
}

// listOfJSON asserts a list of JSON to the type of list that the program takes it for everywhere.
func (m *fixer) listOfJSON(v *types.Var, def ast.Node, a *ast.TypeAssertExpr, to types.Type) bool {
	if _, json := m.isJSON(a.X); !json || a.Type == nil || !m.setOnce(v, def) || len(m.edits) > 0 ||
		jsonKind(to) != "array" {
		return false
	}
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.CallExpr:
			if isName(p.Fun, "len") {
				continue
			}
			if t := m.parameterType(p, id); t == nil || !types.Identical(t, to) {
				return false
			}
		case *ast.RangeStmt:
			if p.X != ast.Expr(id) || p.Value != nil && m.asked(p.Value) {
				return false
			}
			for _, use := range m.usesOf(m.variable(p.Value)) {
				if _, asserted := m.parents[use].(*ast.TypeAssertExpr); asserted {
					return false
				}
			}
		default:
			return false
		}
	}
	return m.fix("the list is one of "+m.typeText(to), m.replace(a.Type, m.typeText(to)))
}

// onlyAppended reports whether a variable is set only where it is defined and to itself with elements appended.
func (m *fixer) onlyAppended(v *types.Var, def ast.Node) bool {
	for _, id := range m.usesOf(v) {
		as, ok := m.parents[id].(*ast.AssignStmt)
		if !ok || ast.Node(as) == def || !slices.Contains(as.Lhs, ast.Expr(id)) {
			continue
		}
		c, ok := as.Rhs[0].(*ast.CallExpr)
		if !ok || len(as.Lhs) != 1 || !isName(c.Fun, "append") || m.variable(c.Args[0]) != v {
			return false
		}
	}
	return true
}
