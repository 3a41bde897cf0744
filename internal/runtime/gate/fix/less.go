package fix

import (
	"go/ast"
	"go/token"
	"strings"
)

// lessThan orders JSON values: numbers, or strings. Any other value ends the call.
const lessThan = `(a, b any) bool { // numbers by size, texts by their letters
	if x, ok := recurgent.As(a, int64(0)).(int64); ok {
		if y, ok := recurgent.As(b, int64(0)).(int64); ok {
			return x < y
		}
	}
	if x, ok := recurgent.As(a, 0.0).(float64); ok {
		return x < recurgent.Must(b, 0.0).(float64)
	}
	return recurgent.Must(a, "").(string) < recurgent.Must(b, "").(string)
}`

// ordered replaces a < b of two JSON values by a call of a function that orders them.
func (m *fixer) ordered(n *ast.BinaryExpr) bool {
	if !m.isPlain(n.X) || !m.isPlain(n.Y) {
		return false // evaluation order would change
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
	name, declared := m.helper("lessOfJSON", lessThan)
	edits := []edit{m.replace(n, not+name+"("+x+", "+y+")")}
	if !declared {
		if len(m.edits) > 0 {
			return false // another edit of this round may declare it
		}
		edits = append(edits, m.end("func "+name+lessThan))
	}
	return m.useHost("values of JSON have no < in Go: numbers and texts are compared", edits...)
}

// helper returns the name of a function that fixes add to the program, and whether the program has it already.
func (m *fixer) helper(like, text string) (name string, declared bool) {
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && strings.HasPrefix(f.Name.Name, like) && strings.HasSuffix(text, m.text(f.Body)[1:]) {
			return f.Name.Name, true
		}
	}
	return m.unused(like), false
}
