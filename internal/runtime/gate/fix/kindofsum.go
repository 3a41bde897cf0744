package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// fractional makes a variable a float64 that is an int only because of its first value: the program sets it to float64
// or adds them, and does nothing else that depends on the type.
func (m *fixer) fractional(v *types.Var) bool {
	def, value := m.definition(v)
	if as, ok := def.(*ast.AssignStmt); !ok || len(as.Lhs) != len(as.Rhs) || !isBasic(v.Type(), types.Int) {
		return false
	}
	first := value
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		first = u.X
	}
	if l, ok := first.(*ast.BasicLit); !ok || l.Kind != token.INT || strings.HasPrefix(l.Value, "0") && l.Value != "0" {
		return false
	}
	sets := false
	kinds := []*types.Var{v} // it, and the variables that get its type
	for i := 0; i < len(kinds); i++ {
		for _, id := range m.usesOf(kinds[i]) {
			set, ok := m.asFloat(id)
			if !ok {
				return false
			}
			sets = sets || set && i == 0
			if to := m.typedBy(id); to != nil && !slices.Contains(kinds, to) {
				kinds = append(kinds, to)
			}
		}
	}
	return sets && m.fix(v.Name()+" holds float64", m.after(value, ".0"))
}

// typedBy returns the int variable that is defined by arithmetic with a variable, or nil.
func (m *fixer) typedBy(id *ast.Ident) *types.Var {
	x := ast.Expr(id)
	for {
		switch p := m.parents[x].(type) {
		case *ast.ParenExpr, *ast.UnaryExpr, *ast.BinaryExpr:
			x = p.(ast.Expr)
			continue
		case *ast.AssignStmt:
			at := slices.Index(p.Rhs, x)
			if p.Tok != token.DEFINE || at < 0 || len(p.Lhs) != len(p.Rhs) {
				return nil
			}
			if to := m.variable(p.Lhs[at]); to != nil && isBasic(to.Type(), types.Int) {
				return to
			}
		}
		return nil
	}
}

// asFloat reports whether a use of a variable means the same for a float64, and whether it sets the variable to one.
func (m *fixer) asFloat(id *ast.Ident) (set, ok bool) {
	x := ast.Expr(id)
	for {
		switch p := m.parents[x].(type) {
		case *ast.ParenExpr:
			x = p
		case *ast.UnaryExpr:
			if p.Op != token.SUB {
				return false, false
			}
			x = p
		case *ast.BinaryExpr:
			switch p.Op {
			case token.ADD, token.SUB, token.MUL:
			case token.QUO:
				if !m.hasFloat(p) && !strings.HasPrefix(m.text(p.Y), "len(") &&
					!strings.HasPrefix(m.text(p.Y), "float64(") {
					return false, false
				}
			case token.LSS, token.GTR, token.LEQ, token.GEQ, token.EQL, token.NEQ:
				return false, true
			default:
				return false, false
			}
			x = p
		case *ast.AssignStmt:
			return m.setToFloat(p, x, id)
		case *ast.ReturnStmt, *ast.KeyValueExpr, *ast.CompositeLit:
			return false, true
		case *ast.CallExpr:
			t := m.Info.TypeOf(p.Fun)
			name := m.text(p.Fun)
			if name == "min" || name == "max" {
				x = p
				continue
			}
			return false, m.printedAsFloat(p, x) || strings.HasPrefix(name, "math.") || name == "float64" || name == "append" ||
				t != nil && isFloat(m.parameterType(p, x))
		default:
			return false, false
		}
	}
}

// printedAsFloat reports whether a format prints an argument as a float64.
func (m *fixer) printedAsFloat(c *ast.CallExpr, x ast.Expr) bool {
	if m.callee(c) != "fmt.Sprintf" || len(c.Args) < 2 || strings.ContainsAny(constantText(c.Args[0]), "*[") {
		return false
	}
	at := slices.Index(c.Args, x)
	for _, g := range Verbs().FindAllStringSubmatch(constantText(c.Args[0]), -1) {
		if g[1] == "%" {
			continue
		}
		if at--; at == 0 {
			return strings.Contains("fFeEgG", g[1])
		}
	}
	return false
}

