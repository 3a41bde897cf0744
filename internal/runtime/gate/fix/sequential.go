package fix

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// sequential removes go from the go statements of a program without channels and conditions. Running one step after the
// other is one of the orders that they allow. Locks and wait groups stay: nothing waits for them then.
func (m *fixer) sequential() {
	var edits []edit
	possible := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		// Goroutines that communicate may depend on running at the same time.
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			possible = false
		case *ast.UnaryExpr:
			possible = possible && n.Op != token.ARROW
		case *ast.SelectorExpr:
			possible = possible && !slices.Contains([]string{"Cond", "NewCond"}, n.Sel.Name)
		case *ast.GoStmt:
			edits = append(edits, edit{m.offset(n.Pos()), m.offset(n.Call.Pos()), ""})
		}
		return possible
	})
	if possible && len(edits) > 0 {
		m.fix("a program has one goroutine: one step is made after the other", edits...)
	}
}

// outputs replaces writes to the standard outputs of the process by prints, and an exit of the process by a panic.
func (m *fixer) outputs(name string) {
	var edits []edit
	possible := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !isName(s.X, name) || !possible {
			return possible
		}
		c, called := m.parents[s].(*ast.CallExpr)
		switch {
		case called && s.Sel.Name == "Exit" && c.Fun == ast.Expr(s):
			edits = append(edits, m.replace(c, `panic("the program ended itself")`))
		case called && (s.Sel.Name == "Stderr" || s.Sel.Name == "Stdout") && len(c.Args) > 1 &&
			c.Args[0] == ast.Expr(s) && strings.HasPrefix(m.text(c.Fun), "fmt.Fprint"):
			edits = append(edits, m.replace(c.Fun, "fmt."+printName(m.text(c.Fun))),
				edit{m.offset(s.Pos()), m.offset(c.Args[1].Pos()), ""})
		default:
			possible = false
		}
		return possible
	})
	if possible && !uses(m.file, "recover") {
		m.fix("there is no process", edits...)
	}
}

// printName returns the print function that corresponds to a function with a writer, such as Println for fmt.Fprintln.
func printName(fun string) string { return "P" + strings.TrimPrefix(fun, "fmt.Fp") }
