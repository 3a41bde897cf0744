package fix

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"unicode/utf8"
)

// oneChar returns the character that a constant string or rune consists of.
func oneChar(v constant.Value) (rune, bool) {
	if v == nil {
		return 0, false
	}
	switch v.Kind() {
	case constant.String:
		s := constant.StringVal(v)
		r, size := utf8.DecodeRuneInString(s)
		return r, size == len(s) && size > 0 && r != utf8.RuneError
	case constant.Int:
		n, ok := constant.Int64Val(v)
		return rune(n), ok && n > 0 && n < 1<<20
	}
	return 0, false
}

// converted returns the text of x converted to the type, if the result is unambiguous: it loses nothing, or it ends the
// call if the value does not fit. Otherwise it returns "".
func (m *fixer) converted(x ast.Expr, to types.Type) string {
	tv := m.Info.Types[x]
	from, text := tv.Type, m.text(x)
	if from == nil || to == nil {
		return ""
	}
	to = types.Default(to)
	if as := m.unlike(x, from, to); as != "" {
		return as
	}
	if as := m.pointed(x, from, to); as != "" {
		return as
	}
	if as := m.shifted(x, from, to); as != "" {
		return as
	}
	if tv.Value != nil {
		return m.constant(tv, to)
	}
	if _, method := x.(*ast.SelectorExpr); method && isGetter(from) &&
		types.Identical(from.(*types.Signature).Results().At(0).Type(), to) {
		return text + "()" // not for a variable, which may have been compared with nil
	}
	switch {
	case isEmptyInterface(from):
		return m.convertedJSON(x, to)
	case isNamed(from) || isNamed(to):
		return ""
	case (isBasic(from, types.Int) || isBasic(from, types.Int64)) && isBasic(to, types.Float64):
		if m.quotient(x) {
			return "" // the program may want the fraction
		}
		return "float64(" + text + ")"
	case isBasic(from, types.Int32), isBasic(from, types.Uint8):
		if as := m.character(x, text, from, to); as != "" {
			return as
		}
	case isBasic(from, types.Int) && isBasic(to, types.Int64), isBasic(from, types.Int64) && isBasic(to, types.Int):
		return m.typeText(to) + "(" + text + ")"
	case isFloat(from) && isBasic(to, types.Int), isFloat(from) && isBasic(to, types.Int64):
		return m.whole(x, to)
	}
	return m.convertedText(x, text, from, to)
}

// character converts a character, or a distance between characters, to a number. It returns "" if that is not meant.
func (m *fixer) character(x ast.Expr, text string, from, to types.Type) string {
	switch {
	case isBasic(to, types.Int) && m.digit(x):
		return "int(" + text + ")"
	case isBasic(from, types.Uint8) && isRune(to) && m.distance(x):
		return "rune(" + text + ")"
	}
	return ""
}

// unlike converts to a type of a different nature: a response to its body, a weekday to its number, an error to its
// message, a string to a reader. It returns "" for all other types.
func (m *fixer) unlike(x ast.Expr, from, to types.Type) string {
	text := m.text(x)
	switch {
	case isResponse(from) && isPlainString(to):
		return text + ".Body"
	case isResponse(from) && elemIs(to, types.Uint8):
		return "[]byte(" + text + ".Body)"
	case isCalendar(from) && types.Identical(to, types.Typ[types.Int]):
		return "int(" + text + ")"
	case isCalendar(from) && isPlainString(to) && m.textArgument(x):
		return text + ".String()"
	case isCalendar(to) && types.Identical(from, types.Typ[types.Int]):
		return m.typeText(to) + "(" + text + ")"
	case isCalendar(to) && (isFloat(from) || isEmptyInterface(from)) && m.Info.Types[x].Value == nil:
		return m.typeText(to) + "(" + m.asJSON(text, m.origin(x), types.Typ[types.Int]) + ")"
	case isBuilder(from) && isPlainString(to):
		return text + ".String()"
	case isError(to) && isString(from) && !isNamed(from):
		if _, returned := m.parents[x].(*ast.ReturnStmt); returned { // elsewhere the error may be compared
			return "errors.New(" + text + ")"
		}
	case isError(from) && isPlainString(to):
		return text + ".Error()"
	}
	return m.reader(x, from, to)
}

