package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// mayWait lists the test files that sleep by the clock on the wall, or compare it, and why nothing else will do.
var mayWait = map[string]string{
	"internal/runtime/sandbox/native_test.go": "programs that hang in a runner until it is killed",
	"internal/runtime/sandbox/script_test.go": "programs that hang in a runner until it is killed",
	"internal/runtime/sandbox/fault_test.go":  "the deadline of a real process passes while it waits for the host",
	"internal/store/disk/bench_test.go":       "a disk whose fsync takes its time, for a benchmark",
}

// Tests wait for events, and keep time in the bubbles of testing/synctest: neither a sleep nor a measured duration
// decides on a loaded machine.
func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	waits := map[string]bool{}
	for _, top := range []string{"api", "bench", "cmd", "deploy", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			for _, where := range waitsIn(t, path) {
				name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
				waits[name] = true
				if mayWait[name] == "" {
					t.Errorf("%s:%s", name, where)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range mayWait {
		if !waits[name] {
			t.Errorf("%s does not wait any more: strike it from the list", name)
		}
	}
}

// waitsIn lists where a file's tests sleep or compare measured durations outside of a bubble. In a file with bubbles,
// functions that are no tests are taken for parts of them.
func waitsIn(t *testing.T, path string) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	bubbles := false
	for _, spec := range f.Imports {
		bubbles = bubbles || spec.Path.Value == `"testing/synctest"`
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && bubbles && (!strings.HasPrefix(fn.Name.Name, "Test") || inBubble(fn)) {
			continue
		}
		measured := map[string]bool{} // variables that hold a measured duration
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if id, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Rhs) == 1 && calls(n.Rhs[0], "time", "Since") {
					measured[id.Name] = true
				}
			case *ast.CallExpr:
				if calls(n, "time", "Sleep") {
					out = append(out, fmt.Sprintf("%d: a test sleeps", fset.Position(n.Pos()).Line))
				}
			case *ast.BinaryExpr:
				if ordering(n.Op) && (isMeasured(n.X, measured) || isMeasured(n.Y, measured)) {
					out = append(out, fmt.Sprintf("%d: a test asserts a duration", fset.Position(n.Pos()).Line))
				}
			}
			return true
		})
	}
	return out
}

func inBubble(fn *ast.FuncDecl) (in bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		in = in || ok && calls(call, "synctest", "Test")
		return !in
	})
	return in
}

func calls(e ast.Expr, pkg, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

func ordering(op token.Token) bool {
	return op == token.LSS || op == token.LEQ || op == token.GTR || op == token.GEQ
}

func isMeasured(e ast.Expr, measured map[string]bool) bool {
	id, ok := e.(*ast.Ident)
	return ok && measured[id.Name] || calls(e, "time", "Since")
}
