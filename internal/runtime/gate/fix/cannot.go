package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// cannotUse repairs a value whose type does not match its place.
func (m *fixer) cannotUse(e types.Error, path []ast.Node, _ []string) bool {
	x := m.operandAt(e, path)
	if x == nil {
		return false
	}
	c, argument := m.parents[x].(*ast.CallExpr)
	if argument {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			switch owner, name := m.hostMember(s); {
			case owner == "Call" && name == "Arg" && constantText(x) != "":
				return m.getter(c, s)
			case owner == "Call" && name == "Log" && !c.Ellipsis.IsValid():
				return m.noted(c)
			}
		}
	}
	if m.commaOK(x) {
		return false
	}
	to := m.wanted(x)
	return m.otherValue(x, to) || argument && m.comparator(c) || m.sequenceAsList(x) || m.holdsFraction(x) ||
		argument && m.otherArguments(c, x) || m.otherForm(x) || to != nil && m.convert(x, to)
}

// otherValue repairs an expression that is another one than was meant, as its place shows.
func (m *fixer) otherValue(x ast.Expr, to types.Type) bool {
	return to != nil && (m.orderResult(x, to) || m.listOfType(x, to)) || m.droppedCharacter(x) || m.literalResult(x) ||
		m.setBehind(x)
}

// holdsFraction gives the type float64 to a variable that is set to a fraction.
func (m *fixer) holdsFraction(x ast.Expr) bool {
	as, ok := m.parents[x].(*ast.AssignStmt)
	return ok && len(as.Lhs) == 1 && isFloat(m.Info.TypeOf(x)) && m.variable(as.Lhs[0]) != nil &&
		m.fractional(m.variable(as.Lhs[0]))
}

// otherArguments repairs a call of a library whose arguments it does not take so.
func (m *fixer) otherArguments(c *ast.CallExpr, x ast.Expr) bool {
	return m.unmarshalled(c) || m.searched(c, x) || m.sortedList(c) || m.reversedOrder(c) ||
		m.subtracted(c) || m.joined(c, x) || m.contained(c)
}

// otherForm repairs a value that is of the right meaning in another form.
func (m *fixer) otherForm(x ast.Expr) bool {
	return m.readNumber(x) || m.ascii(x) || m.digitText(x) || m.spreadList(x) || m.swapped(x) || m.roundedQuotient(x)
}

// noted gives call.Log of values a format for them.
func (m *fixer) noted(c *ast.CallExpr) bool {
	verbs := make([]string, len(c.Args))
	for i, a := range c.Args {
		if verbs[i] = "%v"; elemIs(m.Info.TypeOf(a), types.Uint8) {
			verbs[i] = "%s"
		}
	}
	return m.fix(m.text(c.Fun)+" takes a format first",
		m.before(c.Args[0], `"`+strings.Join(verbs, " ")+`", `))
}

// searched converts a character to a string where the program searches a string for it.
func (m *fixer) searched(c *ast.CallExpr, x ast.Expr) bool {
	t := m.Info.TypeOf(x)
	if m.callee(c) != "strings.Contains" || len(c.Args) != 2 || c.Args[1] != x || isNamed(t) ||
		m.Info.Types[x].Value != nil {
		return false
	}
	switch {
	case isRune(t):
		return m.fix(m.text(x)+" is a character", m.replace(x, "string("+m.text(x)+")"))
	case isBasic(t, types.Uint8):
		return m.fix(m.text(x)+" is a character", m.replace(x, "string(rune("+m.text(x)+"))"))
	}
	return false
}

// inferred converts JSON values to the type of the other arguments that share a type parameter.
func (m *fixer) inferred(e types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest[*ast.CallExpr](path, nil)
	if !ok {
		return false
	}
	// The error stands at the literal, whose body may hold calls of its own.
	for _, n := range path {
		if order, ok := n.(*ast.CallExpr); ok && m.comparator(order) {
			return true
		}
	}
	var to types.Type
	for _, basic := range []types.BasicKind{types.String, types.Float64, types.Int} {
		if strings.Contains(e.Msg, "type any of ") &&
			strings.Contains(e.Msg, "inferred type "+types.Typ[basic].Name()+" for") {
			to = types.Typ[basic]
		}
	}
	for _, a := range c.Args {
		if t := m.Info.TypeOf(a); t != nil && m.Info.Types[a].Value == nil && decodedAs(t) != "" && basic(t) != nil {
			if to != nil && !types.Identical(to, t) {
				return false
			}
			to = t
		}
	}
	done := false
	for _, a := range c.Args {
		if to != nil && isEmptyInterface(m.Info.TypeOf(a)) {
			done = m.convert(a, to) || done
		}
	}
	return done
}

