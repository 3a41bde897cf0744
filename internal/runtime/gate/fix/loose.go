package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// lengthOfJSON is added to a program that takes the length of a JSON value whose kind nothing shows.
const lengthOfJSON = `func lengthOfJSON(v any) int { // of a text, a list or an object
	if s, ok := v.(string); ok {
		return len(s)
	}
	if m, ok := v.(map[string]any); ok {
		return len(m)
	}
	return len(recurgent.Must(v, []any{}).([]any))
}`

// anyList and anyObject are the types of decoded lists and objects.
var (
	anyList   = types.NewSlice(types.Universe.Lookup("any").Type())
	anyObject = types.NewMap(types.Typ[types.String], types.Universe.Lookup("any").Type())
)

// builtinLength repairs len(x) of a JSON value and of a pointer.
func (m *fixer) builtinLength(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return isName(c.Fun, "len") && len(c.Args) == 1 })
	if !ok {
		return false
	}
	x := c.Args[0]
	if !isEmptyInterface(m.Info.TypeOf(x)) {
		return m.behindPointer(x) || m.sequenceAsList(x)
	}
	if to := m.shown(x); to != nil {
		return m.convert(x, to)
	}
	edits, ok := m.given("lengthOfJSON", lengthOfJSON)
	return ok && len(m.edits) == 0 && m.useHost("the length is that of a text, a list or an object", append(edits,
		m.replace(c.Fun, "lengthOfJSON"))...)
}

// shown returns the type that other uses of a JSON value show, or nil: a text whose characters the program looks at or
// that it passes as one, a list or an object whose elements it takes.
func (m *fixer) shown(x ast.Expr) types.Type {
	if m.asked(x) {
		return nil
	}
	var to types.Type
	ast.Inspect(m.enclosing(x), func(n ast.Node) bool {
		y, ok := n.(ast.Expr)
		if !ok || to != nil || !m.sameValue(x, y) {
			return to == nil
		}
		switch p := m.parents[y].(type) {
		case *ast.IndexExpr:
			switch {
			case p.X != y:
			case m.isCharacter(p):
				to = types.Typ[types.String]
			case isString(m.Info.TypeOf(p.Index)):
				to = anyObject
			}
		case *ast.RangeStmt:
			if p.X == y && p.Value != nil && m.comparedToCharacter(m.variable(p.Value)) {
				to = types.Typ[types.String]
			}
		case *ast.CallExpr:
			if c := p; isName(c.Fun, "len") {
				break
			} else if m.helped(c) && len(c.Args) > 1 && c.Args[0] == y {
				to = m.Info.TypeOf(c.Args[1])
			} else if t := m.parameterType(c, y); t != nil && !isEmptyInterface(t) {
				to = t
			}
		case *ast.TypeAssertExpr:
			if p.Type != nil {
				to = m.Info.TypeOf(p.Type)
			}
		}
		return to == nil
	})
	if to = defaultOf(to); to == nil || m.like(to) == "" {
		return nil
	}
	return to
}

// asked reports whether the program asks for the type of a value, so that it may have several.
func (m *fixer) asked(x ast.Expr) bool {
	found := false
	ast.Inspect(m.enclosing(x), func(n ast.Node) bool {
		y, ok := n.(ast.Expr)
		if !ok || found || !m.sameValue(x, y) {
			return !found
		}
		if c, ok := m.parents[y].(*ast.CallExpr); ok && m.helped(c) {
			y = c
		}
		a, ok := m.parents[y].(*ast.TypeAssertExpr)
		if !ok {
			return true
		}
		switch p := m.parents[a].(type) {
		case *ast.AssignStmt:
			found = len(p.Lhs) > len(p.Rhs)
		case *ast.ValueSpec:
			found = len(p.Names) > len(p.Values)
		}
		found = found || a.Type == nil
		return !found
	})
	return found
}

func defaultOf(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return types.Default(t)
}

