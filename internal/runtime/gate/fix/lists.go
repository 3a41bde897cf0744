package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// lists replaces a nil list that the program returns by an empty one, because nil is encoded as null. It keeps the null
// if no array is declared and the program needs no other repair, or if the task or the text mentions null.
func (m *fixer) lists() {
	if (m.begun() || m.terms.Returns == "object") && !m.terms.Null && !aboutNull().MatchString(m.src) {
		m.nestedLists()
	}
	if m.terms.Returns != "array" && (!m.begun() || m.terms.Null || aboutNull().MatchString(m.src)) {
		return
	}
	m.returned(m.nilFields)
	m.returnedLists(func(_ *types.Var, decl ast.Node, typ string) { m.emptyLists(decl, typ) })
	m.returned(m.foundList)
}

// nestedLists does the same for a list in an object literal that Run returns.
func (m *fixer) nestedLists() {
	run := m.function("Run")
	if run == nil || run.Body == nil {
		return
	}
	ast.Inspect(run.Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok || len(r.Results) == 0 {
			_, lit := n.(*ast.FuncLit)
			return !lit
		}
		object, ok := ast.Unparen(r.Results[0]).(*ast.CompositeLit)
		if !ok || m.isError(r) {
			return true
		}
		if _, isMap := m.Info.TypeOf(object).Underlying().(*types.Map); !isMap {
			return true
		}
		for _, el := range object.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				m.nilList(kv.Value, func(_ *types.Var, decl ast.Node, typ string) { m.emptyLists(decl, typ) })
				m.foundList(kv.Value)
			}
		}
		return true
	})
}

// nilFields gives the lists of a struct that Run returns an empty value where its literal leaves them out, in a program
// that something else is corrected in.
func (m *fixer) nilFields(x ast.Expr) {
	if v := m.variable(x); v != nil {
		_, x = m.definition(v)
	}
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.AND {
		x = u.X
	}
	lit, ok := x.(*ast.CompositeLit)
	if !ok || !m.begun() || m.Info.TypeOf(lit) == nil || m.terms.Null {
		return
	}
	s, ok := m.Info.TypeOf(lit).Underlying().(*types.Struct)
	if name, own := m.definedType(m.Info.TypeOf(lit)); !ok || !own || name == nil {
		return
	}
	given := map[string]bool{}
	for _, el := range lit.Elts {
		kv, keyed := el.(*ast.KeyValueExpr)
		if !keyed {
			return
		}
		given[m.text(kv.Key)] = true
	}
	text := ""
	for i := range s.NumFields() {
		f := s.Field(i)
		if list, isList := types.Unalias(f.Type()).(*types.Slice); isList && !given[f.Name()] &&
			!elemIs(list, types.Uint8) && !strings.Contains(s.Tag(i), "omitempty") && !m.comparedToNil(list) {
			text += ", " + f.Name() + ": " + m.typeText(list) + "{}"
		}
	}
	if len(lit.Elts) == 0 {
		text = strings.TrimPrefix(text, ", ")
	}
	if text == "" {
		return
	}
	at := m.offset(lit.Rbrace)
	if n := len(lit.Elts); n > 0 {
		at = m.offset(lit.Elts[n-1].End())
	}
	m.fix("an empty list is no nil, which would be null", edit{at, at, text})
}

// isError reports whether a statement returns an error.
func (m *fixer) isError(r *ast.ReturnStmt) bool {
	return len(r.Results) > 1 && !isName(r.Results[len(r.Results)-1], "nil")
}

// aboutNull matches a text that mentions null other than as Go's nil.
var aboutNull = lazy.Regexp(`(?i)\bnull\b|//.*\b(nil|none|nothing)\b`)

// returnedLists finds declarations without a value of lists that Run returns and never compares with nil.
func (m *fixer) returnedLists(found func(v *types.Var, decl ast.Node, typ string)) {
	m.returned(func(x ast.Expr) { m.nilList(x, found) })
}

// returned visits the values that Run returns.
func (m *fixer) returned(visit func(x ast.Expr)) {
	for _, f := range m.answering() {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if _, lit := n.(*ast.FuncLit); lit {
				return false
			}
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
				visit(r.Results[0])
			}
			return true
		})
	}
}

// finders matches library functions that return nil if they find nothing.
var finders = lazy.Regexp(
	`^(?:\(\*regexp\.Regexp\)\.FindAll\w*|slices\.(?:Collect|Sorted|SortedFunc|SortedStableFunc))$`)

