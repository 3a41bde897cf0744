package fix

import (
	"go/ast"
	"slices"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

var printers = lazy.Regexp(`\b(?:fmt\.(?:Print|Println|Printf|Fprint\w*)|println|print)\(`)

// printedLast fixes a Run that ends by printing its value in the place of returning it: it prints once, and returns nothing but failures.
func (m *fixer) printedLast(body *ast.BlockStmt) bool {
	f, ok := m.parents[body].(*ast.FuncDecl)
	if !ok || f.Name.Name != "Run" || len(body.List) == 0 || len(printers().FindAllString(m.src, 2)) != 1 || uses(m.file, "Context") || m.answers(body) {
		return false
	}
	last, ok := body.List[len(body.List)-1].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := last.X.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || !slices.Contains([]string{"fmt.Println", "fmt.Print", "println", "print"}, m.text(call.Fun)) || m.Info.Types[call.Args[0]].Value != nil {
		return false
	}
	return m.fix("the value is returned, not printed", m.replace(last, "return "+m.text(call.Args[0])+", nil"))
}

// answers reports whether a body returns anything but failures.
func (m *fixer) answers(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		found = found || ok && (len(r.Results) != 2 || !isName(r.Results[0], "nil") || isName(r.Results[1], "nil"))
		_, lit := n.(*ast.FuncLit)
		return !found && !lit
	})
	return found
}
