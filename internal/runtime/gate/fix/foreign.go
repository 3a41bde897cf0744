package fix

import (
	"go/ast"
	"go/scanner"
	"go/types"
	"regexp"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// foreignLines lists lines of other languages and their Go form.
var foreignLines = []struct {
	form     func() *regexp.Regexp
	to, note string
}{
	{lazy.Regexp(`^([ \t]*)while\b(.*\{)[ \t\r]*$`), "${1}for$2", "while is for in Go"},
	{lazy.Regexp(`^([ \t]*)for[ \t]*\(([^;]*;[^;]*;[^;]*)\)[ \t]*\{[ \t\r]*$`), "${1}for $2 {",
		"for has no parentheses in Go"},
	{lazy.Regexp(`^([ \t]*)for[ \t]+([\pL_][\pL\d_]*)[ \t]+in[ \t]+range\(([\pL\d_.]+|len\([\pL\d_.]+\))\)[ \t]*:?[ \t]*\{[ \t\r]*$`), "${1}for $2 := range $3 {", "Go counts with := range"},
	{lazy.Regexp(`^([ \t]*)for[ \t]+([\pL_][\pL\d_]*)[ \t]*,[ \t]*([\pL_][\pL\d_]*)[ \t]+in[ \t]+enumerate\(([^{}]+)\)[ \t]*:?[ \t]*\{[ \t\r]*$`),
		"${1}for $2, $3 := range $4 {", "for has := range in Go"},
	{lazy.Regexp(`^([ \t]*)for[ \t]+\(?[ \t]*(?:const|let|var)?[ \t]*([\pL_][\pL\d_]*)[ \t]+of[ \t]+([\pL_][\pL\d_.]*(?:\([^(){}]*\)|\[[^\[\]{}]*\])?)[ \t]*\)?[ \t]*:?[ \t]*\{[ \t\r]*$`),
		"${1}for _, $2 := range $3.each() {", "for has := range in Go"},
	{lazy.Regexp(`^([ \t]*)for[ \t]+([\pL_][\pL\d_]*)[ \t]+in[ \t]+([\pL_][\pL\d_.]*(?:\([^(){}]*\)|\[[^\[\]{}]*\])?)[ \t]*:?[ \t]*\{[ \t\r]*$`),
		"${1}for _, $2 := range $3.each() {", "for has := range in Go"},
	{lazy.Regexp(`^([ \t]*(?:\}[ \t]*else[ \t]+)?if[ \t]+)([\pL_][\pL\d_.]*|"[^"]*"|'[^']')[ \t]+not[ \t]+in[ \t]+([\pL_][\pL\d_.]*)[ \t]*:?[ \t]*\{[ \t\r]*$`),
		"${1}!$3.has($2) {", "x not in y is a call in Go"},
	{lazy.Regexp(`^([ \t]*(?:\}[ \t]*else[ \t]+)?if[ \t]+)([\pL_][\pL\d_.]*|"[^"]*"|'[^']')[ \t]+in[ \t]+([\pL_][\pL\d_.]*)[ \t]*:?[ \t]*\{[ \t\r]*$`),
		"${1}$3.has($2) {", "x in y is a call in Go"},
	{lazy.Regexp(`^([ \t]*\}[ \t]*)(?:elif|elsif|elseif)\b(.*\{)[ \t\r]*$`), "${1}else if$2", "elif is else if in Go"},
	{lazy.Regexp(`^([ \t]*)(?:var|let|const)[ \t]+((?:[\pL_][\pL\d_]*,[ \t]*)*[\pL_][\pL\d_]*[ \t]*:=.*)$`), "$1$2",
		":= declares by itself"},
	{lazy.Regexp(`^([ \t]*)let[ \t]+([\pL_][\pL\d_]*)[ \t]*=([^=].*)$`), "$1$2 :=$3", "let is := in Go"},
}

// foreignLine rewrites a line of another language in Go.
func (m *fixer) foreignLine(e *scanner.Error) bool {
	line, begin := m.lineAt(e)
	for _, f := range foreignLines {
		if !f.form().MatchString(line) {
			continue
		}
		to := f.form().ReplaceAllString(line, f.to)
		// Whether a bound is counted anew in each turn, the line does not say.
		return !strings.Contains(to, "range range(") && m.fix(f.note, edit{begin, begin + len(line), to})
	}
	return m.otherwise(e) || m.conditional(e)
}

var (
	// These match words and quotes of other languages before or at the position of a syntax error.
	foreignAnd  = lazy.Regexp(`^(and|or)\b`)
	foreignNot  = lazy.Regexp(`\bnot[ \t]+$`)
	negated     = lazy.Regexp(`^[\pL_][\pL\d_.]*(?:\[[^\[\]\n]*\]|\([^()\n]*\))?[ \t]*(?:\{|and\b|or\b|&&|\|\||\))`)
	foreignText = lazy.Regexp(`^'([^'"\\\n]{2,})'`)
	objectText  = lazy.Regexp(`^\{\s*(?:"[^"\n]*"\s*:|\})`)
	literalOf   = lazy.Regexp(`(?:\breturn|[:=]?=)[ \t]*$`)
)

// foreignWord rewrites and, or, not, strings in single quotes, and objects without a type in Go.
func (m *fixer) foreignWord(e *scanner.Error) bool {
	at, rest := e.Pos.Offset, m.src[e.Pos.Offset:]
	if g := foreignAnd().FindString(rest); g != "" && strings.HasPrefix(e.Msg, "expected ") {
		return m.fix(g+" is "+map[string]string{"and": "&&", "or": "||"}[g]+" in Go",
			edit{at, at + len(g), map[string]string{"and": "&&", "or": "||"}[g]})
	}
	if g := foreignNot().FindStringIndex(m.src[:at]); g != nil && strings.HasPrefix(e.Msg, "expected ") &&
		negated().MatchString(rest) {
		return m.fix("not is ! in Go", edit{g[0], at, "!"})
	}
	if g := foreignText().FindStringSubmatch(rest); g != nil && strings.Contains(e.Msg, "rune literal") {
		return m.fix("a text stands in double quotes", edit{at, at + len(g[0]), `"` + g[1] + `"`})
	}
	if strings.HasPrefix(e.Msg, "expected operand, found '{'") && objectText().MatchString(rest) &&
		literalOf().MatchString(m.src[:at]) {
		return m.fix("an object has its type before it", edit{at, at, "map[string]any"})
	}
	return false
}

// textMethods maps methods of strings in other languages, in lower case and without underscores, to their number of
// arguments and the equivalent function.
var textMethods = map[string]struct {
	arguments int
	function  string
}{
	"upper": {0, "strings.ToUpper"}, "toupper": {0, "strings.ToUpper"}, "touppercase": {0, "strings.ToUpper"},
	"lower": {0, "strings.ToLower"}, "tolower": {0, "strings.ToLower"}, "tolowercase": {0, "strings.ToLower"},
	"trim": {0, "strings.TrimSpace"}, "strip": {0, "strings.TrimSpace"}, "trimspace": {0, "strings.TrimSpace"},
	"contains": {1, "strings.Contains"}, "includes": {1, "strings.Contains"}, "split": {1, "strings.Split"},
	"startswith": {1, "strings.HasPrefix"}, "hasprefix": {1, "strings.HasPrefix"}, "endswith": {1, "strings.HasSuffix"},
	"hassuffix":  {1, "strings.HasSuffix"},
	"replaceall": {2, "strings.ReplaceAll"}, "fields": {0, "strings.Fields"}, "index": {1, "strings.Index"},
	"indexof":    {1, "strings.Index"},
	"trimprefix": {1, "strings.TrimPrefix"}, "trimsuffix": {1, "strings.TrimSuffix"}, "repeat": {1, "strings.Repeat"},
}

// textMethod rewrites s.Split(",") and list.Join(",") with the functions of package strings.
func (m *fixer) textMethod(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	name, t := strings.ToLower(strings.ReplaceAll(s.Sel.Name, "_", "")), m.Info.TypeOf(s.X)
	args := ""
	for _, a := range call.Args {
		args += ", " + m.text(a)
	}
	function := ""
	switch {
	case isPlainString(t) && textMethods[name].function != "" && textMethods[name].arguments == len(call.Args):
		function = textMethods[name].function
	case name == "join" && len(call.Args) == 1 && types.Identical(t, types.NewSlice(types.Typ[types.String])) &&
		isString(m.Info.TypeOf(call.Args[0])):
		function = "strings.Join"
	case name == "split" && isPlainString(t) && len(call.Args) == 2 && isNumber(call.Args[1], "1"):
		// The number is Python's number of cuts: JavaScript's number of parts would leave one part, which needs no cut.
		function, args = "strings.SplitN", ", "+m.text(call.Args[0])+", 2"
	default:
		return false
	}
	return m.fix("texts have no methods in Go: "+function, m.replace(call, function+"("+m.text(s.X)+args+")"))
}

// popped rewrites x := list.pop() in Go.
func (m *fixer) popped(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	st := m.evaluates(call)
	if strings.ToLower(s.Sel.Name) != "pop" || len(call.Args) > 0 || m.variable(s.X) == nil || st == nil {
		return false
	}
	list := m.text(s.X)
	last := "len(" + list + ")-1"
	if st.Pos() == call.Pos() {
		return m.fix("a list has no pop", m.replace(st, list+" = "+list+"[:"+last+"]"))
	}
	as, ok := st.(*ast.AssignStmt)
	return ok && len(as.Lhs) == 1 && len(as.Rhs) == 1 && as.Rhs[0] == ast.Expr(call) && m.variable(as.Lhs[0]) != nil &&
		m.fix("a list has no pop", m.replace(call, list+"["+last+"]"), m.after(as, "\n"+list+" = "+list+"[:"+last+"]"))
}
