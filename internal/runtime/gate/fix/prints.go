package fix

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// prints returns the one value that a program prints right before it returns nil, where that is all that it ever returns.
func (m *fixer) prints() {
	run := m.function("Run")
	if run == nil || run.Body == nil || m.printing() != 1 || uses(m.file, "Context") {
		return
	}
	var edits []edit
	answers := 0
	ast.Inspect(run.Body, func(n ast.Node) bool {
		if _, lit := n.(*ast.FuncLit); lit {
			return false
		}
		r, ok := n.(*ast.ReturnStmt)
		if !ok || len(r.Results) == 2 && isName(r.Results[0], "nil") && !isName(r.Results[1], "nil") {
			return true
		}
		answers++
		list := m.siblings(r)
		i := slices.Index(list, ast.Stmt(r))
		if _, whole := m.parents[m.parents[r]].(*ast.FuncDecl); !whole || i < 1 || len(r.Results) != 2 || !isName(r.Results[0], "nil") {
			return true
		}
		if value := m.printedBy(list[i-1]); value != "" {
			edits = append(edits, m.line(list[i-1]), m.replace(r.Results[0], value))
		}
		return true
	})
	if answers == 1 && len(edits) > 0 {
		m.fix("the value is returned, not printed", edits...)
	}
}

// printing returns how often the program prints: what it prints several times, or in a loop, may not be its answer.
func (m *fixer) printing() (times int) {
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			ast.Inspect(n, func(in ast.Node) bool {
				if c, ok := in.(*ast.CallExpr); ok && printers.MatchString(m.text(c.Fun)) {
					times += 2
				}
				return true
			})
			return false
		case *ast.CallExpr:
			if printers.MatchString(m.text(n.Fun)) {
				times++
			}
		}
		return true
	})
	return times
}

var printers = regexp.MustCompile(`^(?:fmt\.(?:Print|Println|Printf|Fprint\w*)|println|print)$`)

// printedBy returns the one value that a statement prints, which is no constant; "" for another statement.
func (m *fixer) printedBy(st ast.Stmt) string {
	x, ok := st.(*ast.ExprStmt)
	if !ok {
		return ""
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	var value ast.Expr
	switch name := m.text(call.Fun); {
	case slices.Contains([]string{"fmt.Println", "fmt.Print", "println", "print"}, name) && len(call.Args) == 1:
		value = call.Args[0]
	case name == "fmt.Printf" && len(call.Args) == 2 && slices.Contains([]string{"%v", "%d", "%s", "%t"}, strings.TrimSuffix(constantText(call.Args[0]), "\n")):
		if value = call.Args[1]; strings.HasPrefix(constantText(call.Args[0]), "%d") != isWhole(m.Info.TypeOf(value)) && !strings.HasPrefix(constantText(call.Args[0]), "%v") {
			return ""
		}
	default:
		return ""
	}
	if m.Info.Types[value].Value != nil || m.Info.TypeOf(value) == nil {
		return ""
	}
	return m.text(value)
}

// printedLast fixes a Run that ends by printing its value in the place of returning it, as the one answer that it has.
func (m *fixer) printedLast(body *ast.BlockStmt) bool {
	f, ok := m.parents[body].(*ast.FuncDecl)
	if !ok || f.Name.Name != "Run" || len(body.List) == 0 || m.printing() != 1 || uses(m.file, "Context") || m.answers(body) {
		return false
	}
	last := body.List[len(body.List)-1]
	value := m.printedBy(last)
	return value != "" && m.fix("the value is returned, not printed", m.replace(last, "return "+value+", nil"))
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
