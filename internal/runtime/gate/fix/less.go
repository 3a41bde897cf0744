package fix

import (
	"go/ast"
	"go/token"
	"strings"
)

// lessThan is the order of values of JSON: of numbers, or of texts. Of others it ends the call.
const lessThan = `(a, b any) bool { // numbers by size, texts by their letters
	if x, ok := recurgent.As(a, 0.0).(float64); ok {
		return x < recurgent.Must(b, 0.0).(float64)
	}
	return recurgent.Must(a, "").(string) < recurgent.Must(b, "").(string)
}`

// ordered writes a < b of two values of JSON as a function that knows the order of those that have one.
func (m *fixer) ordered(n *ast.BinaryExpr) bool {
	if !m.isPlain(n.X) || !m.isPlain(n.Y) {
		return false // their order would be another one
	}
	x, y, not := m.text(n.X), m.text(n.Y), ""
	switch n.Op {
	case token.LSS:
	case token.GTR:
		x, y = y, x
	case token.LEQ:
		x, y, not = y, x, "!"
	case token.GEQ:
		not = "!"
	default:
		return false
	}
	name, declared := m.lessName()
	edits := []edit{m.replace(n, not+name+"("+x+", "+y+")")}
	if !declared {
		if len(m.edits) > 0 {
			return false // which may declare it, too
		}
		edits = append(edits, m.end("func "+name+lessThan))
	}
	return m.useHost("values of JSON have no < in Go: numbers and texts are compared", edits...)
}

// lessName is the name of the function that compares, and whether the text has it.
func (m *fixer) lessName() (name string, declared bool) {
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && strings.HasPrefix(f.Name.Name, "lessOfJSON") &&
			strings.HasSuffix(lessThan, m.text(f.Body)[1:]) {
			return f.Name.Name, true
		}
	}
	return m.unused("lessOfJSON"), false
}
