package fix

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// name records a fault of a program that compiles. Faults are reported, not repaired.
func (m *fixer) name(n ast.Node, text string) {
	m.named = append(m.named, mark{m.offset(n.Pos()), text})
}

// neverHolds reports an assertion of decoded JSON that never holds, or only for numbers beyond 2^53.
func (m *fixer) neverHolds(n *ast.TypeAssertExpr, t types.Type) {
	holds, what := "never", "numbers are float64, lists []any, objects map[string]any; assert those, then convert the items"
	switch _, object := t.Underlying().(*types.Struct); {
	case isDigits(t):
		holds, what = "seldom", "a number is a float64, and a json.Number only beyond 2^53; take both by a type switch, or Bind into an int64"
	case types.TypeString(t, nil) == "time.Time":
		what = "a date is a text: time.Parse(time.DateOnly, s)"
	case object:
		what = "an object is map[string]any, and call.Bind(&v) fills a struct with the arguments"
	}
	m.name(n, fmt.Sprintf("%s %s holds: of decoded JSON %s", clip(m.text(n)), holds, what))
}

// faults reports what is wrong in a program that compiles. If something was fixed, it also reports what the author may
// have meant differently.
func (m *fixer) faults() {
	m.formats()
	m.numbersAsTexts()
	m.hiddenVariables()
	m.leftOut()
	m.characters()
	m.unreadErrors()
	m.unflushed()
	m.hiddenFields()
	m.sharedTags()
	if m.begun() {
		m.fractions()
		m.paddedLists()
		m.heldCharacters()
		if m.terms.Returns == "" {
			m.nilLists() // null may be intended
		}
	}
}

// fractions reports integer divisions in a program whose JSON numbers a fix has made integers: the author may have
// wanted the fraction. It accepts the division if the program also takes the remainder, rounds up, or uses the quotient
// as an index.
func (m *fixer) fractions() {
	if !m.wholeJSON() {
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		var x, y ast.Expr
		if len(m.named) >= maxNotes {
			return false
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			tv := m.Info.Types[n]
			if n.Op == token.QUO && tv.Value == nil && isWhole(tv.Type) && !isNamed(tv.Type) && !m.roundsUp(n) &&
				!m.isClock(n) && (m.checker.Spent() || !m.isPlace(n)) {
				x, y = n.X, n.Y
			}
		case *ast.AssignStmt:
			if n.Tok == token.QUO_ASSIGN && isWhole(m.Info.TypeOf(n.Lhs[0])) {
				x, y = n.Lhs[0], n.Rhs[0]
			}
		}
		if x != nil && (m.checker.Spent() || !m.hasRemainder(x, y) && !m.madeInt(x) && !m.isDivisor(y)) {
			m.name(n, clip(m.text(n))+
				" drops the fraction: numbers of JSON are float64, divide those; write int(a) / int(b) of float64 variables to drop it")
		}
		return true
	})
}

// hasRemainder reports whether the program also takes the remainder of the same division. It then means the quotient
// without its fraction.
func (m *fixer) hasRemainder(x, y ast.Expr) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		found = found || ok && b.Op == token.REM && m.sameNumber(b.X, x) && m.sameNumber(b.Y, y) || m.takesOff(n, x, y)
		return !found
	})
	return found
}

// divisor matches names of functions for the greatest common divisor.
var divisor = lazy.Regexp(`(?i)^(?:gcd|hcf|ggt|greatestCommon(?:Divisor|Factor))$`)

// isDivisor reports whether y is the result of a function for the greatest common divisor, which leaves no fraction.
func (m *fixer) isDivisor(y ast.Expr) bool {
	c, ok := ast.Unparen(y).(*ast.CallExpr)
	return ok && divisor().MatchString(m.text(c.Fun))
}

// roundsUp reports whether a division is (a + b - 1) / b.
func (m *fixer) roundsUp(n *ast.BinaryExpr) bool {
	sum, ok := ast.Unparen(n.X).(*ast.BinaryExpr)
	return ok && sum.Op == token.SUB && isNumber(sum.Y, "1") && strings.HasSuffix(m.text(sum.X), "+ "+m.text(n.Y))
}

// isClock reports whether a division has the form n % 3600 / 60, which takes whole hours, minutes or similar from a
// remainder.
func (m *fixer) isClock(n *ast.BinaryExpr) bool {
	rest, ok := ast.Unparen(n.X).(*ast.BinaryExpr)
	if !ok || rest.Op != token.REM {
		return false
	}
	of, _ := constant.Int64Val(constant.ToInt(valueOf(m.Info.Types[rest.Y])))
	by, _ := constant.Int64Val(constant.ToInt(valueOf(m.Info.Types[n.Y])))
	return slices.Contains(clock, of) && slices.Contains(clock, by) && of > by
}

