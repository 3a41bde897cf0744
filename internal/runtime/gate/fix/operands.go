package fix

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// mismatched fixes an operation on two types: int and float64, a text and a character, a number of JSON and one of the program's.
func (m *fixer) mismatched(e types.Error, path []ast.Node, _ []string) bool {
	if c, ok := nearest[*ast.CaseClause](path, nil); ok && strings.HasPrefix(strings.TrimPrefix(e.Msg, "invalid operation: "), "invalid case") {
		return m.caseOf(c, path)
	}
	differ := func(x, y ast.Expr) bool {
		a, b := m.Info.TypeOf(x), m.Info.TypeOf(y)
		return a != nil && b != nil && !types.Identical(a, b)
	}
	for _, n := range path {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if differ(n.X, n.Y) && m.mixed(n) {
				return true
			}
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && len(n.Rhs) == 1 && n.Tok != token.ASSIGN && n.Tok != token.DEFINE && differ(n.Lhs[0], n.Rhs[0]) {
				return n.Tok != token.REM_ASSIGN && m.convert(n.Rhs[0], m.Info.TypeOf(n.Lhs[0]))
			}
		case *ast.BlockStmt:
			return false
		}
	}
	return false
}

// mixed fixes x op y.
func (m *fixer) mixed(n *ast.BinaryExpr) bool {
	switch {
	case n.Op == token.REM:
		return m.remainder(n)
	case n.Op == token.QUO && m.hasRemainder(n.X, n.Y):
		return false // the fraction is not wanted
	}
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		from, to := m.Info.Types[side[0]], m.Info.TypeOf(side[1])
		switch {
		case isEmptyInterface(from.Type) && !isEmptyInterface(to):
			return m.convert(side[0], m.operand(n, to))
		case from.Value != nil && !isString(to), isString(to) && n.Op == token.ADD, isString(to) && isBasic(from.Type, types.Int32),
			isWhole(from.Type) && (isBasic(to, types.Float64) || isBasic(to, types.Int64) && isBasic(from.Type, types.Int)),
			isBasic(from.Type, types.Int32) && isBasic(to, types.Int):
			if m.convert(side[0], to) {
				return true
			}
		}
	}
	return false
}

// remainder fixes x % y of a number of JSON, which has to be whole.
func (m *fixer) remainder(n *ast.BinaryExpr) (done bool) {
	for _, x := range []ast.Expr{n.X, n.Y} {
		if t := m.Info.TypeOf(x); isFloat(t) && m.Info.Types[x].Value == nil || isEmptyInterface(t) {
			done = m.convert(x, types.Typ[types.Int]) || done
		}
	}
	return done
}

// operand is the type that a value of JSON has beside one of type t; nil where it may have several.
func (m *fixer) operand(n *ast.BinaryExpr, t types.Type) types.Type {
	switch {
	case n.Op == token.QUO && !isFloat(t):
		return nil // with or without a fraction?
	case isBasic(t, types.UntypedInt), isBasic(t, types.UntypedFloat):
		return types.Typ[types.Float64]
	}
	return types.Default(t)
}

// convert puts the conversion of an expression in its place.
func (m *fixer) convert(x ast.Expr, to types.Type) bool {
	if isBasic(m.Info.TypeOf(x), types.Float64) && isWhole(to) && m.madeWhole(x, to) {
		return true
	}
	text := m.converted(x, to)
	return text != "" && m.useHost(clip(m.text(x))+" is converted: "+clip(text), m.replace(x, text))
}

// undefinedOperator fixes arithmetic of a number of JSON and another number, and the remainder of one.
func (m *fixer) undefinedOperator(_ types.Error, path []ast.Node, match []string) bool {
	n, ok := nearest(path, func(b *ast.BinaryExpr) bool { return b.Op.String() == match[1] })
	if !ok {
		return false
	}
	if n.Op == token.REM {
		return m.remainder(n)
	}
	return isEmptyInterface(m.Info.TypeOf(n.X)) != isEmptyInterface(m.Info.TypeOf(n.Y)) && m.mixed(n)
}

// truncatedConstant fixes n * 0.5 of an int n.
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

// caseOf fixes a case that has another type than what the switch is about.
func (m *fixer) caseOf(c *ast.CaseClause, path []ast.Node) bool {
	s, ok := nearest[*ast.SwitchStmt](path, nil)
	if !ok || s.Tag == nil {
		return false
	}
	done := false
	for _, x := range c.List {
		if t := m.Info.TypeOf(s.Tag); t != nil && m.Info.Types[x].Value != nil && !types.Identical(types.Default(m.Info.TypeOf(x)), t) {
			done = m.convert(x, t) || done
		}
	}
	return done
}
