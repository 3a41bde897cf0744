package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// withCharacter is added to a program that sets a character of a text in a list.
const withCharacter = `func withCharacter(s string, at int, c rune) string { // of a text of ASCII alone
	for i := range len(s) {
		if s[i] >= 128 {
			panic("a byte of a text is no character beyond ASCII")
		}
	}
	return s[:at] + string(c) + s[at+1:]
}`

// setInText repairs rows[y][x] = '#' of a list of texts: the text is put together anew. The run fails where it has
// characters of several bytes.
func (m *fixer) setInText(_ types.Error, path []ast.Node, _ []string) bool {
	as, ok := nearest[*ast.AssignStmt](path, nil)
	if !ok || as.Tok != token.ASSIGN || len(as.Lhs) != 1 || len(as.Rhs) != 1 || len(m.edits) > 0 {
		return false
	}
	place, ok := as.Lhs[0].(*ast.IndexExpr)
	if !ok {
		return false
	}
	row, ok := place.X.(*ast.IndexExpr)
	if !ok || !isPlainString(m.Info.TypeOf(row)) || isString(m.Info.TypeOf(row.X)) || !m.isPlain(row) ||
		!m.isPlain(place.Index) || !isBasic(m.Info.TypeOf(place.Index), types.Int) &&
		m.Info.Types[place.Index].Value == nil {
		return false
	}
	value := m.text(as.Rhs[0])
	switch t := m.Info.TypeOf(as.Rhs[0]); {
	case t == nil:
		return false
	case isString(t):
		c, one := oneChar(m.Info.Types[as.Rhs[0]].Value)
		if !one {
			return false
		}
		value = strconv.QuoteRune(c)
	case isBasic(t, types.Uint8):
		value = "rune(" + value + ")"
	case !isRune(t) && !isBasic(t, types.UntypedRune):
		return false
	}
	edits, ok := m.given("withCharacter", withCharacter)
	return ok && m.fix("a text is put together anew, not changed in place", append(edits, m.replace(as,
		m.text(row)+" = withCharacter("+m.text(row)+", "+m.text(place.Index)+", "+value+")"))...)
}
