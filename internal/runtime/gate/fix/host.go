package fix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// callMember repairs a method or field that Call does not have.
func (m *fixer) callMember(s *ast.SelectorExpr) bool {
	lower := strings.ToLower(s.Sel.Name)
	call, _ := m.parents[s].(*ast.CallExpr)
	if call != nil && call.Fun != s {
		call = nil
	}
	ix, indexed := m.parents[s].(*ast.IndexExpr)
	switch {
	case call == nil && indexed && ix.X == s && slices.Contains(inputs, s.Sel.Name) && !m.commaOK(ix):
		arg := m.argument(m.text(s.X), constantText(ix.Index))
		return arg != "" && m.fix("arguments are read by call.Arg", m.replace(ix, arg))
	case call == nil && indexed && ix.X == s && slices.Contains(memories, lower) && m.oneMemory(s):
		return m.fix("the memory is the context", m.replace(s.Sel, "Context"))
	case call == nil:
		return false
	case lower == "setcontext", lower == "getcontext":
		return m.wholeContext(call, s) || m.contextMethod(s)
	case slices.Contains([]string{"fail", "error", "errorf", "failf"}, lower):
		return m.hostError(call, s)
	case printing[lower] != "":
		return m.logged(call, s)
	case slices.Contains([]string{"savecontext", "save", "commit", "persist"}, lower):
		return m.saved(call, s)
	case isFetcher(s.Sel.Name) && lower != "get":
		return m.fetched(call, s)
	case slices.Contains(downloaders, lower):
		return m.downloaded(call, s)
	case slices.Contains([]string{"return", "respond", "result", "output", "answer"}, lower):
		return m.returnOfCall(call)
	}
	return m.getter(call, s)
}

// memories are names, in lower case, of invented fields that hold the session's memory.
var memories = []string{"state", "memory", "session", "storage", "ctx", "contexts", "contextmap"}

// wholeContext takes call.GetContext() for the memory, and call.SetContext(m) for setting it.
func (m *fixer) wholeContext(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	const note = "the context is a map"
	memory := m.text(s.X) + ".Context"
	_, stands := m.parents[call].(*ast.ExprStmt)
	switch {
	case len(call.Args) == 0 && !stands && !m.commaOK(call) && strings.EqualFold(s.Sel.Name, "getcontext"):
		return m.fix(note, m.replace(call, memory))
	case len(call.Args) == 1 && stands && strings.EqualFold(s.Sel.Name, "setcontext") &&
		types.Identical(m.Info.TypeOf(call.Args[0]), anyObject):
		return m.fix(note, m.replace(call, memory+" = "+m.text(call.Args[0])))
	}
	return false
}

// calledContext repairs call.Context() and call.Context("k").
func (m *fixer) calledContext(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return m.isContext(c.Fun) })
	if !ok || c.Ellipsis.IsValid() {
		return false
	}
	switch {
	case len(c.Args) == 0:
		return m.fix("the context is a map", m.replace(c, m.text(c.Fun)))
	case len(c.Args) == 1 && (constantText(c.Args[0]) != "" || isString(m.Info.TypeOf(c.Args[0]))):
		return m.fix("the context is a map", m.replace(c, m.text(c.Fun)+"["+m.text(c.Args[0])+"]"))
	}
	return false
}

// oneMemory reports whether the program uses no other name for its session's memory.
func (m *fixer) oneMemory(of *ast.SelectorExpr) bool {
	one := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !one {
			return one
		}
		owner, name := m.hostMember(s)
		one = owner != "Call" || name == of.Sel.Name || name != "Context" &&
			!slices.Contains(memories, strings.ToLower(name))
		return one
	})
	return one
}

