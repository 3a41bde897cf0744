package fix

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A rule repairs type errors whose message matches. path leads from the innermost node at the error's position to the
// file.
type rule struct {
	message func() *regexp.Regexp
	fix     func(m *fixer, e types.Error, path []ast.Node, match []string) bool
}

// rules lists the rules in the order in which they are tried.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		{lazy.Regexp(`context\.Context`), (*fixer).contextPassed},
		{lazy.Regexp(`time\.Location|regexp\.Regexp`), (*fixer).byAddress},
		{lazy.Regexp(`has pointer receiver\)$`), (*fixer).pointerReceiver},
		{lazy.Regexp(`does not implement heap\.Interface`), (*fixer).ofHeap},
		{lazy.Regexp(`^undefined array length \w+ or missing type constraint`), (*fixer).parameterOfArray},
		{lazy.Regexp(`^cannot use generic type .* without instantiation`), (*fixer).uninstantiated},
		{lazy.Regexp(`type parameter \w+ cannot use operator|incomparable types in type set|missing comparable constraint|of type \w+ constrained by`), (*fixer).uncomparable},
		{lazy.Regexp(`must not be negative$`), (*fixer).fromTheEnd},
		{lazy.Regexp(`is not constant$`), (*fixer).notConstant},
		{lazy.Regexp(`^cannot call .*\.Context `), (*fixer).calledContext},
		{lazy.Regexp(`^undefined: (\w+)$`), (*fixer).undefinedName},
		{lazy.Regexp(`^undefined: (\w+)\.(\w+)(?: \(but have \w+\))?$`), (*fixer).undefinedOfPackage},
		{lazy.Regexp(`^cannot call \w+ \((?:variable|constant)`), (*fixer).hidesFunction},
		{lazy.Regexp(`^make\(.* expects 2 or 3 arguments; found 1`), (*fixer).madeEmpty},
		{lazy.Regexp(`\(type\) is not an expression`), (*fixer).emptyOfType},
		{lazy.Regexp(`^assignment mismatch: \d+ variables but 1 value`), (*fixer).repeatedValue},
		{lazy.Regexp(`^cannot indirect `), (*fixer).power},
		{lazy.Regexp(`^invalid append: argument must be a slice`), (*fixer).appendedTo},
		{lazy.Regexp(`^missing key in map literal`), (*fixer).setOf},
		{lazy.Regexp(`^invalid composite literal element type|^invalid composite literal type any|missing type in composite literal`), (*fixer).elidedType},
		{lazy.Regexp(`does not satisfy ~\[\]`), (*fixer).swappedList},
		{lazy.Regexp(`does not satisfy ~\[\]`), (*fixer).containing},
		{lazy.Regexp(`, cannot infer \w+`), (*fixer).uninferred},
		{lazy.Regexp(`permits only one iteration variable`), (*fixer).oneVariable},
		{lazy.Regexp(`^use of untyped nil in assignment`), (*fixer).untypedNil},
		{lazy.Regexp(`cannot use \.\.\. in call to non-variadic|invalid use of \.\.\. with built-in`), (*fixer).spread},
		{lazy.Regexp(`for built-in len$`), (*fixer).builtinLength},
		{lazy.Regexp(`^cannot slice `), (*fixer).sliced},
		{lazy.Regexp(`cannot be ordered`), (*fixer).maxOfList},
		{lazy.Regexp(`undefined \(type (.+?) has no (?:field or )?method (\w+)`), (*fixer).undefinedMember},
		{lazy.Regexp(`^(not enough|too many) arguments in call to (.+)`), (*fixer).argumentCount},
		{lazy.Regexp(`^(not enough|too many) return values`), (*fixer).returnCount},
		{lazy.Regexp(`^missing return`), (*fixer).missingReturn},
		{lazy.Regexp(`^result parameter (\w+) not in scope at return`), (*fixer).hiddenResult},
		{lazy.Regexp(`^multiple-value `), (*fixer).singleValue},
		{lazy.Regexp(`\(non-numeric type `), (*fixer).stepped},
		{lazy.Regexp(`^in call to .* does not match (?:inferred )?type `), (*fixer).inferred},
		{lazy.Regexp(`^cannot assign to .*neither addressable`), (*fixer).setInText},
		{lazy.Regexp(`^cannot assign to struct field .* in map`), (*fixer).fieldInMap},
		{lazy.Regexp(`\(no value\) used as value`), (*fixer).sorted},
		{lazy.Regexp(`^append\((?s:.*) is not used$`), (*fixer).appended},
		{lazy.Regexp(`^assignment mismatch: (\d+) variables? but .*returns? (\d+) values?`), (*fixer).assignCount},
		{lazy.Regexp(`^no new variables on left side of :=`), (*fixer).noNewVariables},
		{lazy.Regexp(`truncated`), (*fixer).truncatedConstant},
		{lazy.Regexp(`mismatched types`), (*fixer).mismatched},
		{lazy.Regexp(`^(?:invalid array length|array length .* must be constant)`), (*fixer).madeArray},
		{lazy.Regexp(`^non-boolean condition in if`), (*fixer).condition},
		{lazy.Regexp(`operator (\S+) not defined on`), (*fixer).undefinedOperator},
		{lazy.Regexp(`^cannot use nil as (.+) value in return statement`), (*fixer).nilResult},
		{lazy.Regexp(`^cannot use (?s:.+) as (?s:.+) value in`), (*fixer).cannotUse},
		{lazy.Regexp(`^cannot convert`), (*fixer).cannotConvert},
		{lazy.Regexp(`^cannot range over`), (*fixer).cannotRange},
		{lazy.Regexp(`cannot index`), (*fixer).cannotIndex},
		{lazy.Regexp(`^invalid argument: .* must be integer`), (*fixer).mustBeInteger},
	}
})