// foundList makes the result of a library function that may return a nil list an empty list instead, whether it is
// returned directly or through a variable.
func (m *fixer) foundList(x ast.Expr) {
	if v := m.variable(x); v != nil {
		_, x = m.definition(v)
	}
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return
	}
	s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if f, ok := m.Info.Uses[s.Sel].(*types.Func); ok && finders().MatchString(f.FullName()) &&
		!m.comparedToNil(m.Info.TypeOf(c)) {
		m.fix("an empty list is no nil, which would be null", m.before(c,
			"append("+m.typeText(m.Info.TypeOf(c))+"{}, "), m.after(c, "...)"))
	}
}

// answering returns Run and the functions that it calls at exactly one place and whose result it returns unchanged.
func (m *fixer) answering() (out []*ast.FuncDecl) {
	if run := m.function("Run"); run != nil {
		out = append(out, run)
	}
	for i := 0; i < len(out); i++ {
		ast.Inspect(out[i].Body, func(n ast.Node) bool {
			r, ok := n.(*ast.ReturnStmt)
			if !ok || len(r.Results) == 0 {
				return true
			}
			if c, ok := ast.Unparen(r.Results[0]).(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok {
					if f := m.function(id.Name); f != nil && f.Body != nil && !slices.Contains(out, f) &&
						len(m.usesOf(m.Info.Defs[f.Name])) == 1 {
						out = append(out, f)
					}
				}
			}
			return true
		})
	}
	return out
}

// nilList finds the declaration without a value of the list that an expression names. The declaration may declare other
// lists with it.
func (m *fixer) nilList(x ast.Expr, found func(v *types.Var, decl ast.Node, typ string)) {
	v := m.variable(x)
	def, value := m.definition(v)
	spec, ok := def.(*ast.ValueSpec)
	if !ok || value != nil || spec.Type == nil {
		return
	}
	if _, isSlice := v.Type().Underlying().(*types.Slice); !isSlice || elemIs(v.Type(), types.Uint8) ||
		m.comparedToNil(v.Type()) {
		return
	}
	g, ok := m.parents[spec].(*ast.GenDecl)
	if _, local := m.parents[g].(*ast.DeclStmt); ok && local && len(g.Specs) == 1 {
		found(v, g, m.text(ast.Unparen(spec.Type)))
	}
}

// emptyLists initialises the variables of a declaration with empty lists.
func (m *fixer) emptyLists(decl ast.Node, typ string) {
	var names, values []string
	for _, id := range decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Names {
		names, values = append(names, id.Name), append(values, typ+"{}")
	}
	m.fix("an empty list is no nil, which would be null", m.replace(decl,
		strings.Join(names, ", ")+" := "+strings.Join(values, ", ")))
}

// comparedToNil reports whether the program compares any list of that type with nil.
func (m *fixer) comparedToNil(list types.Type) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok {
			found = found || isName(b.Y, "nil") && types.Identical(m.Info.TypeOf(b.X), list) || isName(b.X, "nil") &&
				types.Identical(m.Info.TypeOf(b.Y), list)
		}
		return !found
	})
	return found
}

// functions calls a function that the program returns without calling it, as in return b.String, nil.
func (m *fixer) functions() {
	m.returned(func(x ast.Expr) {
		if isGetter(m.Info.TypeOf(x)) {
			m.fix(clip(m.text(x))+" is called", m.after(x, "()"))
		}
		if t := m.Info.TypeOf(x); t != nil && isBuilder(t) {
			m.fix("the text is returned, not what it was written to", m.after(x, ".String()"))
		}
	})
}

// pointers passes the address of a variable to a function that decodes into it.
func (m *fixer) pointers() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		owner, name := m.hostMember(s)
		from := len(call.Args) // index of the first argument to decode into
		switch {
		case owner == "Call" && name == "Bind" && m.boundList(call, s):
			return false
		case owner == "Call" && name == "Bind", m.callee(call) == "json.Unmarshal" && len(call.Args) == 2:
			from = len(call.Args) - 1
		case m.callee(call) == "fmt.Sscanf":
			from = min(2, from)
		case m.callee(call) == "fmt.Sscan":
			from = min(1, from)
		}
		for _, into := range call.Args[from:] {
			v := m.variable(into)
			if v == nil {
				continue
			}
			switch v.Type().Underlying().(type) {
			case *types.Pointer, *types.Interface, *types.Signature, *types.Chan:
			default:
				m.fix(m.text(s)+" needs the address of a variable", m.before(into, "&"))
			}
		}
		return true
	})
}