// saved removes call.SaveContext(): the memory of a successful call is stored anyway.
func (m *fixer) saved(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	st, ok := m.parents[call].(*ast.ExprStmt)
	if !ok || len(call.Args) > 1 || len(call.Args) == 1 && m.text(call.Args[0]) != m.text(s.X)+".Context" {
		return false
	}
	return m.fix("the context is kept without "+m.text(s), m.line(st))
}

// printing maps invented logging functions of the call and the host package to the fmt functions that print the same.
var printing = map[string]string{"log": "fmt.Println", "logf": "fmt.Printf", "print": "fmt.Print",
	"println": "fmt.Println", "printf": "fmt.Printf", "debug": "fmt.Println", "debugf": "fmt.Printf",
	"info": "fmt.Println", "infof": "fmt.Printf"}

// logged rewrites a statement that logs as one that prints.
func (m *fixer) logged(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	_, stands := m.parents[call].(*ast.ExprStmt)
	return stands && m.fix("there is no "+m.text(s), m.replace(s, printing[strings.ToLower(s.Sel.Name)]))
}

// returnOfCall rewrites call.Return(value, err) at an end of Run as the return statement that is meant.
func (m *fixer) returnOfCall(call *ast.CallExpr) bool {
	st, ok := m.parents[call].(*ast.ExprStmt)
	if _, run := m.resultsOf(call); !ok || !run || len(call.Args) == 0 || len(call.Args) > 2 {
		return false
	}
	text, to := "return "+m.text(call.Args[0]), ast.Node(st)
	switch {
	case len(call.Args) == 2 && !isError(m.Info.TypeOf(call.Args[1])) && !isName(call.Args[1], "nil"):
		return false
	case len(call.Args) == 2:
		text += ", " + m.text(call.Args[1])
	case isError(m.Info.TypeOf(call.Args[0])):
		text = "return nil, " + m.text(call.Args[0])
	default:
		text += ", nil"
	}
	list := m.siblings(st)
	if i := slices.Index(list, ast.Stmt(st)) + 1; i < len(list) {
		r, ok := list[i].(*ast.ReturnStmt)
		if !ok || slices.ContainsFunc(r.Results, func(x ast.Expr) bool { return !isName(x, "nil") }) {
			return false
		}
		to = r
	} else if f, ok := m.parents[m.parents[st]].(*ast.FuncDecl); !ok || len(list) == 0 ||
		f.Body.List[len(f.Body.List)-1] != ast.Stmt(st) {
		return false // what follows would also run
	}
	return m.fix("a value is returned, not given to the call", edit{m.offset(st.Pos()), m.offset(to.End()), text})
}

// typeWord matches the form of an error type.
var typeWord = lazy.Regexp(`^[a-z]+(_[a-z]+)*$`)

// hostError repairs call.Fail(...), recurgent.Error(...) and similar calls.
func (m *fixer) hostError(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	text := m.failure(call.Args)
	if text == "" {
		return false
	}
	if st, ok := m.parents[call].(*ast.ExprStmt); ok {
		text = m.failing(call, text)
		return text != "" && m.useHost("a failure is returned: "+clip(text), m.replace(st, text))
	}
	return m.useHost(m.text(s)+" is "+clip(text), m.replace(call, text))
}

// failure returns the error for the arguments of an invented function that creates one: type and message, or only a
// message. It returns "" if they are anything else.
func (m *fixer) failure(args []ast.Expr) string {
	if len(args) == 0 {
		return ""
	}
	first := m.Info.Types[args[0]]
	list := m.src[m.offset(args[0].Pos()):m.offset(args[len(args)-1].End())]
	isType := first.Value != nil && typeWord().MatchString(constantText(args[0]))
	switch {
	case len(args) == 1 && isError(first.Type):
		return list
	case !isString(first.Type):
		return ""
	case len(args) == 1 && isType:
		return fmt.Sprintf("recurgent.Fail(%s, %q)", list, strings.ReplaceAll(constantText(args[0]), "_", " "))
	case len(args) == 1:
		return "errors.New(" + list + ")"
	case !isType && first.Value != nil:
		return "fmt.Errorf(" + list + ")"
	case len(args) > 2:
		return "recurgent.Fail(" + m.text(args[0]) + ", fmt.Sprintf(" +
			m.src[m.offset(args[1].Pos()):m.offset(args[len(args)-1].End())] + "))"
	case isError(m.Info.TypeOf(args[1])):
		return "recurgent.Fail(" + list + ".Error())"
	case isString(m.Info.TypeOf(args[1])):
		return "recurgent.Fail(" + list + ")"
	}
	return ""
}

