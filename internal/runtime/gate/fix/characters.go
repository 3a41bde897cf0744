package fix

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// counts reports whether an int is a length or a digit, or a variable that is set to one once. A variable that is
// counted up may go over the characters.
func (m *fixer) counts(x ast.Expr) bool {
	switch e := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		return isName(e.Fun, "len")
	case *ast.BinaryExpr:
		by := m.Info.Types[e.Y].Value
		if e.Op != token.REM || by == nil || by.Kind() != constant.Int {
			return false
		}
		n, exact := constant.Int64Val(by)
		return exact && n > 0 && n <= 10
	}
	v := m.variable(x)
	def, value := m.definition(v)
	if v == nil || def == nil || !isBasic(v.Type(), types.Int) {
		return false
	}
	_, isRem := ast.Unparen(value).(*ast.BinaryExpr)
	return value != nil && m.setOnce(v, def) && (isRem || isLength(value)) && m.counts(value)
}

func isLength(x ast.Expr) bool {
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && isName(c.Fun, "len")
}

// textOfCounts writes string(n) of a length or a digit as strconv.Itoa(n).
func (m *fixer) textOfCounts() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if ok && !m.checker.Spent() && len(c.Args) == 1 && isName(c.Fun, "string") && m.Info.Types[c.Fun].IsType() &&
			isBasic(m.Info.TypeOf(c.Args[0]), types.Int) && m.Info.Types[c.Args[0]].Value == nil &&
			m.counts(c.Args[0]) {
			m.fix("the text of a number is strconv.Itoa", m.replace(c.Fun, "strconv.Itoa"))
		}
		return true
	})
}

// shifted converts an int that is counted from a character to one: 'a' + (int(c-'a')+n)%26.
func (m *fixer) shifted(x ast.Expr, from, to types.Type) string {
	sum, ok := ast.Unparen(x).(*ast.BinaryExpr)
	if !ok || !isBasic(from, types.Int) || !isRune(to) && !isBasic(to, types.Uint8) || !hasCharacter(sum) {
		return ""
	}
	if isRune(to) {
		return "rune(" + m.text(x) + ")"
	}
	return "byte(" + m.text(x) + ")"
}

// hasCharacter reports whether a sum or difference has a character literal as a summand.
func hasCharacter(x ast.Expr) bool {
	if isChar(x) {
		return true
	}
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	return ok && (b.Op == token.ADD && (hasCharacter(b.X) || hasCharacter(b.Y)) || b.Op == token.SUB &&
		hasCharacter(b.X) && !hasCharacter(b.Y))
}

// droppedCharacter returns -1 from the function of strings.Map where the program returns an empty text for a character.
func (m *fixer) droppedCharacter(x ast.Expr) bool {
	r, ok := m.parents[x].(*ast.ReturnStmt)
	v := m.Info.Types[x].Value
	if !ok || len(r.Results) != 1 || v == nil || v.Kind() != constant.String || constant.StringVal(v) != "" {
		return false
	}
	f := m.literalAround(r)
	if f == nil {
		return false
	}
	c, ok := m.parents[f].(*ast.CallExpr)
	return ok && m.callee(c) == "strings.Map" && m.fix("strings.Map leaves out what is -1", m.replace(x, "-1"))
}

// fromDigit repairs c - "0" and string(c) - "0" of a character or a byte of a text, which is the number of a digit.
func (m *fixer) fromDigit(n *ast.BinaryExpr) bool {
	from, ok := oneChar(m.Info.Types[n.Y].Value)
	if !ok || !isString(m.Info.TypeOf(n.Y)) || from >= 128 {
		return false
	}
	x := ast.Unparen(n.X)
	if c, ok := x.(*ast.CallExpr); ok && len(c.Args) == 1 && isName(c.Fun, "string") && m.Info.Types[c.Fun].IsType() {
		x = c.Args[0]
	}
	if t := m.Info.TypeOf(x); !isRune(t) && !isBasic(t, types.Uint8) {
		return false
	}
	return m.fix("a digit is counted from a character", m.replace(n.X, m.text(x)),
		m.replace(n.Y, strconv.QuoteRune(from)))
}

// digitText passes a character or a byte of a text to a function that reads a number from a text. No byte of a longer
// character is a digit, so that such a function fails for it.
func (m *fixer) digitText(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	t := m.Info.TypeOf(x)
	if !ok || len(c.Args) == 0 || c.Args[0] != x || !strings.HasPrefix(m.callee(c), "strconv.") ||
		!reading().MatchString(m.callee(c)) || isNamed(t) || m.Info.Types[x].Value != nil {
		return false
	}
	switch {
	case isRune(t):
		return m.fix(clip(m.text(x))+" is a character", m.replace(x, "string("+m.text(x)+")"))
	case isBasic(t, types.Uint8):
		return m.fix(clip(m.text(x))+" is a character", m.replace(x, "string(rune("+m.text(x)+"))"))
	}
	return false
}

// These functions are added to a program that takes a byte of a text for a character, and a bool for a number.
const (
	asciiOf = `func asciiOf(b byte) rune { // a byte of a text that is a character of its own
	if b >= 128 {
		panic("a byte of a text is no character beyond ASCII")
	}
	return rune(b)
}`
	oneOrZero = `func oneOrZero(b bool) int {
	if b {
		return 1
	}
	return 0
}`
)

// ascii passes a byte of a text to a function of characters. The run fails where the byte is a part of a character.
func (m *fixer) ascii(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || !strings.HasPrefix(m.callee(c), "unicode.") || !isBasic(m.Info.TypeOf(x), types.Uint8) ||
		isNamed(m.Info.TypeOf(x)) || len(m.edits) > 0 {
		return false
	}
	edits, ok := m.given("asciiOf", asciiOf)
	return ok && m.fix(clip(m.text(x))+" is a byte: it is a character in ASCII alone", append(edits,
		m.before(x, "asciiOf("), m.after(x, ")"))...)
}

// countedBool converts int(b) of a bool, which is 1 or 0.
func (m *fixer) countedBool(path []ast.Node) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool {
		return len(c.Args) == 1 && isName(c.Fun, "int") && isBasic(m.Info.TypeOf(c.Args[0]), types.Bool)
	})
	if !ok || len(m.edits) > 0 {
		return false
	}
	edits, ok := m.given("oneOrZero", oneOrZero)
	return ok && m.fix("int of a bool is 1 or 0", append(edits, m.replace(c.Fun, "oneOrZero"))...)
}