// setToFloat judges an assignment whose operand x has the variable.
func (m *fixer) setToFloat(as *ast.AssignStmt, x ast.Expr, id *ast.Ident) (set, ok bool) {
	if len(as.Lhs) != len(as.Rhs) || as.Tok == token.REM_ASSIGN {
		return false, false
	}
	for i, l := range as.Lhs {
		switch {
		case l == ast.Expr(id):
			set = m.hasFloat(as.Rhs[i])
			return set, as.Tok != token.QUO_ASSIGN || set
		case as.Rhs[i] == x && x == ast.Expr(id):
			t := m.Info.TypeOf(l)
			return false, t == nil || isFloat(t) || isEmptyInterface(t)
		}
	}
	return false, true // a part of an expression, whose operands are judged by themselves
}

// hasFloat reports whether an arithmetic expression has an operand of type float64.
func (m *fixer) hasFloat(x ast.Expr) bool {
	switch e := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		return m.hasFloat(e.X) || m.hasFloat(e.Y)
	case *ast.UnaryExpr:
		return m.hasFloat(e.X)
	case *ast.CallExpr:
		if isName(e.Fun, "min") || isName(e.Fun, "max") {
			return slices.ContainsFunc(e.Args, m.hasFloat)
		}
	}
	t := m.Info.TypeOf(x)
	return t != nil && isBasic(t, types.Float64)
}

// wholeByUse takes a number of JSON for an int where the program divides it only by units of time and shows the
// remainders of these divisions: hours and minutes of seconds.
func (m *fixer) wholeByUse(x ast.Expr) bool {
	v := m.variable(x)
	def, value := m.definition(v)
	a, ok := value.(*ast.TypeAssertExpr)
	if !ok || a.Type == nil || !m.setOnce(v, def) || !isBasic(m.Info.TypeOf(a.Type), types.Float64) || m.helped(a.X) {
		return false
	}
	divided, shows := false, false
	for _, id := range m.usesOf(v) {
		x := ast.Node(id)
		p := m.parents[x]
		rest := false
		for {
			b, isBinary := p.(*ast.BinaryExpr)
			_, isParen := p.(*ast.ParenExpr)
			if !isBinary && !isParen {
				break
			}
			if isBinary && (b.Op == token.QUO || b.Op == token.REM) &&
				(ast.Node(b.X) != x || !isUnit(b.Y)) {
				return false
			}
			switch {
			case !isBinary:
			case b.Op == token.REM:
				rest = true
			case b.Op.Precedence() == token.EQL.Precedence():
				rest = false
			case b.Op == token.QUO:
				divided = true
				left, isRem := ast.Unparen(b.X).(*ast.BinaryExpr)
				if !(isRem && left.Op == token.REM) && !m.hasRemainder(b.X, b.Y) {
					return false
				}
			}
			x, p = p, m.parents[p]
		}
		shows = shows || rest
	}
	return divided && shows && m.fix(v.Name()+" is a whole number: its remainders are taken", m.replace(a.Type, "int"))
}

// isUnit reports whether an expression is the number of seconds, minutes or hours in a greater unit of time.
func isUnit(x ast.Expr) bool {
	l, ok := ast.Unparen(x).(*ast.BasicLit)
	return ok && slices.Contains([]string{"24", "60", "3600", "86400"}, l.Value)
}

// fractionalOperand makes a variable among the operands a float64, as fractional does.
func (m *fixer) fractionalOperand(n *ast.BinaryExpr) bool {
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		if v := m.variable(side[0]); v != nil && isFloat(m.Info.TypeOf(side[1])) &&
			m.Info.Types[side[1]].Value == nil && m.fractional(v) {
			return true
		}
	}
	return false
}
