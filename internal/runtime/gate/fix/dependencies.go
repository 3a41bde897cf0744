package fix

import (
	"go/ast"
	"go/types"
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

// contextPassed leaves out a context without an end that the program makes itself and passes to a function that takes
// none.
func (m *fixer) contextPassed(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool {
		return len(c.Args) > 0 && m.isContextType(m.Info.TypeOf(c.Args[0]))
	})
	if !ok || c.Ellipsis.IsValid() || !m.endless(c.Args[0]) {
		return false
	}
	sig, ok := m.Info.TypeOf(c.Fun).(*types.Signature)
	if !ok || sig.Params().Len() > 0 && m.isContextType(sig.Params().At(0).Type()) {
		return false
	}
	to := m.offset(c.Args[0].End())
	if len(c.Args) > 1 {
		to = m.offset(c.Args[1].Pos())
	}
	return m.fix(m.text(c.Fun)+" takes no context", edit{m.offset(c.Args[0].Pos()), to, ""})
}

// isContextType reports whether a type, which may be nil, is context.Context.
func (m *fixer) isContextType(t types.Type) bool {
	return t != nil && types.TypeString(t, nil) == "context.Context"
}

// endless reports whether an expression is context.Background() or context.TODO(), directly or through a variable.
func (m *fixer) endless(x ast.Expr) bool {
	if v := m.variable(x); v != nil {
		def, value := m.definition(v)
		if value == nil || !m.setOnce(v, def) {
			return false
		}
		x = value
	}
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && (m.callee(c) == "context.Background" || m.callee(c) == "context.TODO")
}
