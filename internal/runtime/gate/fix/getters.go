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
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// isNameText matches a possible name of an argument, as opposed to a file, a URL or a phrase.
var isNameText = lazy.Regexp(`^[\pL_][\pL\d_]*$`)

// ofArgument matches methods whose name shows that they read an argument. An untyped method such as Get may read the
// session's memory.
var ofArgument = lazy.Regexp(`(?i)arg|param|input`)

// inputs are names of invented fields that hold the arguments.
var inputs = []string{"Input", "Inputs", "Params", "Parameters", "Arguments"}

// getterName matches the name of an invented method that reads an argument. The group is the word for the type.
var getterName = lazy.Regexp(`^(?i)(?:must)?(?:get|read)?(?:arg|argument|param|parameter|input|kwarg|value)?(?:as)?` +
	`(string|str|text|integer|int64|int|float64|float|number|boolean|bool|stringslice|stringlist|strings|intslice|intlist|ints|floatslice|floatlist|floats|list|array|slice|object|map|dict)?` +
	`(?:arg|argument|param)?(?:or|default|ordefault)?$`)

// getterTypes maps words for types to Go types.
var getterTypes = map[string]string{"": "", "string": "string", "str": "string", "text": "string", "int": "int",
	"integer": "int", "int64": "int64", "float": "float64", "float64": "float64",
	"number": "float64", "bool": "bool", "boolean": "bool", "strings": "[]string", "stringslice": "[]string",
	"stringlist": "[]string", "ints": "[]int", "intslice": "[]int",
	"intlist": "[]int", "floats": "[]float64", "floatslice": "[]float64", "floatlist": "[]float64", "list": "[]any",
	"array": "[]any", "slice": "[]any",
	"object": "map[string]any", "map": "map[string]any", "dict": "map[string]any"}

// getterType returns the type that a method of that name would return. ok is false if it would not read an argument.
func getterType(name string) (typ string, ok bool) {
	g := getterName().FindStringSubmatch(name)
	if g == nil {
		return "", false
	}
	typ, ok = getterTypes[strings.ToLower(g[1])]
	return typ, ok
}

// argument returns the expression that reads an argument by name. The position is the declared one, or the first if the
// program reads no other argument. It returns "" if the position is not known.
func (m *fixer) argument(call, name string) string {
	place := slices.IndexFunc(m.terms.Parameters, func(p report.Parameter) bool { return p.Name == name })
	if !isNameText().MatchString(name) || len(m.terms.Parameters) > 0 && place < 0 || len(m.terms.Parameters) == 0 &&
		!m.onlyArgument(name) {
		return ""
	}
	return fmt.Sprintf("%s.Arg(%d, %q)", call, max(place, 0), name)
}

// onlyArgument reports whether the program reads no argument other than the first, under that name.
func (m *fixer) onlyArgument(name string) bool {
	only := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !only {
			return only
		}
		owner, _ := m.hostMember(s)
		if owner != "Call" {
			return true
		}
		_, getter := getterType(s.Sel.Name)
		switch p := m.parents[s].(type) {
		case *ast.IndexExpr:
			if s.Sel.Name != "Context" {
				only = constantText(p.Index) == name
			}
		case *ast.CallExpr:
			if getter || s.Sel.Name == "Arg" {
				only = slices.ContainsFunc(p.Args, func(a ast.Expr) bool { return constantText(a) == name }) &&
					!slices.ContainsFunc(p.Args[:min(1, len(p.Args))],
						func(a ast.Expr) bool { _, number := placeOf(a); return number && !isNumber(a, "0") })
			} else {
				only = !slices.Contains([]string{"Bind", "Set", "Load", "Store"}, s.Sel.Name)
			}
		default:
			only = s.Sel.Name != "Args" && s.Sel.Name != "Kwargs" && !slices.Contains(inputs, s.Sel.Name)
		}
		return only
	})
	return only && !m.keyOfContext(name)
}

// isNumber reports whether e is the integer literal with that text.
func isNumber(e ast.Expr, text string) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT && l.Value == text
}

// keyOfContext reports whether the program uses the session's memory under that name.
func (m *fixer) keyOfContext(name string) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		if ix, ok := n.(*ast.IndexExpr); ok && constantText(ix.Index) == name {
			s, ok := ix.X.(*ast.SelectorExpr)
			found = found || ok && s.Sel.Name == "Context"
		}
		if c, ok := n.(*ast.CallExpr); ok && len(c.Args) == 2 && constantText(c.Args[0]) == name {
			s, ok := c.Fun.(*ast.SelectorExpr)
			found = found || ok && strings.HasPrefix(s.Sel.Name, "Set")
		}
		return !found
	})
	return found
}

// placeOf returns the value of an integer literal, and whether e is one below 64.
func placeOf(e ast.Expr) (int, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.INT {
		return -1, false
	}
	n, err := strconv.Atoi(l.Value)
	return n, err == nil && n < 64
}

