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

// refusals changes an error that Run or a helper returns if an argument has the wrong type to invalid_input. Otherwise
// it would count as a failure of the program.
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

// unhelped returns the value that a helper of the host package converts, or x itself.
func (m *fixer) unhelped(x ast.Expr) ast.Expr {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && m.helped(x) {
		return c.Args[0]
	}
	return x
}

// refusal returns the block that runs if an assertion does not hold, or nil. Its condition is in the same statement or
// the next.
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

// refused returns the block of an if whose condition concerns only the assertion: whether it holds, and the value.
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

// refusedInput replaces errors.New and fmt.Errorf in a block that only returns an error by a failure of type
// invalid_input.
func (m *fixer) refusedInput(b *ast.BlockStmt) {
	// A block that does more may need its error for something else.
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

// typed matches a message that starts with an error type or consists of one.
var typed = lazy.Regexp(`^(invalid_input|not_found|fetch_failed|parse_failed|low_utility|wrong_tool_boundary|unsupported_capability)(?:: ?(.+))?$`)

// namedType replaces errors.New("invalid_input: ...") that Run returns by a failure of that type. It does the same for
// a string "invalid_input: ..." returned as the value.
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

// messageOf returns the first argument of a call, or the expression itself.
func messageOf(x ast.Expr) ast.Expr {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && len(c.Args) > 0 {
		return c.Args[0]
	}
	return x
}

// typedFailure returns a failure of the type that a message starts with, or "". The message is the argument of a call
// of plain, or the expression itself if plain is "", or the format of a call of the function format.
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