// at returns the nodes around the position of an error, innermost first, and its message.
func (m *fixer) at(e types.Error) ([]ast.Node, string) {
	if !e.Pos.IsValid() || m.offset(e.Pos) > len(m.src) {
		return nil, ""
	}
	path, _ := astutil.PathEnclosingInterval(m.file, e.Pos, e.Pos)
	return path, strings.TrimPrefix(strings.TrimSpace(e.Msg), "invalid operation: ")
}

// typeError repairs an error by the first rule that can.
func (m *fixer) typeError(e types.Error) {
	path, message := m.at(e)
	if len(path) == 0 {
		return
	}
	if main, run := m.function("main"), m.function("Run"); main != nil && run != nil && main.Pos() <= e.Pos &&
		e.Pos <= main.End() {
		if name, unknown := strings.CutPrefix(message, "undefined: "); !unknown || !strings.Contains(name, ".") ||
			!m.takesValue(main) {
			m.fix("main, which nothing calls, is left out", m.without(main))
		}
		return
	}
	// This rule needs no certain message: an index taken for an element leads to many different errors.
	if m.ranged(e, path) {
		return
	}
	for _, r := range rules() {
		if match := r.message().FindStringSubmatch(message); match != nil && r.fix(m, e, path, match) {
			return
		}
	}
}

// nearest returns the innermost node of type N in the path for which good holds. It does not look beyond the function
// declaration. A nil good accepts any node.
func nearest[N ast.Node](path []ast.Node, good func(N) bool) (N, bool) {
	for _, n := range path {
		if x, ok := n.(N); ok && (good == nil || good(x)) {
			return x, true
		}
		if _, isFunc := n.(*ast.FuncDecl); isFunc {
			break
		}
	}
	var none N
	return none, false
}

// resultsOf returns the type of the innermost function around a node, and whether that function is Run itself.
func (m *fixer) resultsOf(n ast.Node) (t *ast.FuncType, run bool) {
	for p := n; p != nil; p = m.parents[p] {
		switch p := p.(type) {
		case *ast.FuncLit:
			return p.Type, false
		case *ast.FuncDecl:
			return p.Type, p.Name.Name == "Run" && p.Recv == nil
		}
	}
	return nil, false
}

// failing returns the text of the return statement that passes on an error, or "" if the function returns no error.
func (m *fixer) failing(n ast.Node, err string) string {
	t, _ := m.resultsOf(n)
	if t == nil {
		return ""
	}
	results := fieldsOf(t.Results)
	if len(results) == 0 || !isName(results[len(results)-1].typ, "error") {
		return ""
	}
	var values []string
	for _, r := range results[:len(results)-1] {
		z := m.zero(r.typ)
		if z == "" {
			return ""
		}
		values = append(values, z)
	}
	return "return " + strings.Join(append(values, err), ", ")
}

// zero returns the text of the zero value of a type, or "" if it is not known.
func (m *fixer) zero(e ast.Expr) string {
	t := m.Info.TypeOf(e)
	if t == nil {
		return ""
	}
	if _, generic := types.Unalias(t).(*types.TypeParam); generic {
		return "*new(" + m.text(e) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsNumeric != 0:
			return "0"
		case u.Info()&types.IsString != 0:
			return `""`
		case u.Info()&types.IsBoolean != 0:
			return "false"
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Interface, *types.Signature, *types.Chan:
		return "nil"
	case *types.Struct, *types.Array:
		return m.text(e) + "{}"
	}
	return ""
}
