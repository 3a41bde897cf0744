package fix

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// wrapped is added to a program that wraps errors, where one that is nil stays nil.
const wrapped = `func wrapped(err error, message string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", message, err)
}`

// wrapping replaces the functions of github.com/pkg/errors by those of Go.
func (m *fixer) wrapping(spec *ast.ImportSpec, name string) {
	edits := []edit{m.replace(spec.Path, `"errors"`)}
	good, helps := true, false
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !isName(s.X, name) {
			return true
		}
		c, called := m.parents[s].(*ast.CallExpr)
		switch s.Sel.Name {
		case "New", "Is", "As", "Unwrap":
		case "Errorf":
			edits = append(edits, m.replace(s, "fmt.Errorf"))
		case "WithStack":
			edits = append(edits, m.replace(s, ""))
		case "Wrap", "WithMessage":
			helps = true
			edits = append(edits, m.replace(s, "wrapped"))
		case "Wrapf", "WithMessagef":
			if !called || len(c.Args) < 2 {
				good = false
				break
			}
			helps = true
			edits = append(edits, m.replace(s, "wrapped"), m.before(c.Args[1], "fmt.Sprintf("), m.after(c, ")"))
		default:
			good = false
		}
		return good
	})
	if helps {
		if m.declares("wrapped") {
			return
		}
		edits = append(edits, m.end(wrapped))
	}
	if good && spec.Name == nil {
		m.fix("errors are wrapped by fmt.Errorf", edits...)
	}
}

// contexts leaves out a context that the program makes itself and only passes on: nothing takes one.
func (m *fixer) contexts(name string) {
	made := map[string]bool{} // variables that hold a context
	var edits []edit
	ast.Inspect(m.file, func(n ast.Node) bool {
		if as, ok := n.(*ast.AssignStmt); ok && as.Tok == token.DEFINE && len(as.Lhs) == 1 &&
			emptyContext(as.Rhs[0], name) {
			made[m.text(as.Lhs[0])] = true
			edits = append(edits, m.line(as))
		}
		return true
	})
	good := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok || !good {
			return good
		}
		if id, named := x.(*ast.Ident); !emptyContext(x, name) && !(named && made[id.Name]) {
			good = !named || id.Name != name || m.ofSelector(id, "Background", "TODO")
			return good
		}
		switch p := m.parents[x].(type) {
		case *ast.AssignStmt:
		case *ast.SelectorExpr:
			good = p.Sel == x
		case *ast.CallExpr:
			good = m.passed(p, x)
			edits = append(edits, m.withoutFirst(p))
		default:
			good = false
		}
		return false
	})
	if good && len(edits) > 0 {
		m.fix("a run has no context of that kind", edits...)
	}
}

// emptyContext reports whether an expression is context.Background() or context.TODO().
func emptyContext(x ast.Expr, name string) bool {
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && isName(s.X, name) && (s.Sel.Name == "Background" || s.Sel.Name == "TODO")
}

// ofSelector reports whether a name stands before one of these or is a name that is selected or a key.
func (m *fixer) ofSelector(id *ast.Ident, names ...string) bool {
	s, ok := m.parents[id].(*ast.SelectorExpr)
	return ok && (s.X != ast.Expr(id) || slices.Contains(names, s.Sel.Name))
}

// passed reports whether an expression is the first argument of a method or a function of a package.
func (m *fixer) passed(c *ast.CallExpr, x ast.Expr) bool {
	return c.Fun != x && c.Args[0] == x && strings.Contains(m.text(c.Fun), ".")
}

// withoutFirst leaves out the first argument of a call.
func (m *fixer) withoutFirst(c *ast.CallExpr) edit {
	if len(c.Args) == 0 {
		return edit{}
	}
	to := m.offset(c.Args[0].End())
	if len(c.Args) > 1 {
		to = m.offset(c.Args[1].Pos())
	}
	return edit{m.offset(c.Args[0].Pos()), to, ""}
}
