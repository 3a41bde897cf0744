package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// lastArguments lists the arguments that functions of strconv may lack at the end: a base, if there is none, and the
// number of bits.
var lastArguments = map[string][]string{"strconv.ParseInt": {"", "10", "64"}, "strconv.ParseUint": {"", "10", "64"},
	"strconv.ParseFloat": {"", "64"}, "strconv.FormatInt": {"", "10"}}

// isBase matches an argument that is the base of a number and not its number of bits.
var isBase = lazy.Regexp(`^(?:2|10|16|36|(?i)\w*(?:base|radix)\w*)$`)

// argumentCount repairs calls of functions that other languages call with more or fewer arguments, and of call.Arg and
// recurgent.Fail.
func (m *fixer) argumentCount(e types.Error, path []ast.Node, match []string) bool {
	fun, _, _ := strings.Cut(match[2], "\n")
	call, ok := nearest(path, func(c *ast.CallExpr) bool { return types.ExprString(c.Fun) == strings.TrimSpace(fun) })
	if !ok {
		return false
	}
	if m.fewerArguments(call) || m.roundedTo(call) || m.wholeDate(call) || m.sortedBy(call) || m.ofList(call) {
		return true
	}
	if s, isSel := call.Fun.(*ast.SelectorExpr); isSel {
		if owner, name := m.hostMember(s); owner == "Call" && name == "Arg" {
			return m.getter(call, s)
		}
		if missing := lastArguments[m.text(s)]; len(missing) > len(call.Args) && len(call.Args) > 0 &&
			match[1] == "not enough" && (len(call.Args) == 1 || isBase().MatchString(m.text(call.Args[1]))) {
			return m.fix(m.text(s)+" takes "+strings.Join(missing[len(call.Args):], ", "),
				m.after(call.Args[len(call.Args)-1], ", "+strings.Join(missing[len(call.Args):], ", ")))
		}
		if m.importedHost(s.X) && s.Sel.Name == "Fail" {
			text := m.failure(call.Args)
			return text != "" && text != m.text(call) && m.useHost("a failure has a type and a message",
				m.replace(call, text))
		}
	}
	return false
}

// returnCount repairs a return statement with one value too few or too many: the nil error is missing, an error stands
// alone, or there is a nil for an error that the function does not have.
func (m *fixer) returnCount(_ types.Error, path []ast.Node, match []string) bool {
	r, ok := nearest[*ast.ReturnStmt](path, nil)
	if !ok {
		return false
	}
	t, _ := m.resultsOf(r)
	results := fieldsOf(t.Results)
	have, want := len(r.Results), len(results)
	switch {
	case match[1] == "not enough" && have == 1 && want == 2 && isName(results[1].typ, "error"):
		if isError(m.Info.TypeOf(r.Results[0])) {
			zero := m.zero(results[0].typ)
			return zero != "" && m.fix("an error is the last result", m.before(r.Results[0], zero+", "))
		}
		if isName(r.Results[0], "nil") && m.zero(results[0].typ) == "nil" && m.answersElsewhere(r) {
			return m.fix("without an error the last result is nil", m.after(r.Results[0], ", nil"))
		}
		if t := m.Info.TypeOf(r.Results[0]); isName(r.Results[0], "nil") || t == nil || !isEmptyInterface(t) &&
			m.isErrorOfOwn(t) {
			return false // it may be an error or a value
		}
		return m.fix("without an error the last result is nil", m.after(r.Results[0], ", nil"))
	case match[1] == "too many" && have == want+1 && want > 0 && isName(r.Results[have-1], "nil"):
		return m.fix("the function returns no error", edit{m.offset(r.Results[have-2].End()),
			m.offset(r.Results[have-1].End()), ""})
	}
	return false
}

// answersElsewhere reports whether the function returns a value in another place.
func (m *fixer) answersElsewhere(r *ast.ReturnStmt) bool {
	f, ok := m.enclosing(r).(*ast.FuncDecl)
	if !ok || m.inLiteral(r) {
		return false
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		o, ok := n.(*ast.ReturnStmt)
		if ok && len(o.Results) > 0 && !isName(o.Results[0], "nil") {
			t := m.Info.TypeOf(o.Results[0])
			found = found || t != nil && !isError(t) && !m.isErrorOfOwn(t)
		}
		_, lit := n.(*ast.FuncLit)
		return !found && !lit
	})
	return found
}

// isErrorOfOwn reports whether a type or a pointer to it implements error.
func (m *fixer) isErrorOfOwn(t types.Type) bool {
	e := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(t, e) || types.Implements(types.NewPointer(t), e)
}

// missingReturn repairs a function Run that prints its value instead of returning it.
func (m *fixer) missingReturn(_ types.Error, path []ast.Node, _ []string) bool {
	for _, n := range path {
		if f, ok := n.(*ast.FuncDecl); ok {
			return m.printedLast(f.Body)
		}
	}
	return false
}

// nilResult repairs return nil, err where the type of the first result has no nil.
func (m *fixer) nilResult(e types.Error, path []ast.Node, _ []string) bool {
	r, ok := nearest[*ast.ReturnStmt](path, nil)
	if !ok || len(r.Results) < 2 || isName(r.Results[len(r.Results)-1], "nil") ||
		!isError(m.Info.TypeOf(r.Results[len(r.Results)-1])) {
		return false
	}
	t, _ := m.resultsOf(r)
	results := fieldsOf(t.Results)
	for i, x := range r.Results {
		if x.Pos() == e.Pos && i < len(results) {
			zero := m.zero(results[i].typ)
			return zero != "" && m.fix("beside an error: "+zero, m.replace(x, zero))
		}
	}
	return false
}

// hiddenResult repairs if err := f(); err != nil { return } in a function with a named result err: the inner error is
// returned.
func (m *fixer) hiddenResult(_ types.Error, path []ast.Node, match []string) bool {
	r, ok := nearest[*ast.ReturnStmt](path, nil)
	if !ok {
		return false
	}
	failed, ok := m.parents[m.parents[r]].(*ast.IfStmt)
	if !ok || failed.Body != m.parents[r] {
		return false
	}
	cond, ok := failed.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || !isName(cond.X, match[1]) || !isName(cond.Y, "nil") ||
		!isError(m.Info.TypeOf(cond.X)) {
		return false // either of the two may be meant
	}
	t, _ := m.resultsOf(r)
	text := "return"
	for i, f := range fieldsOf(t.Results) {
		_, found := m.Pkg.Scope().Innermost(r.Pos()).LookupParent(f.name, r.Pos())
		if f.name == "" || f.name == "_" || f.name != match[1] && found != m.Info.Defs[f.id] {
			return false
		}
		if i > 0 {
			text += ","
		}
		text += " " + f.name
	}
	return m.fix("the return names its values", m.replace(r, text))
}
