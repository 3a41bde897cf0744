package fix

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// refusals gives an error that Run or a helper returns where an argument is not of the type that is asserted the type invalid_input: without one it would count
// as a failure of the program.
func (m *fixer) refusals() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 2 {
			m.namedType(r)
		}
		a, ok := n.(*ast.TypeAssertExpr)
		if !ok || m.checker.Spent() || a.Type == nil || !m.commaOK(a) || m.origin(m.unhelped(a.X)) != ofArguments {
			return true
		}
		if body := m.refusal(a); body != nil {
			m.refusedInput(body)
		}
		return true
	})
}

// unhelped is the value that a helper of the host package converts, or the expression itself.
func (m *fixer) unhelped(x ast.Expr) ast.Expr {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && m.helped(x) {
		return c.Args[0]
	}
	return x
}

// refusal is the block that runs where an assertion does not hold: that of the next statement, or of the one that asserts.
func (m *fixer) refusal(a *ast.TypeAssertExpr) *ast.BlockStmt {
	as, ok := m.parents[a].(*ast.AssignStmt)
	if !ok {
		return nil
	}
	name, ok := as.Lhs[1].(*ast.Ident)
	if !ok || name.Name == "_" {
		return nil
	}
	if s, ok := m.parents[as].(*ast.IfStmt); ok && s.Init == as {
		return m.refused(s, as)
	}
	list := m.siblings(as)
	if i := slices.Index(list, ast.Stmt(as)) + 1; i < len(list) {
		if s, ok := list[i].(*ast.IfStmt); ok && s.Init == nil {
			return m.refused(s, as)
		}
	}
	return nil
}

// refused is the block of an if that asks for nothing but what a statement asserts: whether it holds, and what the value is then.
func (m *fixer) refused(s *ast.IfStmt, as *ast.AssignStmt) *ast.BlockStmt {
	ok, value := as.Lhs[1].(*ast.Ident), m.variable(as.Lhs[0])
	var about func(c ast.Expr) bool
	about = func(c ast.Expr) bool {
		if b, isOr := ast.Unparen(c).(*ast.BinaryExpr); isOr && b.Op == token.LOR {
			return about(b.X) && about(b.Y)
		}
		return denies(c, ok.Name) || value != nil && mentions(m, c, value)
	}
	if !denies(s.Cond, ok.Name) || !about(s.Cond) {
		return nil
	}
	return s.Body
}

// refusedInput writes errors.New and fmt.Errorf in what ends a block as a failure of the type invalid_input.
func (m *fixer) refusedInput(b *ast.BlockStmt) {
	if len(b.List) != 1 {
		return
	}
	r, ok := b.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) < 2 {
		return
	}
	c, ok := ast.Unparen(r.Results[len(r.Results)-1]).(*ast.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	list := m.src[m.offset(c.Args[0].Pos()):m.offset(c.Args[len(c.Args)-1].End())]
	format := valueOf(m.Info.Types[c.Args[0]])
	switch fun := m.callee(c); {
	case fun == "errors.New":
	case fun == "fmt.Errorf" && format.Kind() == constant.String && !strings.Contains(constant.StringVal(format), "%w"):
		list = "fmt.Sprintf(" + list + ")"
	default:
		return
	}
	m.useHost("a wrong argument is invalid_input", m.replace(c, `recurgent.Fail("invalid_input", `+list+")"))
}

// typed matches a message that begins with the type of its error, or is nothing else.
var typed = lazy.Regexp(`^(invalid_input|not_found|fetch_failed|parse_failed|low_utility|wrong_tool_boundary|unsupported_capability)(?:: ?(.+))?$`)

// namedType writes errors.New("invalid_input: ...") that Run returns as a failure of that type, and so the text "invalid_input: ..." that it returns as its value.
func (m *fixer) namedType(r *ast.ReturnStmt) {
	const note = "an error has its type beside the message"
	if _, run := m.resultsOf(r); !run {
		return
	}
	if fail := m.typedFailure(r.Results[1], "errors.New", "fmt.Errorf"); fail != "" {
		m.useHost(note, m.replace(r.Results[1], fail))
		return
	}
	fail := m.typedFailure(r.Results[0], "", "fmt.Sprintf")
	if isName(r.Results[1], "nil") && strings.Contains(fail, ", ") &&
		typed().FindStringSubmatch(constantText(messageOf(r.Results[0])))[2] != "" {
		m.useHost(note, edit{m.offset(r.Results[0].Pos()), m.offset(r.Results[1].End()), "nil, " + fail})
	}
}

// messageOf is the first argument of a call, or the expression itself.
func messageOf(x ast.Expr) ast.Expr {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && len(c.Args) > 0 {
		return c.Args[0]
	}
	return x
}

// typedFailure is a failure of the type with which a text begins: the text itself, where plain is "", that of a call of plain, or of one that formats it; "" for others.
func (m *fixer) typedFailure(x ast.Expr, plain, format string) string {
	g := typed().FindStringSubmatch(constantText(messageOf(x)))
	if g == nil {
		return ""
	}
	message, by := g[2], ""
	if message == "" {
		message = strings.ReplaceAll(g[1], "_", " ")
	}
	c, called := ast.Unparen(x).(*ast.CallExpr)
	if called {
		by = m.callee(c)
	}
	switch {
	case by == format && called && (len(c.Args) > 1 || strings.Contains(message, "%")):
		if len(c.Args) < 2 || c.Ellipsis.IsValid() || strings.Contains(message, "%w") {
			return ""
		}
		return fmt.Sprintf("recurgent.Fail(%q, fmt.Sprintf(%q, %s))", g[1], message,
			m.src[m.offset(c.Args[1].Pos()):m.offset(c.Args[len(c.Args)-1].End())])
	case by == plain && called == (plain != ""), by == format && called:
		return fmt.Sprintf("recurgent.Fail(%q, %q)", g[1], message)
	}
	return ""
}