// clock lists units of time in seconds or milliseconds.
var clock = []int64{60, 1000, 3600, 60000, 86400, 3600000, 86400000}

// valueOf returns the constant value of an expression, or an unknown one.
func valueOf(tv types.TypeAndValue) constant.Value {
	if tv.Value == nil {
		return constant.MakeUnknown()
	}
	return tv.Value
}

// numbersAsTexts reports string(n) of an integer, which is a character.
func (m *fixer) numbersAsTexts() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) != 1 || !m.Info.Types[c.Fun].IsType() || !isString(m.Info.TypeOf(c.Fun)) {
			return true
		}
		_, computed := c.Args[0].(*ast.BinaryExpr)
		if t := m.Info.TypeOf(c.Args[0]); !computed && (isBasic(t, types.Int) || isBasic(t, types.Int64)) {
			m.name(c, clip(m.text(c))+
				" is the character of that number: strconv.Itoa(n) is its text, string(rune(n)) the character")
		}
		return true
	})
}

// placeholder matches comments that stand for omitted code. andSoOn matches an ellipsis, which means an omission only
// within a literal.
var (
	placeholder = lazy.Regexp(
		`(?i)^(?:TODO|FIXME)\b[:( ]*(?:implement|write|fill|complete)|\b(?:your|actual|real) (?:code|logic|implementation) (?:goes )?here\W*$|^(?:\.\.\.|…)? ?implement (?:this|it|me|here|the logic)(?: here)?\W*$|` +
			`^(?:\.\.\.|…) ?(?:the )?(?:rest|remaining|omitted|existing code|other (?:code|cases|functions|fields))\b|` +
			`^(?:\.\.\.|…)? ?(?:the )?(?:rest|remainder) of (?:the|your) (?:code|implementation|function|program|logic)(?: (?:goes|is|remains|stays))?(?: (?:here|unchanged|omitted|the same|as before))?\W*$`)
	andSoOn = lazy.Regexp(`^(?:\.\.\.|…)`)
)

// leftOut reports comments in functions and literals that stand for omitted code.
func (m *fixer) leftOut() {
	for _, group := range m.file.Comments {
		text, _, _ := strings.Cut(strings.TrimSpace(group.Text()), "\n")
		begin := m.offset(group.Pos())
		alone := strings.TrimSpace(m.src[strings.LastIndexByte(m.src[:begin], '\n')+1:begin]) == ""
		path, _ := astutil.PathEnclosingInterval(m.file, group.Pos(), group.End())
		if !alone || len(path) < 2 {
			continue
		}
		if _, list := path[0].(*ast.CompositeLit); placeholder().MatchString(text) || list &&
			andSoOn().MatchString(text) {
			m.name(group, "code was left out here: "+clip(text)+". Write the whole program")
		}
	}
}

// hiddenVariables repairs or reports := that declares an unused variable with the name of an outer one, where = was
// meant.
func (m *fixer) hiddenVariables() {
	used := map[types.Object]bool{}
	for _, obj := range m.Info.Uses {
		used[obj] = true
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v, ok := m.Info.Defs[id].(*types.Var)
		if !ok || used[v] || v.Parent() == nil || v.Parent().Parent() == nil || v.IsField() {
			return true
		}
		if as, ok := m.parents[id].(*ast.AssignStmt); ok && as.Tok == token.DEFINE {
			_, outer := v.Parent().Parent().LookupParent(v.Name(), v.Pos())
			if o, ok := outer.(*types.Var); ok && len(as.Lhs) == 1 && o.Parent() != m.Pkg.Scope() &&
				types.Identical(o.Type(), v.Type()) {
				at := m.offset(as.TokPos)
				m.fix(v.Name()+" is set, not declared anew", edit{at, at + 2, "="})
			} else if ok && m.setBesideNew(as, used) {
				return true
			} else if outer != nil && outer.Pkg() == m.Pkg && outer.Parent() != m.Pkg.Scope() {
				m.name(id, v.Name()+" is a new variable here, which nothing reads: write = to set the one further out")
			}
		}
		return true
	})
}

// nilLists reports lists that the program may return without a value. They are encoded as null.
func (m *fixer) nilLists() {
	m.returnedLists(func(v *types.Var, spec ast.Node, typ string) {
		m.name(spec, v.Name()+" is nil, which is null, where nothing is appended: start with "+v.Name()+" := "+typ+
			"{}, or return nil where null is meant")
	})
}

// wholeJSON reports whether the program uses a helper to convert JSON numbers to integers.
func (m *fixer) wholeJSON() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		if a, ok := n.(*ast.TypeAssertExpr); ok && a.Type != nil && m.helped(a.X) {
			found = found || hasWhole(m.Info.TypeOf(a.Type))
		}
		return !found
	})
	return found
}

