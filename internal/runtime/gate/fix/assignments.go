package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// assignCount repairs x := f() of a function that also returns an error, and x, err := f() of one that does not.
func (m *fixer) assignCount(e types.Error, path []ast.Node, match []string) bool {
	as, ok := nearest(path, func(a *ast.AssignStmt) bool { return len(a.Rhs) == 1 && len(a.Lhs) != 0 })
	if !ok {
		return false
	}
	call, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return false
	}
	switch {
	case match[1] == "1" && match[2] == "2":
		return m.firstOfTwo(as, call)
	case match[1] == "2" && match[2] == "3" && m.callee(call) == "strings.Cut":
		return m.cutParts(as)
	case match[1] == "2" && match[2] == "1":
		return m.twoOfOne(as, call)
	}
	return false
}

// firstOfTwo receives the second result of a function where the program receives the first alone.
func (m *fixer) firstOfTwo(as *ast.AssignStmt, call *ast.CallExpr) bool {
	results, ok := m.Info.TypeOf(call).(*types.Tuple)
	if !ok {
		sig, isSig := m.Info.TypeOf(call.Fun).(*types.Signature)
		if !isSig {
			return false
		}
		results = sig.Results()
	}
	if strings.HasPrefix(m.text(call.Fun), "utf8.Decode") { // returns a character and its length
		return m.fix(m.text(call.Fun)+" returns the length, too", m.after(as.Lhs[0], ", _"))
	}
	return results.Len() == 2 && isError(results.At(1).Type()) && m.checkError(as)
}

// twoOfOne repairs v, err := f() of a function with one result.
func (m *fixer) twoOfOne(as *ast.AssignStmt, call *ast.CallExpr) bool {
	second, ok := as.Lhs[1].(*ast.Ident)
	if !ok {
		return false
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && second.Name == "ok" {
		owner, name := m.hostMember(s)
		return owner+name == "CallArg" && m.fix("call.Arg returns nil for what is missing",
			m.after(call, ", "+m.text(call)+" != nil"))
	}
	if t := m.Info.TypeOf(call); second.Name == "err" && t != nil && !isError(t) && !isEmptyInterface(t) {
		return m.fix("the function returns no error", m.after(call, ", error(nil)"))
	}
	if m.parts(as, call) {
		return true
	}
	return second.Name == "_" && m.fix("the function returns one value",
		edit{m.offset(as.Lhs[0].End()), m.offset(second.End()), ""})
}

// cutParts receives all results of strings.Cut: the second of two variables is the part behind the separator or, by its
// name, whether there is one. One with another name that is a condition may be either.
func (m *fixer) cutParts(as *ast.AssignStmt) bool {
	const note = "strings.Cut says whether it found the separator, too"
	second, ok := as.Lhs[1].(*ast.Ident)
	if !ok {
		return false
	}
	if slices.Contains([]string{"ok", "found", "exists"}, second.Name) {
		return m.fix(note, m.after(as.Lhs[0], ", _"))
	}
	for _, id := range m.usesOf(m.variable(second)) {
		switch p := m.parents[id].(type) {
		case *ast.IfStmt, *ast.UnaryExpr:
			return false
		case *ast.BinaryExpr:
			if p.Op == token.LAND || p.Op == token.LOR {
				return false
			}
		}
	}
	return m.fix(note, m.after(as.Lhs[1], ", _"))
}

// checkError receives the error of a call and returns it.
func (m *fixer) checkError(as *ast.AssignStmt) bool {
	if m.readIf(as) {
		return true
	}
	// The check needs a statement of its own, which only fits into a list of statements.
	switch m.parents[as].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
	default:
		return false
	}
	name := m.unused("err", "failure")
	text := m.failing(as, name)
	if c, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr); ok && text != "" && m.readsArgument(c) {
		text = m.failing(as, `recurgent.Fail("invalid_input", `+name+".Error())")
	}
	if edits := m.nilForFailure(as, name); edits != nil {
		return m.fix("the error of "+clip(m.text(as.Rhs[0]))+" says that it failed", edits...)
	}
	if text == "" || as.Tok != token.DEFINE && as.Tok != token.ASSIGN {
		return false
	}
	// An assignment to a declared variable needs a new variable for the value, because := would declare the target
	// again.
	if value := m.unused("value", "result"); as.Tok == token.ASSIGN && m.isPlain(as.Lhs[0]) && len(m.edits) == 0 &&
		!m.jumps() && !isName(as.Lhs[0], "_") {
		return m.useHost("the error of "+clip(m.text(as.Rhs[0]))+" is returned",
			m.before(as, value+", "+name+" := "+m.text(as.Rhs[0])+"\nif "+name+" != nil {\n"+text+"\n}\n"),
			m.replace(as.Rhs[0], value))
	}
	id, isIdent := as.Lhs[0].(*ast.Ident)
	if as.Tok == token.DEFINE && isIdent {
		// The program discards the value, so it may discard the error on purpose too.
		if id.Name == "_" {
			return false
		}
		return m.useHost("the error of "+clip(m.text(as.Rhs[0]))+" is returned", m.after(as.Lhs[0], ", "+name),
			m.after(as, "\nif "+name+" != nil {\n"+text+"\n}"))
	}
	return false
}

// readsArgument reports whether Run parses a number or a time from an argument. If that fails, the argument is wrong.
func (m *fixer) readsArgument(c *ast.CallExpr) bool {
	_, run := m.resultsOf(c)
	return run && reading().MatchString(m.callee(c)) && slices.ContainsFunc(c.Args,
		func(a ast.Expr) bool { return m.origin(m.asserted(a)) == ofArguments })
}

// asserted returns the operand of a type assertion, without conversions by the host package, or x itself.
func (m *fixer) asserted(x ast.Expr) ast.Expr {
	if a, ok := ast.Unparen(x).(*ast.TypeAssertExpr); ok {
		return m.unhelped(a.X)
	}
	return x
}

// noNewVariables replaces := by = if all variables are declared already.
func (m *fixer) noNewVariables(e types.Error, path []ast.Node, _ []string) bool {
	as, ok := nearest(path, func(a *ast.AssignStmt) bool { return a.Tok == token.DEFINE })
	at := 0
	if ok {
		at = m.offset(as.TokPos)
	}
	return ok && m.fix("the variables are declared already", edit{at, at + 2, "="})
}

// parts repairs key, value := strings.Split(s, "="). The list must have exactly two parts.
func (m *fixer) parts(as *ast.AssignStmt, call *ast.CallExpr) bool {
	t := m.Info.TypeOf(call)
	if t == nil || !elemIs(t, types.String) || !m.inBlock(as) || len(as.Lhs) != 2 || len(m.edits) > 0 || m.jumps() ||
		m.callee(call) != "strings.Split" && m.callee(call) != "strings.SplitN" || isName(as.Lhs[0], "_") ||
		isName(as.Lhs[1], "_") {
		return false
	}
	// Another number of parts is an error, where the program as written would not compile.
	fails := m.failing(as, `errors.New("two parts are needed")`)
	if fails == "" {
		return false
	}
	list := m.unused("parts", "pieces")
	return m.fix("a list is taken apart by its places", m.before(as,
		list+" := "+m.text(call)+"\nif len("+list+") != 2 {\n"+fails+"\n}\n"), m.replace(call, list+"[0], "+list+"[1]"))
}
