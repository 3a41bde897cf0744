package fix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// assertions repairs places that take decoded JSON for a type that it never has: an int, a []string, a map[string]int.
func (m *fixer) assertions() {
	if uses(m.file, "recover") {
		return // the program may rely on an assertion that panics
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if m.checker.Spent() {
			return false
		}
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				m.assertion(n)
			}
		case *ast.TypeSwitchStmt:
			m.typeSwitch(n)
		case *ast.SwitchStmt:
			m.valueSwitch(n)
		case *ast.BinaryExpr:
			m.comparison(n)
		}
		return true
	})
}

// isJSON reports whether the expression is a value of type any that comes from decoded JSON and cannot have been
// created by the program.
func (m *fixer) isJSON(x ast.Expr) (origin, bool) {
	if !isEmptyInterface(m.Info.TypeOf(x)) || m.helped(x) {
		return 0, false
	}
	from := m.origin(x)
	return from, from != 0 && from&(ofProgram|ofInts) == 0
}

// helpers are the functions of the host package that convert decoded JSON.
var helpers = []string{"As", "Must", "Maybe", "Or", "Held", "Case"}

// helped reports whether the expression is a call of one of the helpers.
func (m *fixer) helped(x ast.Expr) bool {
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(helpers, s.Sel.Name) && ofHost(m.Info.Uses[s.Sel])
}

// assertion converts the value that n asserts. If the program checks ok, a missing value still makes ok false. Any
// other value of the wrong type ends the call, unless Run returns an error of its own for it.
func (m *fixer) assertion(n *ast.TypeAssertExpr) {
	if strings.Contains(m.src, "= fromJSON["+m.text(n.Type)+"]("+m.text(m.memberOf(n.X))+")") {
		return // Run decodes it at its start
	}
	t := m.Info.TypeOf(n.Type)
	from, ok := m.isCounted(n.X, t)
	if !ok || t == nil {
		m.neverMade(n, t, from)
		return
	}
	if m.unmarshalledAt(n) || m.fromStart(n, t) {
		return
	}
	kind, like := jsonKind(t), m.like(t)
	if m.wholeOrKept(n, t, from) {
		return
	}
	if text := m.text(n.Type); kind == "" || like == "" || text == "rune" || text == "byte" || kind != "number" &&
		m.shared(n) {
		if decodedAs(t) == "" && !types.IsInterface(t) && !m.asksKind(n.X) && !m.hasDigits(n, t, from) {
			m.neverHolds(n, t)
		}
		return
	}
	if m.handled(n.X, kind, m.commaOK(n)) {
		return
	}
	helper, pair := "As", m.commaOK(n)
	switch {
	case pair && m.refuses(n):
	case pair && from == ofArguments:
		helper = "Maybe"
	case pair:
		helper = "Held"
	case from == ofArguments:
		helper = "Must"
	}
	m.useHost(fmt.Sprintf("JSON has no %s: %s is converted", m.text(n.Type), kindWords[kind]),
		m.replace(n.X, fmt.Sprintf("recurgent.%s(%s, %s)", helper, m.text(n.X), like)))
}

// wholeOrKept repairs an assertion to a struct, or to the type of a member of the memory. It returns false if neither
// applies.
func (m *fixer) wholeOrKept(n *ast.TypeAssertExpr, t types.Type, from origin) bool {
	kind, like := jsonKind(t), m.like(t)
	if kind == "" && like == "" {
		return m.structured(n, t, from)
	}
	return kind != "" && kind != "number" && like != "" && m.inMemory(n, like)
}

// neverMade reports an assertion to a number type or similar that can never hold: JSON does not have the type, and the
// program creates no such value.
func (m *fixer) neverMade(n *ast.TypeAssertExpr, t types.Type, from origin) {
	_, member := ast.Unparen(n.X).(*ast.IndexExpr)
	if !member || t == nil || from&(ofArguments|ofElsewhere) == 0 {
		return
	}
	if (jsonKind(t) != "" || isKind(t, types.IsNumeric) && decodedAs(t) == "") && !m.makes(t) {
		m.neverHolds(n, t)
	}
}

// useHost makes edits that use the host package. If the program imports it under another name, the edits use that name.
func (m *fixer) useHost(note string, edits ...edit) bool {
	name := host
	for _, spec := range m.file.Imports {
		if importPath(spec) == host {
			name = importName(spec)
		}
	}
	if name != host && strings.Contains(m.src, host+".") {
		return false // the package name also occurs inside a string
	}
	for i := range edits {
		edits[i].text = strings.ReplaceAll(edits[i].text, host+".", name+".")
	}
	return m.fix(note, edits...)
}

// commaOK reports whether the program checks whether the assertion holds.
func (m *fixer) commaOK(n ast.Expr) bool {
	switch p := m.parents[n].(type) {
	case *ast.ParenExpr:
		return m.commaOK(p)
	case *ast.AssignStmt:
		return len(p.Lhs) == 2 && len(p.Rhs) == 1
	case *ast.ValueSpec:
		return len(p.Names) == 2 && len(p.Values) == 1
	}
	return false
}