// typedErrors maps names of invented functions to the error types that they suggest.
var typedErrors = map[string]string{"invalidinput": "invalid_input", "notfound": "not_found",
	"parsefailed": "parse_failed", "unsupported": "unsupported_capability", "lowutility": "low_utility"}

// hostFunction repairs a function that the host package does not have.
func (m *fixer) hostFunction(s *ast.SelectorExpr) bool {
	call, ok := m.parents[s].(*ast.CallExpr)
	if method, isMethod := m.parents[s].(*ast.SelectorExpr); isMethod && strings.EqualFold(s.Sel.Name, "http") &&
		method.Sel.Name == "Get" {
		if call, ok := m.parents[method].(*ast.CallExpr); ok && call.Fun == method {
			return m.fetched(call, method)
		}
	}
	if !ok || call.Fun != s {
		return m.typedError(s)
	}
	name := strings.ToLower(strings.TrimPrefix(s.Sel.Name, "New"))
	name = strings.TrimSuffix(name, "error")
	switch {
	case slices.Contains([]string{"", "err", "errorf", "failf", "failure", "failwith", "fatal", "errf", "fatalf",
		"fail", "errorwithtype", "typed"}, name):
		return m.hostError(call, s)
	case typedErrors[name] != "" && len(call.Args) == 1 && isString(m.Info.TypeOf(call.Args[0])):
		return m.useHost(m.text(s)+" is recurgent.Fail", m.replace(call,
			fmt.Sprintf("recurgent.Fail(%q, %s)", typedErrors[name], m.text(call.Args[0]))))
	case len(call.Args) == 1 && isEmptyInterface(m.Info.TypeOf(call.Args[0])) && toType(s.Sel.Name) != "":
		return m.typedGetter(call, m.text(call.Args[0]), toType(s.Sel.Name), nil)
	case printing[name] != "":
		return m.logged(call, s)
	case isFetcher(s.Sel.Name):
		return m.fetched(call, s)
	case slices.Contains(downloaders, strings.ToLower(s.Sel.Name)):
		return m.downloaded(call, s)
	case slices.Contains([]string{"success", "ok", "result", "return", "value"}, name) && len(call.Args) == 1:
		if r, ok := m.parents[call].(*ast.ReturnStmt); ok && r.Results[0] == call && len(r.Results) < 3 {
			return m.fix("the value is returned as it is", m.replace(call, m.text(call.Args[0])))
		}
	}
	return false
}

// typedError repairs recurgent.ErrNotFound and recurgent.NotFoundError{Message: ...}.
func (m *fixer) typedError(s *ast.SelectorExpr) bool {
	kind := typedErrors[strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(s.Sel.Name, "Err"), "Error"))]
	message := strconv.Quote(strings.ReplaceAll(kind, "_", " "))
	whole := ast.Node(s)
	if lit, ok := m.parents[s].(*ast.CompositeLit); ok && lit.Type == ast.Expr(s) {
		if len(lit.Elts) != 1 {
			return false
		}
		x := lit.Elts[0]
		if kv, keyed := x.(*ast.KeyValueExpr); keyed {
			x = kv.Value
		}
		message, whole = m.text(x), lit
	}
	if u, ok := m.parents[whole].(*ast.UnaryExpr); ok && u.Op == token.AND {
		whole = u
	}
	_, returned := m.parents[whole].(*ast.ReturnStmt)
	return kind != "" && returned && m.useHost(m.text(s)+" is recurgent.Fail", m.replace(whole,
		fmt.Sprintf("recurgent.Fail(%q, %s)", kind, message)))
}

