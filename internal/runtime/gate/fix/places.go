package fix

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
)

// cutText is added to a program that takes a part of a text up to a place that is counted from its end.
const cutText = `func cutText(s string, from, to int) string { // characters; places below 0 count from the end
	list := []rune(s)
	if from < 0 {
		from = max(0, len(list)+from)
	}
	if to <= 0 {
		to += len(list)
	}
	from = min(from, len(list))
	return string(list[from:max(from, min(to, len(list)))])
}`

// fromTheEnd repairs list[-1] and list[1:-1]: places below 0 count from the end, as in other languages.
func (m *fixer) fromTheEnd(_ types.Error, path []ast.Node, _ []string) bool {
	for _, n := range path {
		switch n := n.(type) {
		case *ast.IndexExpr:
			return m.lastOf(n)
		case *ast.SliceExpr:
			return m.upToLast(n)
		case ast.Stmt:
			return false
		}
	}
	return false
}

// lastOf repairs list[-1], and s[-1] of a text beside a character of ASCII.
func (m *fixer) lastOf(n *ast.IndexExpr) bool {
	k := below(m.Info.Types[n.Index])
	t := m.Info.TypeOf(n.X)
	if k == 0 || t == nil || !m.isPlain(n.X) {
		return false
	}
	if _, list := t.Underlying().(*types.Slice); !list && !(isString(t) && m.besideASCII(n)) {
		return false
	}
	return m.fix("a place is counted from the end by len", m.replace(n.Index, "len("+m.text(n.X)+")-"+
		strconv.FormatInt(k, 10)))
}

// below returns how far a constant is below 0, or 0 if it is not.
func below(tv types.TypeAndValue) int64 {
	if tv.Value == nil {
		return 0
	}
	k, ok := constant.Int64Val(constant.ToInt(tv.Value))
	if !ok || k >= 0 || k < -1000 {
		return 0
	}
	return -k
}

// besideASCII reports whether an expression is compared with a character of ASCII. A byte of another one never equals
// it.
func (m *fixer) besideASCII(x ast.Expr) bool {
	b, ok := m.parents[x].(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL && b.Op != token.NEQ {
		return false
	}
	for _, side := range []ast.Expr{b.X, b.Y} {
		if c, ok := oneChar(m.Info.Types[side].Value); ok && side != x && c < 0x80 {
			return true
		}
	}
	return false
}

// upToLast repairs list[1:-1] with constants. Beyond the ends there is nothing, as in Python.
func (m *fixer) upToLast(n *ast.SliceExpr) bool {
	t := m.Info.TypeOf(n.X)
	low, ok := m.constantPlace(n.Low)
	high, known := m.constantPlace(n.High)
	if t == nil || n.Slice3 || !ok || !known || !m.isPlain(n.X) || n.High != nil && high == 0 {
		return false
	}
	const note = "places below 0 count from the end"
	if isPlainString(t) {
		edits, ok := m.given("cutText", cutText)
		return ok && len(m.edits) == 0 && m.fix(note, append(edits, m.replace(n, "cutText("+m.text(n.X)+", "+
			strconv.FormatInt(low, 10)+", "+strconv.FormatInt(high, 10)+")"))...)
	}
	if _, list := t.Underlying().(*types.Slice); !list {
		return false
	}
	place := func(k int64, least string) string {
		length := "len(" + m.text(n.X) + ")"
		switch {
		case k < 0:
			return "max(" + least + ", " + length + strconv.FormatInt(k, 10) + ")"
		case least == "0":
			return "min(" + strconv.FormatInt(k, 10) + ", " + length + ")"
		}
		return "min(max(" + least + ", " + strconv.FormatInt(k, 10) + "), " + length + ")"
	}
	from, to := "", ""
	if n.Low != nil && low != 0 {
		from = place(low, "0")
	}
	if n.High != nil {
		to = place(high, "0")
		if from != "" {
			to = place(high, from)
		}
	}
	return m.fix(note, edit{m.offset(n.Lbrack), m.offset(n.Rbrack) + 1, "[" + from + ":" + to + "]"})
}

// constantPlace returns a constant limit of a part, which is 0 where it is left out.
func (m *fixer) constantPlace(x ast.Expr) (int64, bool) {
	if x == nil {
		return 0, true
	}
	v := m.Info.Types[x].Value
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
