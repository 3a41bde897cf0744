package fix

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// mismatched repairs an operation on two types: int and float64, a string and a character, a JSON number and one of the
// program's.
func (m *fixer) mismatched(e types.Error, path []ast.Node, _ []string) bool {
	if c, ok := nearest[*ast.CaseClause](path, nil); ok &&
		strings.HasPrefix(strings.TrimPrefix(e.Msg, "invalid operation: "), "invalid case") {
		return m.caseOf(c, path)
	}
	differ := func(x, y ast.Expr) bool {
		a, b := m.Info.TypeOf(x), m.Info.TypeOf(y)
		return a != nil && b != nil && !types.Identical(a, b)
	}
	if m.ofFraction(path) || m.hats(path) || m.leastOfTwo(e, path) {
		return true
	}
	for _, n := range path {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if differ(n.X, n.Y) && m.mixed(n) {
				return true
			}
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && len(n.Rhs) == 1 && n.Tok != token.ASSIGN && n.Tok != token.DEFINE &&
				differ(n.Lhs[0], n.Rhs[0]) {
				return m.changed(n)
			}
		case *ast.BlockStmt:
			return false
		}
	}
	return false
}

// changed repairs x += f and similar statements. If x is an int and f a float64, the result must be a whole number that
// an int can hold; otherwise it ends the call.
func (m *fixer) changed(n *ast.AssignStmt) bool {
	x, to := m.text(n.Lhs[0]), m.Info.TypeOf(n.Lhs[0])
	if isGetter(m.Info.TypeOf(n.Rhs[0])) {
		return m.fix(clip(m.text(n.Rhs[0]))+" is called", m.after(n.Rhs[0], "()"))
	}
	switch {
	case n.Tok == token.REM_ASSIGN:
		return false
	case isEmptyInterface(to):
		return m.counted(n) || m.counting(n)
	case isFloat(m.Info.TypeOf(n.Rhs[0])) && isWhole(to) && m.variable(n.Lhs[0]) != nil &&
		m.fractional(m.variable(n.Lhs[0])):
		return true
	case !isFloat(m.Info.TypeOf(n.Rhs[0])) || !isWhole(to):
		return m.convert(n.Rhs[0], to)
	case n.Tok == token.QUO_ASSIGN || m.like(to) == "" || m.divides() || strings.Contains(x, "("):
		return false
	}
	text := fmt.Sprintf("float64(%s) %s (%s)", x, strings.TrimSuffix(n.Tok.String(), "="), m.text(n.Rhs[0]))
	return m.useHost(x+" is an integer, so that it has to stay a whole number",
		m.replace(n, x+" = "+m.asJSON(text, m.origin(n.Rhs[0]), to)))
}

// mixed repairs x op y.
func (m *fixer) mixed(n *ast.BinaryExpr) bool {
	switch {
	case m.repeated(n), m.namedDay(n), m.refusedBool(n), m.inWords(n), m.comparedWithNil(n), m.uncalled(n), m.itoa(n),
		m.fractionalOperand(n):
		return true
	case n.Op == token.SUB && m.fromDigit(n):
		return true
	case n.Op == token.REM:
		return m.remainder(n)
	case n.Op == token.QUO && !(isWhole(m.Info.TypeOf(n.X)) && isWhole(m.Info.TypeOf(n.Y))) && m.hasRemainder(n.X, n.Y):
		return false // the fraction is not wanted
	}
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		from, to := m.Info.Types[side[0]], m.Info.TypeOf(side[1])
		switch {
		case from.Type != nil && to != nil && m.isPointerTo(from.Type, to):
			return m.convert(side[0], to)
		case isDuration(to):
			return n.Op == token.MUL && m.times(side[0], side[1])
		case isEmptyInterface(from.Type) && isBasic(to, types.Int) && m.inFloatPlace(n):
			return m.bothFloats(side[0], side[1])
		case isEmptyInterface(from.Type) && !isEmptyInterface(to):
			return m.convert(side[0], m.operand(n, to))
		case follows(n.Op, from, to) && m.convert(side[0], to):
			return true
		}
	}
	return false
}