// isPlace reports whether a number is used as an index, directly or through a variable.
func (m *fixer) isPlace(n ast.Expr) bool {
	var v *types.Var
	for p := m.parents[n]; p != nil; p = m.parents[p] {
		switch p := p.(type) {
		case *ast.IndexExpr, *ast.SliceExpr:
			return true
		case *ast.AssignStmt:
			if len(p.Lhs) == 1 {
				v = m.variable(p.Lhs[0])
			}
		case ast.Expr:
			continue
		}
		break
	}
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		if ix, ok := n.(*ast.IndexExpr); ok && v != nil {
			found = found || mentions(m, ix.Index, v)
		}
		return !found
	})
	return found
}

// Verbs matches a verb of a format. The group is its letter.
var Verbs = lazy.Regexp(`%[-+# 0]*[\d.]*([a-zA-Z%])`)

// fits converts an argument of a format to a type that its verb accepts, or reports it.
func (m *fixer) fits(x ast.Expr, format, verb string) {
	t := m.Info.TypeOf(x)
	switch {
	case t == nil || types.NewMethodSet(t).Lookup(nil, "Format") != nil || m.fitsAs(x, t, verb):
	case strings.Contains("bxX", verb) && isBasic(t, types.Float64) && !isNamed(t) && m.Info.Types[x].Value == nil:
		if from := m.origin(x); from != 0 && from&ofProgram == 0 {
			m.convert(x, types.Typ[types.Int])
		}
	case strings.Contains("dco", verb) && isEmptyInterface(t):
		if _, json := m.isJSON(x); json {
			m.convert(x, types.Typ[types.Int])
		} else if m.origin(x)&(ofArguments|ofElsewhere) != 0 {
			m.integerOf(x, format)
		}
	case verb == "s" && areRunes(t) && !isNamed(t):
		m.fix("characters are a text as string(x)", m.replace(x, "string("+m.text(x)+")"))
	case strings.Contains("dco", verb) && isFloat(t), strings.Contains("fFeEgG", verb) && isWhole(t):
		m.name(x, clip(m.text(x))+" is a "+m.typeText(t)+", which "+format+
			" does not fit: %d is for integers, %g for float64")
	case verb == "s" && isKind(t, types.IsNumeric) && !isNamed(t):
		m.name(x, clip(m.text(x))+" is a number, and %s is for texts: write %v")
	}
}

// fitsAs converts a number of the other kind than the verb is for.
func (m *fixer) fitsAs(x ast.Expr, t types.Type, verb string) bool {
	switch {
	case isNamed(t):
		return false
	case verb == "s" && types.Identical(t, types.Typ[types.Int]) && m.Info.Types[x].Value == nil:
		return m.fix("%s is for texts", m.replace(x, "strconv.Itoa("+m.text(x)+")"))
	case strings.Contains("dco", verb) && isBasic(t, types.Float64):
		return m.convert(x, types.Typ[types.Int])
	case strings.Contains("fFeEgG", verb) && isWhole(t):
		return m.convert(x, types.Typ[types.Float64])
	}
	return false
}

// integer is what an operand of %d is where it may be a number of JSON, which fmt would print as %!d(float64=2).
const integer = `func integer(v any) any {
	f, ok := v.(float64)
	if !ok {
		return v
	}
	if n := int64(f); float64(n) == f {
		return n
	}
	panic("%d needs a whole number")
}`

// integerOf has a verb for integers print what is an integer, also where it is held as a float64.
func (m *fixer) integerOf(x ast.Expr, format string) {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && isName(c.Fun, "integer") {
		return
	}
	if edits, ok := m.given("integer", integer); ok {
		m.fix(m.text(x)+" may be a number of JSON, which is a float64, and "+format+" is for integers",
			append(edits, m.replace(x, "integer("+m.text(x)+")"))...)
	}
}

// isFailure reports whether a node creates an error. Whatever its message looks like, it must not fail in another way.
func (m *fixer) isFailure(n ast.Node) bool {
	c, ok := n.(*ast.CallExpr)
	return ok && (isError(m.Info.TypeOf(c)) || isName(c.Fun, "panic"))
}

// formats repairs or reports verbs in constant formats that do not match the types of their arguments, such as %d of a
// float64.
func (m *fixer) formats() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) < 2 || c.Ellipsis.IsValid() || m.callee(c) != "fmt.Sprintf" &&
			m.callee(c) != "fmt.Fprintf" || m.isFailure(m.parents[c]) {
			return true
		}
		args := c.Args
		if m.callee(c) == "fmt.Fprintf" {
			args = args[1:]
		}
		if strings.ContainsAny(constantText(args[0]), "*[") { // explicit or computed argument positions
			return true
		}
		at := 0
		for _, g := range Verbs().FindAllStringSubmatch(constantText(args[0]), -1) {
			if g[1] == "%" {
				continue
			}
			if at++; at >= len(args) {
				return true
			}
			m.fits(args[at], g[0], g[1])
		}
		return true
	})
}