// textArgument reports whether an expression is an argument of a function of texts.
func (m *fixer) textArgument(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	return ok && strings.HasPrefix(m.callee(c), "strings.")
}

// isBuilder reports whether t is a type that collects text.
func isBuilder(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	name := types.TypeString(t, nil)
	return name == "strings.Builder" || name == "bytes.Buffer"
}

// isGetter reports whether t is a function without parameters that returns one value.
func isGetter(t types.Type) bool {
	s, ok := t.(*types.Signature)
	return ok && s.Params().Len() == 0 && s.Results().Len() == 1
}

// isNamed reports whether the type is declared with a name, such as a weekday or a duration.
func isNamed(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Named)
	return ok
}

// constant returns the literal of the same value in another type: a character as a string, or a string of one character
// as a character. It returns "" if there is none.
func (m *fixer) constant(tv types.TypeAndValue, to types.Type) string {
	c, ok := oneChar(tv.Value)
	switch {
	case !ok || isNamed(to):
	case isString(tv.Type) && (isRune(to) || isBasic(to, types.Uint8) && c < utf8.RuneSelf):
		return strconv.QuoteRune(c)
	case isBasic(tv.Type, types.UntypedRune) && isString(to):
		return strconv.Quote(string(c))
	}
	return ""
}

// textOfNumber is added to a program that reads a number from an argument, which may be a number or its text.
const textOfNumber = `func textOfNumber(v any) string { // of a number, or of a text that has one
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	return recurgent.Must(v, "").(string)
}`

// readNumber passes strconv.Atoi and its kin the text of an argument that may be a number.
func (m *fixer) readNumber(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || !strings.HasPrefix(m.callee(c), "strconv.") || !reading().MatchString(m.callee(c)) || c.Args[0] != x ||
		m.callee(c) == "strconv.ParseBool" || !isEmptyInterface(m.Info.TypeOf(x)) || m.origin(x) != ofArguments ||
		len(m.edits) > 0 {
		return false
	}
	edits, ok := m.given("textOfNumber", textOfNumber)
	return ok && m.useHost(clip(m.text(x))+" is a number or its text", append(edits, m.before(x, "textOfNumber("),
		m.after(x, ")"))...)
}

// convertedJSON converts a value of type any to a type that decoded JSON has or is converted to. It returns "" where
// the program may change the list or object: the conversion makes a copy.
func (m *fixer) convertedJSON(x ast.Expr, to types.Type) string {
	if jsonKind(to) == "array" || jsonKind(to) == "object" {
		c, ok := m.parents[x].(*ast.CallExpr)
		if !ok || m.ownFunction(c) || m.countText(m.text(x)) > 1 {
			return ""
		}
		if _, stands := m.parents[c].(*ast.ExprStmt); stands {
			return ""
		}
	}
	return m.asJSON(m.text(x), m.origin(x), to)
}

// whole converts a float64 where an integer is required. A value that is not whole ends the call. A variable that is an
// int only because of its first value may have been meant as a float64. Both behave alike unless the program divides
// integers, so whole then returns "".
func (m *fixer) whole(x ast.Expr, to types.Type) string {
	if m.isTruncated(x) {
		return m.typeText(to) + "(" + m.text(x) + ")"
	}
	if _, assigned := m.parents[x].(*ast.AssignStmt); assigned && m.divides() {
		return ""
	}
	return m.asJSON(m.text(x), m.origin(x), to)
}

// divides reports whether the program divides integers, other than those that it converts itself, as in int(x) / 60.
func (m *fixer) divides() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			found = found || (n.Op == token.QUO || n.Op == token.SHR) && m.Info.Types[n].Value == nil &&
				!isFloat(m.Info.TypeOf(n.X)) && !isFloat(m.Info.TypeOf(n.Y)) && !m.madeInt(n.X)
		case *ast.AssignStmt:
			found = found || n.Tok == token.QUO_ASSIGN && !isFloat(m.Info.TypeOf(n.Lhs[0]))
		}
		return !found
	})
	return found
}