// follows reports whether one side of an operator has to be converted to the type of the other. The conversion of the
// other one would lose something.
func follows(op token.Token, from types.TypeAndValue, to types.Type) bool {
	switch {
	case from.Value != nil && !isString(to), isString(to) && (op == token.ADD || isBasic(from.Type, types.Int32)):
		return true
	case isWhole(from.Type) && (isBasic(to, types.Float64) ||
		isBasic(to, types.Int64) && isBasic(from.Type, types.Int)):
		return true
	case isBasic(from.Type, types.Uint8):
		return isRune(to) || isBasic(to, types.Int)
	}
	return isBasic(to, types.Int) && (isBasic(from.Type, types.Int32) || isCalendar(from.Type))
}

// repeated repairs "-" * n.
func (m *fixer) repeated(n *ast.BinaryExpr) bool {
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		text, times := side[0], ast.Unparen(side[1])
		t := m.Info.Types[times]
		if n.Op != token.MUL || !isString(m.Info.TypeOf(text)) || isNamed(m.Info.TypeOf(text)) || t.Type == nil ||
			isString(t.Type) || m.declares("max") {
			continue
		}
		count := m.text(times)
		switch {
		case t.Value != nil && isWhole(t.Type):
		case isFloat(t.Type) && t.Value == nil, isEmptyInterface(t.Type):
			count = m.asJSON(count, m.origin(times), types.Typ[types.Int])
		case !types.Identical(t.Type, types.Typ[types.Int]):
			continue
		}
		if t.Value == nil {
			count = "max(" + count + ", 0)"
		}
		return m.useHost("a text is repeated by strings.Repeat",
			m.replace(n, "strings.Repeat("+m.text(text)+", "+count+")"))
	}
	return false
}

// refusedBool repairs v, err := x.(T); err != nil. The second result of an assertion is a bool.
func (m *fixer) refusedBool(n *ast.BinaryExpr) bool {
	v := m.variable(n.X)
	def, _ := m.definition(v)
	as, ok := def.(*ast.AssignStmt)
	if !ok || !isName(n.Y, "nil") || len(as.Lhs) != 2 || len(as.Rhs) != 1 || m.variable(as.Lhs[1]) != v ||
		!isBasic(v.Type(), types.Bool) {
		return false
	}
	if _, asserted := ast.Unparen(
		as.Rhs[0]).(*ast.TypeAssertExpr); !asserted || n.Op != token.NEQ && n.Op != token.EQL {
		return false
	}
	not := "!"
	if n.Op == token.EQL {
		not = ""
	}
	return m.fix("an assertion says whether it held, in no error", m.replace(n, not+v.Name()))
}

// ofFraction converts the int n in n / 100.0 to float64, if the result is used as one. The decimal point shows that a
// fraction is meant.
func (m *fixer) ofFraction(path []ast.Node) bool {
	done := false
	for _, n := range path {
		if _, ok := n.(ast.Expr); !ok {
			break
		}
		ast.Inspect(n, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.QUO || m.Info.Types[b].Value != nil ||
				!types.Identical(m.Info.TypeOf(b.X), types.Typ[types.Int]) {
				return true
			}
			if l, ok := ast.Unparen(b.Y).(*ast.BasicLit); ok && (l.Kind == token.FLOAT || m.ofPercent(b)) &&
				!m.quotient(b.X) {
				done = m.convert(b.X, types.Typ[types.Float64]) || done
			}
			return true
		})
	}
	return done
}

