package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// hidesFunction renames a variable that hides a function which the program calls, as in max := 0; max = max(max, n).
func (m *fixer) hidesFunction(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return m.variable(c.Fun) != nil })
	if !ok || len(m.edits) > 0 {
		return false
	}
	v := m.variable(c.Fun)
	if types.Universe.Lookup(v.Name()) == nil && m.function(v.Name()) == nil || v.IsField() ||
		v.Parent() == m.Pkg.Scope() {
		return false
	}
	name := m.unused(v.Name()+"Value", v.Name()+"Of")
	var edits []edit
	ast.Inspect(m.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		// The arguments of the call have no objects, because it could not be checked.
		of := m.Info.ObjectOf(id)
		if !ok || id.Name != v.Name() || of != v && (of != nil || !v.Parent().Contains(id.Pos())) {
			return true
		}
		switch p := m.parents[id].(type) {
		case *ast.CallExpr:
			ok = p.Fun != ast.Expr(id)
		case *ast.SelectorExpr:
			ok = p.X == ast.Expr(id)
		case *ast.KeyValueExpr:
			ok = p.Key != ast.Expr(id)
		}
		if ok {
			edits = append(edits, m.replace(id, name))
		}
		return true
	})
	return m.fix("a variable has the name of the function "+v.Name(), edits...)
}

// madeEmpty repairs make([]any) without a length.
func (m *fixer) madeEmpty(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return isName(c.Fun, "make") && len(c.Args) == 1 })
	return ok && m.fix("a list without a length is empty", m.replace(c, m.text(c.Args[0])+"{}"))
}

// emptyOfType repairs x := map[string]bool and x := []string, where the empty value is meant.
func (m *fixer) emptyOfType(e types.Error, path []ast.Node, _ []string) bool {
	for _, n := range path {
		x, ok := n.(ast.Expr)
		if !ok {
			return false
		}
		if x.Pos() != e.Pos || !m.Info.Types[x].IsType() {
			continue
		}
		if _, inType := m.parents[x].(ast.Expr); inType {
			if _, called := m.parents[x].(*ast.CallExpr); !called {
				continue
			}
		}
		switch x.(type) {
		case *ast.MapType, *ast.ArrayType, *ast.StructType:
			return m.fix("an empty value has braces", m.after(x, "{}"))
		case *ast.SelectorExpr, *ast.Ident, *ast.IndexExpr:
			return m.emptyOfNamed(x)
		}
	}
	return false
}

// repeatedValue gives each variable the value in a, b := 0.
func (m *fixer) repeatedValue(_ types.Error, path []ast.Node, _ []string) bool {
	as, ok := nearest(path, func(a *ast.AssignStmt) bool { return len(a.Rhs) == 1 && len(a.Lhs) > 1 })
	if !ok {
		return false
	}
	switch x := as.Rhs[0].(type) {
	case *ast.BasicLit:
	case *ast.Ident:
		if x.Name != "true" && x.Name != "false" && x.Name != "nil" {
			return false
		}
	default:
		return false
	}
	return m.fix("each variable has a value", m.after(as.Rhs[0], strings.Repeat(", "+m.text(as.Rhs[0]), len(as.Lhs)-1)))
}

// uncalled calls methods and functions that stand in an operation without their parentheses, as in
// day.Year - birth.Year.
func (m *fixer) uncalled(n *ast.BinaryExpr) bool {
	var edits []edit
	for _, x := range []ast.Expr{n.X, n.Y} {
		if t := m.Info.TypeOf(x); t != nil && isGetter(t) {
			edits = append(edits, m.after(x, "()"))
		}
	}
	return len(edits) > 0 && !isName(n.X, "nil") && !isName(n.Y, "nil") && m.fix("a method is called", edits...)
}