// sameValue reports whether two expressions name the same variable, or are the same plain expression.
func (m *fixer) sameValue(x, y ast.Expr) bool {
	if v := m.variable(x); v != nil {
		return m.variable(y) == v && m.Info.Uses[ast.Unparen(y).(*ast.Ident)] != nil
	}
	return x != y && m.isPlain(x) && m.text(x) == m.text(y)
}

// isCharacter reports whether an element is used as a character: directly, or through a variable that is set to it.
func (m *fixer) isCharacter(x ast.Expr) bool {
	if m.besideCharacter(x) {
		return true
	}
	as, ok := m.parents[x].(*ast.AssignStmt)
	return ok && as.Tok == token.DEFINE && len(as.Lhs) == 1 && m.comparedToCharacter(m.variable(as.Lhs[0]))
}

// comparedToCharacter reports whether any use of a variable is that of a character.
func (m *fixer) comparedToCharacter(v *types.Var) bool {
	if v == nil {
		return false
	}
	for _, id := range m.usesOf(v) {
		if m.besideCharacter(id) {
			return true
		}
	}
	return false
}

// besideCharacter reports whether an expression stands beside a character literal or is passed to package unicode.
func (m *fixer) besideCharacter(x ast.Expr) bool {
	switch p := m.parents[x].(type) {
	case *ast.BinaryExpr:
		return isChar(p.X) || isChar(p.Y)
	case *ast.CallExpr:
		s, ok := p.Fun.(*ast.SelectorExpr)
		return ok && isName(s.X, "unicode")
	}
	return false
}

// arithmetic repairs a * b of two JSON values, which are numbers. A sum may be one of texts: it needs a place that says
// which.
func (m *fixer) arithmetic(n *ast.BinaryExpr) bool {
	var to types.Type = types.Typ[types.Float64]
	switch n.Op {
	case token.MUL, token.SUB, token.QUO:
	case token.ADD:
		if to = m.sumType(n); to == nil {
			return false
		}
	default:
		return false
	}
	x, y := m.converted(n.X, to), m.converted(n.Y, to)
	return x != "" && y != "" && m.useHost("values of JSON are numbers here: "+clip(m.text(n)), m.replace(n.X, x),
		m.replace(n.Y, y))
}

// sumType returns the type of a sum of two JSON values that its place shows: text or a number.
func (m *fixer) sumType(n *ast.BinaryExpr) types.Type {
	var x ast.Expr = n
	for {
		switch p := m.parents[x].(type) {
		case *ast.ParenExpr:
			x = p
			continue
		case *ast.BinaryExpr:
			other := p.X
			if other == x {
				other = p.Y
			}
			t := m.Info.TypeOf(other)
			switch {
			case p.Op == token.MUL, p.Op == token.QUO, p.Op == token.SUB, isKind(t, types.IsNumeric):
				return types.Typ[types.Float64]
			case isString(t):
				return types.Typ[types.String]
			}
			return nil
		case *ast.AssignStmt:
			if len(p.Lhs) != 1 || p.Tok == token.DEFINE {
				return nil
			}
		}
		break
	}
	switch t := m.wanted(x); {
	case isFloat(t), isWhole(t):
		return types.Typ[types.Float64]
	case t != nil && isPlainString(t):
		return t
	}
	return nil
}

// counting repairs x += f of a variable that holds a JSON value and a float64 or a text.
func (m *fixer) counting(n *ast.AssignStmt) bool {
	v := m.variable(n.Lhs[0])
	to := defaultOf(m.Info.TypeOf(n.Rhs[0]))
	if v == nil || to == nil || m.otherNumbers() {
		return false
	}
	op := n.Tok.String()[:1]
	switch {
	case n.Tok == token.ADD_ASSIGN && isPlainString(to):
	case (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN || n.Tok == token.MUL_ASSIGN) && isFloat(to) &&
		!isNamed(to):
	default:
		return false
	}
	text := m.asJSON(v.Name(), ofArguments, to)
	return text != "" && m.useHost(v.Name()+" holds a value of JSON", m.replace(n, v.Name()+" = "+text+" "+op+" ("+
		m.text(n.Rhs[0])+")"))
}