// ofPercent reports whether a quotient is the p/100 of 1 - p/100. That of 1 + n/100 may be counted in whole hundreds.
func (m *fixer) ofPercent(b *ast.BinaryExpr) bool {
	p := m.parents[b]
	if paren, ok := p.(*ast.ParenExpr); ok {
		p = m.parents[paren]
	}
	sum, ok := p.(*ast.BinaryExpr)
	return ok && isNumber(ast.Unparen(b.Y), "100") && sum.Op == token.SUB && isNumber(sum.X, "1")
}

// times repairs n * time.Hour for a whole number n.
func (m *fixer) times(n, unit ast.Expr) bool {
	s, ok := ast.Unparen(unit).(*ast.SelectorExpr)
	t := m.Info.TypeOf(n)
	if !ok || !isName(s.X, "time") || m.Info.Types[n].Value != nil || m.quotient(n) {
		return false
	}
	text := m.text(n)
	if isFloat(t) {
		text = m.whole(n, types.Typ[types.Int])
	} else if !isBasic(t, types.Int) && !isBasic(t, types.Int64) || isNamed(t) {
		return false
	}
	return m.useHost(clip(m.text(n))+" is a number of "+m.text(unit), m.replace(n, "time.Duration("+text+")"))
}

// isCalendar reports whether the type is a weekday or a month, which are named integers.
func isCalendar(t types.Type) bool {
	return t != nil && (types.TypeString(t, nil) == "time.Weekday" || types.TypeString(t, nil) == "time.Month")
}

// isDuration reports whether the type is time.Duration.
func isDuration(t types.Type) bool { return t != nil && types.TypeString(t, nil) == "time.Duration" }

// remainder repairs x % y of JSON numbers, which must be whole. It leaves a float64 alone if the program divides
// integers, because it may have been meant as a float64.
func (m *fixer) remainder(n *ast.BinaryExpr) (done bool) {
	if m.wholeByUse(n.X) {
		return true
	}
	for _, x := range []ast.Expr{n.X, n.Y} {
		if t := m.Info.TypeOf(x); isFloat(t) && m.Info.Types[x].Value == nil && !m.divides() || isEmptyInterface(t) {
			done = m.convert(x, types.Typ[types.Int]) || done
		}
	}
	return done
}

// operand returns the type that a JSON value next to one of type t must have, or nil if there are several
// possibilities.
func (m *fixer) operand(n *ast.BinaryExpr, t types.Type) types.Type {
	switch {
	case n.Op == token.QUO && !isFloat(t):
		return nil // the fraction may be wanted or not
	case isBasic(t, types.UntypedInt), isBasic(t, types.UntypedFloat):
		return types.Typ[types.Float64]
	}
	return types.Default(t)
}

// convert replaces an expression by its conversion to the type. It returns false if there is none.
func (m *fixer) convert(x ast.Expr, to types.Type) bool {
	text := m.converted(x, to)
	return text != "" && m.useHost(clip(m.text(x))+" is converted: "+clip(text), m.replace(x, text))
}

// undefinedOperator repairs operators on a JSON value, such as arithmetic with another number, and on times.
func (m *fixer) undefinedOperator(_ types.Error, path []ast.Node, match []string) bool {
	if u, ok := nearest(path, func(u *ast.UnaryExpr) bool { return match[1] == "!" }); ok {
		if is := m.whetherAny(u.X, "=="); is != "" {
			return m.fix("a condition says what it compares", m.replace(u, is))
		}
		return m.convert(u.X, types.Typ[types.Bool])
	}
	n, ok := nearest(path, func(b *ast.BinaryExpr) bool { return b.Op.String() == match[1] })
	if !ok {
		return false
	}
	if n.Op == token.LOR || n.Op == token.LAND {
		return m.truth(n)
	}
	if m.hats(path) {
		return true
	}
	if m.repeated(n) || m.comparedTimes(n) || m.uncalled(n) || n.Op == token.SUB && m.fromDigit(n) {
		return true
	}
	if n.Op == token.REM {
		return m.remainder(n)
	}
	if isEmptyInterface(m.Info.TypeOf(n.X)) && isEmptyInterface(m.Info.TypeOf(n.Y)) {
		return m.ordered(n) || m.arithmetic(n)
	}
	return isEmptyInterface(m.Info.TypeOf(n.X)) != isEmptyInterface(m.Info.TypeOf(n.Y)) && m.mixed(n)
}