// wholeDate gives time.Date the parts that are left out: midnight, in UTC.
func (m *fixer) wholeDate(call *ast.CallExpr) bool {
	rest := map[int]string{3: ", 0, 0, 0, 0, time.UTC", 4: ", 0, 0, 0, time.UTC",
		5: ", 0, 0, time.UTC", 6: ", 0, time.UTC", 7: ", time.UTC"}[len(call.Args)]
	return m.text(call.Fun) == "time.Date" && rest != "" && m.fix("time.Date takes all parts of a time",
		m.after(call.Args[len(call.Args)-1], rest))
}

// foundPattern takes regexp.MatchString(pattern, s) as a condition: the pattern is compiled, and one that is wrong ends
// the run.
func (m *fixer) foundPattern(c *ast.CallExpr) bool {
	return m.callee(c) == "regexp.MatchString" && len(c.Args) == 2 && m.Info.Types[c.Args[0]].Value != nil &&
		m.fix("regexp.MatchString returns an error, too", m.replace(c,
			"regexp.MustCompile("+m.text(c.Args[0])+").MatchString("+m.text(c.Args[1])+")"))
}

// readIf repairs if n := strconv.Atoi(s); n != nil, which asks whether the text is a number.
func (m *fixer) readIf(as *ast.AssignStmt) bool {
	s, ok := m.parents[as].(*ast.IfStmt)
	if !ok || s.Init != ast.Stmt(as) || as.Tok != token.DEFINE || len(as.Lhs) != 1 || !m.neverNil(as) {
		return false
	}
	b, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr)
	if !ok || !isName(b.Y, "nil") || m.text(b.X) != m.text(as.Lhs[0]) {
		return false
	}
	op := map[token.Token]string{token.EQL: " != nil", token.NEQ: " == nil"}[b.Op]
	name := m.unused("err", "failure")
	return op != "" && m.fix("the error says whether it failed", m.after(as.Lhs[0], ", "+name),
		m.replace(b, name+op))
}

// divmod is added to a program that calls divmod.
const divmod = `func divmod(a, b int) (int, int) {
	q, r := a/b, a%b
	if r != 0 && (r < 0) != (b < 0) {
		q, r = q-1, r+b
	}
	return q, r
}`

// foreignFunction repairs functions that other languages have built in.
func (m *fixer) foreignFunction(id *ast.Ident) bool {
	c, ok := m.parents[id].(*ast.CallExpr)
	if !ok || c.Fun != ast.Expr(id) || len(m.edits) > 0 {
		return false
	}
	switch {
	case id.Name == "divmod" && len(c.Args) == 2:
		edits, ok := m.given("divmod", divmod)
		return ok && m.fix("divmod is a function of the program", edits...)
	case id.Name == "set" && len(c.Args) == 0:
		return m.fix("a set is a map", m.replace(c, "map[any]bool{}"))
	case m.ofValues(c, plainName(id.Name)):
		return true
	case id.Name == "str" && len(c.Args) == 1:
		return m.textOf(c)
	case id.Name == "round" && len(c.Args) == 2:
		return m.fix("round is math.Round", m.replace(id, "math.Round"))
	case id.Name == "round" && len(c.Args) == 1, id.Name == "abs" && len(c.Args) == 1, id.Name == "sqrt",
		id.Name == "floor", id.Name == "ceil":
		name := map[string]string{"round": "math.Round", "abs": "math.Abs", "sqrt": "math.Sqrt", "floor": "math.Floor",
			"ceil": "math.Ceil"}[id.Name]
		return len(c.Args) == 1 && m.fix(id.Name+" is "+name, m.replace(id, name))
	}
	return false
}

// textOf repairs str(x): the text of an integer or of an argument, or the text itself. That of another number differs
// between languages.
func (m *fixer) textOf(c *ast.CallExpr) bool {
	x := c.Args[0]
	switch t := m.Info.TypeOf(x); {
	case isBasic(t, types.Int):
		return m.fix("str is strconv.Itoa", m.replace(c.Fun, "strconv.Itoa"))
	case t != nil && isPlainString(t):
		return m.fix(clip(m.text(x))+" is a text", m.replace(c, m.operandText(x)))
	case isEmptyInterface(t) && m.origin(x) == ofArguments:
		edits, ok := m.given("textOfNumber", textOfNumber)
		return ok && m.fix(clip(m.text(x))+" is a number or its text", append(edits, m.replace(c.Fun, "textOfNumber"))...)
	}
	return false
}

