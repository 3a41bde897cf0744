package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// places matches usual names of an index, eitherWay those that an element may have, too.
var (
	places    = lazy.Regexp(`(?i)^(?:[ijkn_]|idx|index|ind|pos|position|place)\d*$`)
	eitherWay = lazy.Regexp(`(?i)^(?:row|col|line|no|num|number|key)\d*$`)
)

// ranged rewrites for word := range words to range over the elements, if the variable is used as an element and is not
// named like an index.
func (m *fixer) ranged(e types.Error, path []ast.Node) bool {
	if !strings.Contains(e.Msg, "int") {
		return false
	}
	for _, n := range path {
		switch n.(type) {
		case *ast.AssignStmt, *ast.ExprStmt, *ast.ReturnStmt, ast.Expr:
		default:
			return false
		}
		done := false
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && !done && regexp.MustCompile(`\b`+regexp.QuoteMeta(id.Name)+`\b`).MatchString(e.Msg) {
				if r := m.overPlaces(m.variable(id)); r != nil {
					done = m.fix(id.Name+" is an item: for _, "+id.Name+" := range", m.before(r.Key, "_, "))
				}
			}
			return !done
		})
		if done {
			return true
		}
	}
	return false
}

// onlyElement reports whether each use of a variable passes it where the elements of the list fit and no int does.
func (m *fixer) onlyElement(v *types.Var, loop *ast.RangeStmt) bool {
	list, ok := m.Info.TypeOf(loop.X).Underlying().(interface{ Elem() types.Type })
	if !ok || isEmptyInterface(list.Elem()) || isKind(list.Elem(), types.IsNumeric) {
		return false
	}
	for _, id := range m.usesOf(v) {
		if to := m.wanted(id); to == nil || !types.Identical(to, list.Elem()) {
			return false
		}
	}
	return true
}

// overPlaces returns the loop over the indexes of a list that sets the variable, or nil if the name or the uses are
// those of an index.
func (m *fixer) overPlaces(v *types.Var) (loop *ast.RangeStmt) {
	if v == nil || places().MatchString(v.Name()) {
		return nil
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if r, ok := n.(*ast.RangeStmt); ok && r.Tok == token.DEFINE && r.Value == nil && m.variable(r.Key) == v {
			switch m.Info.TypeOf(r.X).Underlying().(type) {
			case *types.Slice, *types.Array:
				loop = r
			}
		}
		return loop == nil
	})
	if loop == nil || eitherWay().MatchString(v.Name()) && !m.onlyElement(v, loop) {
		return nil
	}
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.IndexExpr:
			if p.Index == id {
				return nil
			}
		case *ast.BinaryExpr:
			if strings.Contains(m.text(p), "len(") {
				return nil
			}
		}
	}
	return loop
}
