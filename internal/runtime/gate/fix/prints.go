package fix

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// printers matches calls of functions that print.
var printers = lazy.Regexp(`\b(?:fmt\.(?:Print|Println|Printf|Fprint\w*)|println|print)\(`)

// printedLast repairs a Run that ends by printing its value instead of returning it. Run must print once and return
// nothing but failures.
func (m *fixer) printedLast(body *ast.BlockStmt) bool {
	f, ok := m.parents[body].(*ast.FuncDecl)
	if !ok || f.Name.Name != "Run" || len(body.List) == 0 || len(printers().FindAllString(m.src, 2)) != 1 ||
		uses(m.file, "Context") || m.answers(body) {
		return false
	}
	last, ok := body.List[len(body.List)-1].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := last.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	value := m.printed(call)
	return value != "" && m.fix("the value is returned, not printed", m.replace(last, "return "+value+", nil"))
}

// printedValue repairs a Run that prints one value and then returns nil, nil, if it has no other result.
func (m *fixer) printedValue() {
	f := m.function("Run")
	if f == nil || m.terms.Null || len(f.Body.List) < 2 || len(printers().FindAllString(m.src, 2)) != 1 ||
		uses(m.file, "Context") {
		return
	}
	list := f.Body.List
	r, ok := list[len(list)-1].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 2 || !isName(r.Results[0], "nil") || !isName(r.Results[1], "nil") ||
		m.answers(&ast.BlockStmt{List: list[:len(list)-1]}) {
		return
	}
	st, ok := list[len(list)-2].(*ast.ExprStmt)
	if !ok {
		return
	}
	if call, ok := st.X.(*ast.CallExpr); ok {
		if value := m.printed(call); value != "" {
			m.fix("the value is returned, not printed", edit{m.offset(st.Pos()), m.offset(r.End()),
				"return " + value + ", nil"})
		}
	}
}

// printed returns the text of the value that a call prints, or "" if it prints fixed words or several values.
func (m *fixer) printed(call *ast.CallExpr) string {
	fun, args := m.text(call.Fun), call.Args
	if fun == "fmt.Printf" && len(args) > 1 {
		format := strings.TrimSuffix(constantText(args[0]), "\n")
		if between := Verbs().ReplaceAllString(format, ""); len(args) > 2 && format != "" &&
			!words().MatchString(between) {
			return "fmt.Sprintf(" + strconv.Quote(format) +
				m.src[m.offset(args[0].End()):m.offset(args[len(args)-1].End())] + ")"
		}
		if t := m.Info.TypeOf(args[1]); format != "%v" && (format != "%d" || !isWhole(t)) &&
			(format != "%s" || !isString(t)) {
			return ""
		}
		args = args[1:]
	} else if !slices.Contains([]string{"fmt.Println", "fmt.Print", "println", "print"}, fun) {
		return ""
	}
	if len(args) != 1 || m.Info.Types[args[0]].Value != nil || strings.ContainsAny(m.text(args[0]), "\"`") {
		return ""
	}
	return m.text(args[0])
}

// words matches a letter: a format with letters between its verbs makes a sentence, not a value.
var words = lazy.Regexp(`\pL`)

// answers reports whether a body returns anything other than failures.
func (m *fixer) answers(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		found = found || ok && (len(r.Results) != 2 || !isName(r.Results[0], "nil") || isName(r.Results[1], "nil"))
		_, lit := n.(*ast.FuncLit)
		return !found && !lit
	})
	return found
}