// ofValues calls what Go has for a function of lists, maps or texts of another language.
func (m *fixer) ofValues(c *ast.CallExpr, name string) bool {
	if len(c.Args) == 0 || m.Info.TypeOf(c.Args[0]) == nil || len(m.edits) > 0 {
		return false
	}
	if _, stands := m.parents[c].(*ast.ExprStmt); stands {
		return false // the list itself is meant to change
	}
	x := m.text(c.Args[0])
	switch of := m.Info.TypeOf(c.Args[0]).Underlying().(type) {
	case *types.Slice:
		if name == "sorted" && len(c.Args) == 1 && isKind(of.Elem(), types.IsOrdered) {
			return m.fix("a sorted copy of a list", m.replace(c, "slices.Sorted(slices.Values("+x+"))"))
		}
		return m.calledInstead(c, ofLists[name], c.Args)
	case *types.Map:
		if name == "sorted" && len(c.Args) == 1 && isKind(of.Key(), types.IsOrdered) {
			return m.fix("the sorted keys of a map", m.replace(c, "slices.Sorted(maps.Keys("+x+"))"))
		}
	case *types.Basic:
		if (name == "contains" || name == "includes") && len(c.Args) == 2 && isString(of) {
			return m.fix("a text contains another", m.replace(c.Fun, "strings.Contains"))
		}
		return isString(of) && m.calledInstead(c, ofTexts[name], c.Args)
	}
	return false
}

// errorLiteral repairs recurgent.Error{Type: "invalid_input", Message: "..."}.
func (m *fixer) errorLiteral(s *ast.SelectorExpr) bool {
	lit, ok := m.parents[s].(*ast.CompositeLit)
	if !ok || lit.Type != ast.Expr(s) || len(lit.Elts) != 2 {
		return false
	}
	var kind, message string
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		switch key := strings.ToLower(m.text(kv.Key)); key {
		case "type", "code", "kind", "errortype":
			kind = m.text(kv.Value)
		case "message", "msg", "text", "description":
			message = m.text(kv.Value)
		}
	}
	whole := ast.Node(lit)
	if u, ok := m.parents[lit].(*ast.UnaryExpr); ok && u.Op == token.AND {
		whole = u
	}
	return kind != "" && message != "" && m.useHost("a failure is recurgent.Fail",
		m.replace(whole, "recurgent.Fail("+kind+", "+message+")"))
}

// itoa writes the text of an int beside a text of words: hours + "h". Not "a" + n, which may be counted from a
// character, and not in a program of characters, whose numbers may stand for them.
func (m *fixer) itoa(n *ast.BinaryExpr) bool {
	if n.Op != token.ADD || m.hasCharacters() {
		return false
	}
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		words := constantText(side[1])
		if isBasic(m.Info.TypeOf(side[0]), types.Int) && m.Info.Types[side[0]].Value == nil &&
			(len(words) > 1 || side[0] == n.X) && strings.Trim(words, " 0123456789.+-") != "" {
			return m.fix("the text of a number is strconv.Itoa",
				m.replace(side[0], "strconv.Itoa("+m.text(side[0])+")"))
		}
	}
	return false
}

// hasCharacters reports whether a character or a byte is a value anywhere in the program.
func (m *fixer) hasCharacters() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok || found {
			return !found
		}
		t := m.Info.Types[x]
		found = isChar(x) || t.IsValue() && (isBasic(t.Type, types.Int32) || isBasic(t.Type, types.Uint8))
		return !found
	})
	return found
}