// madeInt reports whether an expression is a conversion to an integer, such as int(x).
func (m *fixer) madeInt(x ast.Expr) bool {
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && m.Info.Types[c.Fun].IsType() && isWhole(m.Info.TypeOf(c.Fun))
}

// convertedText converts between strings, characters and lists of them. It returns "" for other types.
func (m *fixer) convertedText(x ast.Expr, text string, from, to types.Type) string {
	characters := func(t types.Type) bool { return elemIs(t, types.Uint8) || areRunes(t) }
	switch {
	case isString(to) && characters(from), isString(from) && characters(to):
		return m.typeText(to) + "(" + text + ")"
	case isString(to) && isRune(from) && m.ofText(x):
		return "string(" + text + ")"
	case isString(to) && isBasic(from, types.Uint8) && m.firstOfText(x) != nil:
		return "string([]rune(" + m.text(m.firstOfText(x)) + ")[:1])" // not its first byte
	case isString(to) && isBasic(from, types.Uint8) && m.byteOfText(x):
		return "string([]byte{" + text + "})" // not string(c): several bytes may form one character
	}
	return ""
}

// ofText reports whether an expression is a character of a string or of a list of runes.
func (m *fixer) ofText(x ast.Expr) bool {
	v, found := m.variable(x), false
	switch e := ast.Unparen(x).(type) {
	case *ast.IndexExpr:
		return areRunes(m.Info.TypeOf(e.X))
	case *ast.BinaryExpr:
		return m.fromCharacter(e)
	case *ast.CallExpr:
		name := m.callee(e)
		return name == "unicode.ToUpper" || name == "unicode.ToLower" || name == "unicode.ToTitle"
	}
	if v == nil {
		return false
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if r, ok := n.(*ast.RangeStmt); ok && r.Value != nil && m.variable(r.Value) == v {
			t := m.Info.TypeOf(r.X)
			found = t != nil && (isString(t) || areRunes(t))
		}
		if as, ok := n.(*ast.AssignStmt); ok {
			for _, l := range as.Lhs {
				if m.variable(l) == v {
					v = nil // also set to something else
				}
			}
		}
		return v != nil
	})
	return found && v != nil
}

// fromCharacter reports whether a sum is a character plus a distance, as in 'a' + (c-'a'+3)%26.
func (m *fixer) fromCharacter(sum *ast.BinaryExpr) bool {
	if sum.Op != token.ADD {
		return false
	}
	return isChar(sum.X) && m.isDistance(sum.Y) || isChar(sum.Y) && m.isDistance(sum.X)
}

func isChar(x ast.Expr) bool {
	l, ok := ast.Unparen(x).(*ast.BasicLit)
	return ok && l.Kind == token.CHAR
}

// isDistance reports whether an expression is a distance between characters, possibly with a number added or as a
// remainder, or a conversion of an int.
func (m *fixer) isDistance(x ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		switch x.Op {
		case token.SUB:
			return isChar(x.Y) || m.isDistance(x.X) && !isChar(x.Y)
		case token.ADD:
			return m.isDistance(x.X) && !isChar(x.Y)
		case token.REM:
			return m.isDistance(x.X)
		}
	case *ast.CallExpr:
		return m.Info.Types[x.Fun].IsType() && len(x.Args) == 1 && isBasic(m.Info.TypeOf(x.Args[0]), types.Int)
	}
	return false
}

// distance reports whether an expression is a digit as digit defines it, or a variable that is set only to one.
func (m *fixer) distance(x ast.Expr) bool {
	v := m.variable(x)
	def, value := m.definition(v)
	return m.digit(x) || value != nil && m.setOnce(v, def) && m.digit(value)
}

// digit reports whether an expression is a character minus a character literal. It is a number, whatever its type.
func (m *fixer) digit(x ast.Expr) bool {
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	if !ok || b.Op != token.SUB {
		return false
	}
	l, ok := ast.Unparen(b.Y).(*ast.BasicLit)
	return ok && l.Kind == token.CHAR
}