// cannotConvert repairs T(x) of a JSON value, and a constant whose type does not match its place.
func (m *fixer) cannotConvert(e types.Error, path []ast.Node, _ []string) bool {
	if l, ok := path[0].(*ast.BasicLit); ok {
		if b, operand := m.parents[l].(*ast.BinaryExpr); operand && m.uncalled(b) {
			return true
		}
		switch p := m.parents[l].(type) {
		case *ast.CaseClause:
			return m.caseOf(p, path)
		case *ast.BinaryExpr:
			return m.mixed(p)
		case *ast.IndexExpr:
			return m.argsByName(p, l)
		}
	}
	if c, ok := nearest[*ast.CaseClause](path, nil); ok && strings.Contains(e.Msg, "untyped bool value") &&
		m.caseOf(c, path) || m.countedBool(path) {
		return true
	}
	if c, ok := nearest[*ast.CallExpr](path, nil); ok && m.numberOfText(c) {
		return true
	}
	c, ok := nearest(path, func(c *ast.CallExpr) bool {
		return len(c.Args) == 1 && m.Info.Types[c.Fun].IsType() &&
			(isEmptyInterface(m.Info.TypeOf(c.Args[0])) || isResponse(m.Info.TypeOf(c.Args[0])))
	})
	if !ok {
		return false
	}
	if isResponse(m.Info.TypeOf(c.Args[0])) {
		return m.convert(c.Args[0], types.Typ[types.String])
	}
	if p, ok := m.parents[c].(*ast.CallExpr); ok && m.unmarshalled(p) {
		return true
	}
	to := m.Info.TypeOf(c.Fun)
	text := m.convertedJSON(c.Args[0], to)
	if elemIs(to, types.Uint8) || areRunes(to) {
		text = m.text(c.Fun) + "(" + m.asJSON(m.text(c.Args[0]), m.origin(c.Args[0]), types.Typ[types.String]) + ")"
	}
	return text != "" && m.useHost(clip(m.text(c))+" is "+clip(text), m.replace(c, text))
}

// cannotRange repairs a range over a JSON list, and a range over a JSON number.
func (m *fixer) cannotRange(_ types.Error, path []ast.Node, _ []string) bool {
	r, ok := nearest[*ast.RangeStmt](path, nil)
	if !ok {
		return false
	}
	switch t := m.Info.TypeOf(r.X); {
	case isFloat(t):
		return m.convert(r.X, types.Typ[types.Int])
	case isEmptyInterface(t) && r.Value != nil && m.comparedToCharacter(m.variable(r.Value)):
		return m.convert(r.X, types.Typ[types.String])
	case m.behindPointer(r.X):
		return true
	case isEmptyInterface(t) && r.Value != nil && (isName(r.Key, "k") || isName(r.Key, "key") || isName(r.Key, "name")):
		return m.convert(r.X, anyObject)
	case isEmptyInterface(t) && (r.Key == nil || isName(r.Key, "_") || isName(r.Key, "i") || isName(r.Key, "idx") ||
		isName(r.Key, "index")) && r.Value != nil:
		return m.convert(r.X, types.NewSlice(types.Universe.Lookup("any").Type()))
	}
	return false
}

// cannotIndex repairs x["name"] and x[0] of a JSON value.
func (m *fixer) cannotIndex(_ types.Error, path []ast.Node, _ []string) bool {
	ix, ok := nearest(path, func(ix *ast.IndexExpr) bool { return isEmptyInterface(m.Info.TypeOf(ix.X)) })
	if !ok {
		ix, ok = nearest[*ast.IndexExpr](path, nil)
		return ok && (m.behindPointer(ix.X) || m.sequenceAsList(ix.X))
	}
	anyType := types.Universe.Lookup("any").Type()
	if to := m.shown(ix.X); to != nil && isPlainString(to) {
		return m.convert(ix.X, to)
	}
	l, literal := ix.Index.(*ast.BasicLit)
	switch t := m.Info.TypeOf(ix.Index); {
	case isString(t) || constantText(ix.Index) != "":
		return m.convert(ix.X, types.NewMap(types.Typ[types.String], anyType))
	case isWhole(t), literal && l.Kind == token.INT:
		return m.convert(ix.X, types.NewSlice(anyType))
	}
	return false
}

// mustBeInteger repairs an index, a length or a bound that is a JSON number, and call.Args["x"].
func (m *fixer) mustBeInteger(e types.Error, path []ast.Node, _ []string) bool {
	x := m.operandAt(e, path)
	if x == nil {
		return false
	}
	if ix, ok := m.parents[x].(*ast.IndexExpr); ok && ix.Index == x && constantText(x) != "" {
		return m.argsByName(ix, x)
	}
	t := m.Info.TypeOf(x)
	return (isFloat(t) || isEmptyInterface(t)) && m.convert(x, types.Typ[types.Int])
}

// argsByName repairs call.Args["x"].
func (m *fixer) argsByName(ix *ast.IndexExpr, index ast.Expr) bool {
	s, ok := ix.X.(*ast.SelectorExpr)
	if !ok || m.commaOK(ix) {
		return false
	}
	owner, name := m.hostMember(s)
	arg := m.argument(m.text(s.X), constantText(index))
	return owner == "Call" && name == "Args" && arg != "" && m.fix("arguments are read by call.Arg", m.replace(ix, arg))
}