// toType returns the type that an invented function such as ToInt or AsString would convert to, or "".
func toType(name string) string {
	lower := strings.ToLower(name)
	for _, before := range []string{"to", "as", "get", "must"} {
		lower = strings.TrimPrefix(lower, before)
	}
	return getterTypes[lower]
}

// isContext reports whether an expression is the session's memory or a variable that holds it.
func (m *fixer) isContext(x ast.Expr) bool {
	if s, ok := ast.Unparen(x).(*ast.SelectorExpr); ok {
		owner, name := m.hostMember(s)
		return owner+"."+name == "Call.Context"
	}
	_, value := m.definition(m.variable(x))
	if s, ok := value.(*ast.SelectorExpr); ok {
		return m.isContext(s)
	}
	return false
}

// namedKind returns the type in a getter's name, such as GetFloat, or nil.
func (m *fixer) namedKind(name string) types.Type {
	typ, _ := getterType(name)
	basics := map[string]types.Type{"string": types.Typ[types.String], "int": types.Typ[types.Int],
		"int64": types.Typ[types.Int64], "float64": types.Typ[types.Float64], "bool": types.Typ[types.Bool]}
	switch typ {
	case "[]any":
		return anyList
	case "map[string]any":
		return anyObject
	case "[]string", "[]int", "[]float64":
		return types.NewSlice(basics[typ[2:]])
	}
	return basics[typ]
}

// contextMethod rewrites call.Context.Get(k), Set(k, v) and similar methods as operations on the map.
func (m *fixer) contextMethod(s *ast.SelectorExpr) bool {
	call, ok := m.parents[s].(*ast.CallExpr)
	if !ok || call.Fun != s || len(call.Args) == 0 {
		return false
	}
	x, key := m.text(s.X), m.text(call.Args[0])
	if owner, _ := m.hostMember(s); owner == "Call" {
		x += ".Context"
	}
	_, stands := m.parents[call].(*ast.ExprStmt)
	text, preset := "", types.Type(nil)
	if len(call.Args) == 2 {
		preset = types.Default(m.Info.TypeOf(call.Args[1]))
	}
	switch name := strings.TrimSuffix(strings.ToLower(s.Sel.Name), "context"); {
	case name == "get" && len(call.Args) == 1:
		text = x + "[" + key + "]"
	case slices.Contains([]string{"set", "put"}, name) && len(call.Args) == 2 && stands:
		text = x + "[" + key + "] = " + m.text(call.Args[1])
	case preset == nil && len(call.Args) == 1 && m.like(m.namedKind(s.Sel.Name)) != "":
		t := m.namedKind(s.Sel.Name)
		return !m.commaOK(call) && m.useHost("the context is a map", m.replace(call,
			"recurgent.Or("+x+"["+key+"], "+m.like(t)+").("+m.typeText(t)+")"))
	case preset != nil && m.namedKind(s.Sel.Name) != nil:
		return m.typedGetter(call, x+"["+key+"]", m.typeText(m.namedKind(s.Sel.Name)), call.Args[1:])
	case slices.Contains([]string{"get", "getor", "getdefault"}, name) && preset != nil && decodedAs(preset) != "":
		text = "recurgent.Or(" + x + "[" + key + "], " + m.text(call.Args[1]) + ")"
		if a, ok := m.parents[call].(*ast.TypeAssertExpr); !ok || a.X != call {
			text += ".(" + m.typeText(preset) + ")"
		}
		return !m.commaOK(call) && m.useHost("the context is a map", m.replace(call, text))
	}
	return text != "" && m.fix("the context is a map: "+clip(text), m.replace(call, text))
}