// getter replaces an invented method that reads an argument by call.Arg. The method may take a position, a name or
// both, a type, and a default, and it may return an error or an ok with the value.
func (m *fixer) getter(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	typ, ok := getterType(s.Sel.Name)
	if !ok || len(call.Args) == 0 || len(call.Args) > 3 {
		return false
	}
	args, place, name, arg := call.Args, -1, "", ""
	if n, number := placeOf(args[0]); number {
		place, args = n, args[1:]
	}
	if len(args) > 0 && constantText(args[0]) != "" && !(place >= 0 && typ == "string" &&
		strings.HasSuffix(strings.ToLower(s.Sel.Name), "or")) {
		name, args = constantText(args[0]), args[1:]
	}
	if len(args) > 0 && place < 0 && s.Sel.Name == "Arg" || m.keyOfContext(name) {
		return false // the number may be a position or a default
	}
	if place < 0 && typ == "" && len(m.terms.Parameters) == 0 && !ofArgument().MatchString(s.Sel.Name) {
		return false
	}
	if place < 0 {
		arg = m.argument(m.text(s.X), name)
	} else if name = m.nameOf(call, place, name); name != "" {
		arg = fmt.Sprintf("%s.Arg(%d, %q)", m.text(s.X), place, name)
	}
	return arg != "" && len(args) < 2 && m.typedGetter(call, arg, typ, args)
}

// nameOf returns the name of an argument that is read by position: the declared name, the name given in the call, or
// that of the variable that receives it. It returns "" if the declared name and the given one differ.
func (m *fixer) nameOf(call ast.Expr, place int, name string) string {
	if place < len(m.terms.Parameters) {
		if declared := m.terms.Parameters[place].Name; name == "" || name == declared {
			return declared
		}
		return ""
	}
	if name != "" {
		return name
	}
	if as, ok := m.parents[call].(*ast.AssignStmt); ok && len(as.Rhs) == 1 {
		if id, ok := as.Lhs[0].(*ast.Ident); ok && id.Name != "_" {
			return id.Name
		}
	}
	return fmt.Sprint("arg", place)
}

// typedGetter replaces a call that would return an argument as a type by the conversion of arg.
func (m *fixer) typedGetter(call *ast.CallExpr, arg, typ string, preset []ast.Expr) bool {
	const note = "arguments are read by call.Arg"
	as, _ := m.parents[call].(*ast.AssignStmt)
	pair := as != nil && len(as.Lhs) == 2 && len(as.Rhs) == 1
	a, asserted := m.parents[call].(*ast.TypeAssertExpr)
	if len(preset) == 1 {
		if asserted && a.Type != nil && typ == "" {
			typ = m.text(a.Type)
		}
		value, t := m.text(preset[0]), types.Default(m.Info.TypeOf(preset[0]))
		if typ == "float64" && isWhole(t) && m.Info.Types[preset[0]].Value != nil {
			value, t = "float64("+value+")", types.Typ[types.Float64]
		}
		if pair || m.like(t) == "" || typ != "" && typ != m.typeText(t) {
			return false
		}
		text := "recurgent.Or(" + arg + ", " + value + ")"
		if !asserted {
			text += ".(" + m.typeText(t) + ")"
		}
		return m.useHost(note, m.replace(call, text))
	}
	if typ == "" || asserted && a.X == call {
		return !pair && m.fix(note, m.replace(call, arg))
	}
	like := map[string]string{"string": `""`, "int": "0", "int64": "int64(0)", "float64": "0.0", "bool": "false"}[typ]
	if like == "" {
		like = typ + "{}"
	}
	if !pair {
		return m.useHost(note, m.replace(call, "recurgent.Must("+arg+", "+like+").("+typ+")"))
	}
	second, ok := as.Lhs[1].(*ast.Ident)
	if ok && strings.HasPrefix(strings.ToLower(second.Name), "err") {
		return m.passedOn(as, second.Name) && m.useHost(note, m.replace(call,
			"recurgent.Must("+arg+", "+like+").("+typ+"), error(nil)"))
	}
	return m.useHost(note, m.replace(call, "recurgent.Maybe("+arg+", "+like+").("+typ+")"))
}

// passedOn reports whether the next statement returns if there is an error.
func (m *fixer) passedOn(as *ast.AssignStmt, err string) bool {
	list := m.siblings(as)
	if i := slices.Index(list, ast.Stmt(as)) + 1; i < len(list) {
		s, ok := list[i].(*ast.IfStmt)
		if !ok || len(s.Body.List) == 0 {
			return false
		}
		cond, ok := s.Cond.(*ast.BinaryExpr)
		r, returns := s.Body.List[len(s.Body.List)-1].(*ast.ReturnStmt)
		return ok && cond.Op == token.NEQ && isName(cond.X, err) && isName(cond.Y, "nil") && returns &&
			len(r.Results) > 0 && !isName(r.Results[len(r.Results)-1], "nil")
	}
	return false
}