// handled reports whether the program also asserts the same value to the type that decoded JSON of that kind has. The
// program then works as it is. If looks is set, parameters of two functions count as the same value.
func (m *fixer) handled(x ast.Expr, kind string, looks bool) bool {
	from, text, within, found := m.source(x), m.text(x), m.enclosing(x), false
	same := func(y ast.Expr, t ast.Expr) bool {
		return y != x && decodedAs(m.Info.TypeOf(t)) == kind && (looks && m.source(y) == from || m.text(y) == text &&
			m.enclosing(y) == within)
	}
	ast.Inspect(m.file, func(o ast.Node) bool {
		switch o := o.(type) {
		case *ast.TypeAssertExpr:
			found = found || o.Type != nil && same(o.X, o.Type)
		case *ast.TypeSwitchStmt:
			if subject := switched(o); subject != nil {
				for _, c := range o.Body.List {
					for _, t := range c.(*ast.CaseClause).List {
						found = found || same(subject.X, t)
					}
				}
			}
		}
		return !found
	})
	return found
}

// asksKind reports whether the program checks the value for any type that decoded JSON has.
func (m *fixer) asksKind(x ast.Expr) bool {
	return m.handled(x, "number", true) || m.handled(x, "array", true) || m.handled(x, "object", true) ||
		m.handled(x, "string", true)
}

// hasDigits reports whether a value may be a json.Number: the program asks for them where it decodes JSON, or checks
// whether it is one, and handles the case that it is not.
func (m *fixer) hasDigits(n *ast.TypeAssertExpr, t types.Type, from origin) bool {
	if !isDigits(t) || from != ofArguments && uses(m.file, "UseNumber") {
		return isDigits(t)
	}
	as, ok := m.parents[n].(*ast.AssignStmt)
	return ok && len(as.Lhs) == 2 && !isName(as.Lhs[1], "_") && !m.refuses(n)
}

// source returns the text of the expression that a value of type any comes from. For a variable that is the expression
// that defines it.
func (m *fixer) source(x ast.Expr) string {
	v := m.variable(x)
	if v == nil {
		return m.text(ast.Unparen(x))
	}
	def, value := m.definition(v)
	if def == nil {
		return "a parameter or an item"
	}
	if value == nil {
		return v.Name() + m.fset.Position(v.Pos()).String()
	}
	if a, ok := ast.Unparen(value).(*ast.TypeAssertExpr); ok {
		value = a.X
	}
	return m.text(value)
}

// refuses reports whether Run returns an error of its own, or panics, if the assertion does not hold. The check must be
// in the same statement or follow it.
func (m *fixer) refuses(n ast.Expr) bool {
	as, ok := m.parents[n].(*ast.AssignStmt)
	if _, run := m.resultsOf(n); !run || !ok {
		return false
	}
	name, ok := as.Lhs[1].(*ast.Ident)
	if !ok || name.Name == "_" {
		return false
	}
	if s, ok := m.parents[as].(*ast.IfStmt); ok && s.Init == as {
		if denies(s.Cond, name.Name) {
			return m.fails(s.Body)
		}
		other, isBlock := s.Else.(*ast.BlockStmt)
		return isName(s.Cond, name.Name) && isBlock && m.fails(other)
	}
	list := m.siblings(as)
	for _, next := range list[slices.Index(list, ast.Stmt(as))+1:] {
		switch next := next.(type) {
		case *ast.AssignStmt:
			if slices.ContainsFunc(next.Lhs, func(l ast.Expr) bool { return isName(l, name.Name) }) {
				return false
			}
		case *ast.IfStmt:
			return next.Init == nil && denies(next.Cond, name.Name) && m.fails(next.Body)
		default:
			return false
		}
	}
	return false
}

// denies reports whether a condition holds whenever the variable is false.
func denies(cond ast.Expr, name string) bool {
	switch c := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		return c.Op == token.NOT && isName(ast.Unparen(c.X), name)
	case *ast.BinaryExpr:
		return c.Op == token.LOR && (denies(c.X, name) || denies(c.Y, name))
	}
	return false
}

// fails reports whether a block ends with an error that it creates, or with a panic.
func (m *fixer) fails(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch last := b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt:
		if len(last.Results) != 2 || !isName(last.Results[0], "nil") {
			return false
		}
		_, made := ast.Unparen(last.Results[1]).(*ast.CallExpr)
		return made
	case *ast.ExprStmt:
		c, ok := last.X.(*ast.CallExpr)
		return ok && isName(c.Fun, "panic")
	}
	return false
}

// siblings returns the statements of the block that contains st.
func (m *fixer) siblings(st ast.Stmt) []ast.Stmt {
	switch b := m.parents[st].(type) {
	case *ast.BlockStmt:
		return b.List
	case *ast.CaseClause:
		return b.Body
	}
	return []ast.Stmt{st}
}

// enclosing returns the function declaration that contains the node, or the file.
func (m *fixer) enclosing(n ast.Node) ast.Node {
	for p := m.parents[n]; p != nil; p = m.parents[p] {
		if f, ok := p.(*ast.FuncDecl); ok {
			return f
		}
	}
	return m.file
}
