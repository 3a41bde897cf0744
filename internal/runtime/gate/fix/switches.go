package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// switched returns the expression x.(type) of a type switch, or nil.
func switched(n *ast.TypeSwitchStmt) *ast.TypeAssertExpr {
	switch a := n.Assign.(type) {
	case *ast.ExprStmt:
		x, _ := a.X.(*ast.TypeAssertExpr)
		return x
	case *ast.AssignStmt:
		x, _ := a.Rhs[0].(*ast.TypeAssertExpr)
		return x
	}
	return nil
}

// typeSwitch converts the operand of a type switch to the types of cases that decoded JSON never matches, unless
// another case takes the JSON itself.
func (m *fixer) typeSwitch(n *ast.TypeSwitchStmt) {
	subject := switched(n)
	if subject == nil {
		return
	}
	if _, ok := m.isJSON(subject.X); !ok {
		return
	}
	taken := map[string]bool{}
	for _, c := range n.Body.List {
		for _, t := range c.(*ast.CaseClause).List {
			taken[decodedAs(m.Info.TypeOf(t))] = true
		}
	}
	ast.Inspect(n.Body, func(o ast.Node) bool { // assertions in the cases, such as the default
		if a, ok := o.(*ast.TypeAssertExpr); ok && a.Type != nil {
			taken[decodedAs(m.Info.TypeOf(a.Type))] = true
		}
		return true
	})
	var likes []string
	for _, c := range n.Body.List {
		for _, t := range c.(*ast.CaseClause).List {
			of := m.Info.TypeOf(t)
			if of == nil || jsonKind(of) == "" || m.text(t) == "rune" || m.text(t) == "byte" {
				continue
			}
			kind, like := jsonKind(of), m.like(of)
			if like == "" || taken[kind] || m.handled(subject.X, kind, true) {
				continue
			}
			if kind != "number" { // a conversion would copy a list, and changes to it would be lost
				m.name(t, "case "+clip(m.text(t))+
					" never holds: of decoded JSON lists are []any, objects map[string]any; take those, then convert the items")
				continue
			}
			taken[kind] = true
			likes = append(likes, like)
		}
	}
	if len(likes) > 0 {
		m.useHost("JSON has no values of these cases: they are converted",
			m.replace(subject.X, "recurgent.Case("+m.text(subject.X)+", "+strings.Join(likes, ", ")+")"))
	}
}

// comparison repairs x == 5 of decoded JSON, whose numbers are float64 and never equal an int.
func (m *fixer) comparison(n *ast.BinaryExpr) {
	if n.Op != token.EQL && n.Op != token.NEQ {
		return
	}
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		if _, ok := m.isJSON(side[0]); ok && m.isInt(side[1]) {
			m.useHost("numbers of JSON are float64 and equal no int: it is converted",
				m.replace(side[0], "recurgent.As("+m.text(side[0])+", 0)"))
			return
		}
	}
}

// valueSwitch repairs case 5 of decoded JSON in the same way.
func (m *fixer) valueSwitch(n *ast.SwitchStmt) {
	if n.Tag == nil {
		return
	}
	if _, ok := m.isJSON(n.Tag); !ok {
		return
	}
	ints := false
	for _, c := range n.Body.List {
		for _, x := range c.(*ast.CaseClause).List {
			if t := m.Info.TypeOf(x); !m.isInt(x) && (isKind(t, types.IsNumeric) || isEmptyInterface(t)) {
				return
			}
			ints = ints || m.isInt(x)
		}
	}
	if ints {
		m.useHost("numbers of JSON are float64 and equal no int: it is converted",
			m.replace(n.Tag, "recurgent.As("+m.text(n.Tag)+", 0)"))
	}
}

// isInt reports whether e is an int or an untyped integer constant.
func (m *fixer) isInt(e ast.Expr) bool {
	t := m.Info.TypeOf(e)
	return t != nil && (types.Identical(t, types.Typ[types.Int]) || types.Identical(t, types.Typ[types.UntypedInt]))
}
