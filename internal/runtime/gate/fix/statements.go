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
	if m.fewerArguments(call) || m.roundedTo(call) || m.wholeDate(call) || m.sortedBy(call) || m.ofList(call) ||
		m.sortedWithout(call) {
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
		if m.text(s) == "strconv.FormatFloat" {
			return m.formatted(call)
		}
		if m.importedHost(s.X) && s.Sel.Name == "Fail" {
			text := m.failure(call.Args)
			return text != "" && text != m.text(call) && m.useHost("a failure has a type and a message",
				m.replace(call, text))
		}
	}
	return false
}

// formatted gives strconv.FormatFloat the arguments that are left out: the number of bits, or all of them.
func (m *fixer) formatted(call *ast.CallExpr) bool {
	rest := ""
	switch {
	case len(call.Args) == 1:
		rest = ", 'f', -1, 64"
	case len(call.Args) == 3 && isChar(call.Args[1]):
		rest = ", 64"
	}
	return rest != "" && m.fix("strconv.FormatFloat takes"+strings.TrimPrefix(rest, ","),
		m.after(call.Args[len(call.Args)-1], rest))
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
		return m.oneOfTwo(r, results)
	case match[1] == "too many" && want == 0 && have == 1:
		return m.resultOf(t)
	case match[1] == "too many" && have == 2 && want == 1 && isName(results[0].typ, "error") && m.besideError(r):
		return m.fix("the function returns an error alone", edit{m.offset(r.Results[0].Pos()),
			m.offset(r.Results[1].Pos()), ""})
	case match[1] == "too many" && have == want+1 && want > 0 && isName(r.Results[have-1], "nil"):
		return m.fix("the function returns no error", edit{m.offset(r.Results[have-2].End()),
			m.offset(r.Results[have-1].End()), ""})
	}
	return false
}

// besideError reports whether a statement returns nil or a constant beside an error.
func (m *fixer) besideError(r *ast.ReturnStmt) bool {
	return (isName(r.Results[0], "nil") || m.Info.Types[r.Results[0]].Value != nil) &&
		isError(m.Info.TypeOf(r.Results[1]))
}

// oneOfTwo adds what a return statement of a value and an error leaves out.
func (m *fixer) oneOfTwo(r *ast.ReturnStmt, results []field) bool {
	t := m.Info.TypeOf(r.Results[0])
	switch {
	case isError(t):
		zero := m.zero(results[0].typ)
		return zero != "" && m.fix("an error is the last result", m.before(r.Results[0], zero+", "))
	case isName(r.Results[0], "nil") && !(m.zero(results[0].typ) == "nil" && m.answersElsewhere(r)):
		return false // it may be an error or a value
	case isName(r.Results[0], "nil"):
	case t == nil || !isEmptyInterface(t) && m.isErrorOfOwn(t):
		return false
	}
	return m.fix("without an error the last result is nil", m.after(r.Results[0], ", nil"))
}

// resultOf declares the result of a function that returns values of one type without declaring one.
func (m *fixer) resultOf(t *ast.FuncType) bool {
	var body *ast.BlockStmt
	switch f := m.parents[t].(type) {
	case *ast.FuncLit:
		body = f.Body
	case *ast.FuncDecl:
		body = f.Body
	}
	if body == nil || t.Results != nil {
		return false
	}
	of := m.returnedType(body)
	if of == nil {
		return false
	}
	at := m.offset(t.Params.End())
	return m.fix("the function returns a "+m.typeText(of), edit{at, at, " " + m.typeText(of)})
}

// returnedType returns the type of all values that a function returns, or nil if there is no one type.
func (m *fixer) returnedType(body *ast.BlockStmt) (of types.Type) {
	one := true
	var constants []types.Type
	ast.Inspect(body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok {
			_, literal := n.(*ast.FuncLit)
			return !literal
		}
		if len(r.Results) != 1 || m.Info.TypeOf(r.Results[0]) == nil {
			one = false
			return false
		}
		x := types.Default(m.Info.TypeOf(r.Results[0]))
		if m.Info.Types[r.Results[0]].Value != nil {
			constants = append(constants, x)
			return false
		}
		one = one && (of == nil || types.Identical(of, x))
		of = x
		return false
	})
	for _, x := range constants {
		if of == nil {
			of = x
		}
		one = one && (types.Identical(of, x) || isWhole(x) && isBasic(of, types.Float64))
	}
	_, tuple := of.(*types.Tuple)
	if b := basic(of); !one || tuple || b != nil && (b.Kind() == types.Invalid || b.Kind() == types.UntypedNil) {
		return nil
	}
	return of
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
	if !ok || len(r.Results) < 2 {
		return false
	}
	if last := r.Results[len(r.Results)-1]; !isName(last, "false") && (isName(last, "nil") ||
		!isError(m.Info.TypeOf(last))) {
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