// truth compares the numbers and texts that are operands of || and &&, and takes JSON values for booleans.
func (m *fixer) truth(n *ast.BinaryExpr) (done bool) {
	for _, x := range []ast.Expr{n.X, n.Y} {
		if isEmptyInterface(m.Info.TypeOf(x)) {
			done = m.convert(x, types.Typ[types.Bool]) || done
		} else if is := m.whetherAny(x, "!="); is != "" {
			done = m.fix("a condition says what it compares", m.replace(x, is)) || done
		}
	}
	return done
}

// condition repairs if x where x is a JSON value, an integer or a string.
func (m *fixer) condition(_ types.Error, path []ast.Node, _ []string) bool {
	s, ok := nearest[*ast.IfStmt](path, nil)
	if !ok {
		return false
	}
	if is := m.whetherAny(s.Cond, "!="); is != "" {
		return m.fix("a condition says what it compares", m.replace(s.Cond, is))
	}
	return m.convert(s.Cond, types.Typ[types.Bool])
}

// whetherAny returns the comparison that a condition without a bool means: a number is not 0, a text or a list is not
// empty, a pointer or an error is not nil. With == for op it returns the opposite. It returns "" for other types.
func (m *fixer) whetherAny(x ast.Expr, op string) string {
	t := m.Info.TypeOf(x)
	if t == nil || m.Info.Types[x].Value != nil {
		return ""
	}
	text := m.operandText(x)
	switch u := t.Underlying().(type) {
	case *types.Slice, *types.Map:
		return "len(" + m.text(x) + ") " + op + " 0"
	case *types.Pointer:
		return text + " " + op + " nil"
	case *types.Basic:
		switch {
		case isNamed(t):
		case u.Info()&types.IsNumeric != 0:
			return text + " " + op + " 0"
		case u.Info()&types.IsString != 0:
			return text + " " + op + ` ""`
		}
	}
	if isError(t) {
		return text + " " + op + " nil"
	}
	return ""
}

// truncatedConstant repairs n * 0.5 of an int n.
func (m *fixer) truncatedConstant(_ types.Error, path []ast.Node, _ []string) bool {
	for _, n := range path {
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			continue
		}
		for _, side := range [][2]ast.Expr{{b.X, b.Y}, {b.Y, b.X}} {
			t, v := m.Info.TypeOf(side[0]), m.Info.Types[side[1]].Value
			if l, ok := ast.Unparen(side[1]).(*ast.BasicLit); v == nil && ok {
				v = constant.MakeFromLiteral(l.Value, l.Kind, 0)
			}
			if isWhole(t) && v != nil && v.Kind() == constant.Float && m.Info.Types[side[0]].Value == nil {
				return m.convert(side[0], types.Typ[types.Float64])
			}
		}
	}
	return false
}

// caseOf repairs cases whose type differs from that of the switch.
func (m *fixer) caseOf(c *ast.CaseClause, path []ast.Node) bool {
	s, ok := nearest[*ast.SwitchStmt](path, nil)
	if !ok || s.Tag == nil {
		return false
	}
	done := false
	for _, x := range c.List {
		if t := m.Info.TypeOf(x); t != nil && isKind(t, types.IsBoolean) && m.Info.Types[x].Value == nil {
			return m.conditions(s)
		}
		if t := m.Info.TypeOf(s.Tag); t != nil && m.Info.Types[x].Value != nil &&
			!types.Identical(types.Default(m.Info.TypeOf(x)), t) {
			done = m.convert(x, t) || done
		}
	}
	return done
}
