package diff

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
)

var update = flag.Bool("update", false, "write testdata/covered.txt anew")

// coveredFile lists what generated programs must contain, and how often at least.
const coveredFile = "testdata/covered.txt"

// checkCoverage fails where the counts lack something that the file lists. A floor is a quarter of what was counted when the file was
// written: a change of the generator that loses an operation, a function of a package or a form of a statement is found, one that only
// turns the dice is not.
func checkCoverage(t *testing.T, counts map[string]int) {
	t.Helper()
	if *update {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if floor := counts[name] / 4; floor > 0 {
				fmt.Fprintf(&b, "%d %s\n", floor, name)
			}
		}
		if err := os.WriteFile(coveredFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(coveredFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		floor, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if counts[name] < floor {
			t.Errorf("%s: %d times, want at least %d; where that is meant, run this test with -update", name, counts[name], floor)
		}
	}
}

// countForms adds what a program contains: its operations by kind of type, functions of packages, forms of syntax, and verbs of fmt.
func countForms(p generate.Program, counts map[string]int) error {
	for _, op := range p.Operations {
		counts["operation "+op]++
	}
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", p.Text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("seed %d: %w", p.Seed, err)
	}
	imported := map[string]bool{}
	for _, s := range f.Imports {
		path, _ := strconv.Unquote(s.Path.Value)
		imported[path[strings.LastIndexByte(path, '/')+1:]] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n != nil {
			counts["syntax "+form(n)]++
		}
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imported[x.Name] {
				counts["name "+x.Name+"."+n.Sel.Name]++
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains(builtins, id.Name) {
				counts["builtin "+id.Name]++
			}
		case *ast.BasicLit:
			for verb := range verbs(n.Value) {
				counts["verb "+verb]++
			}
		}
		return true
	})
	return nil
}

var builtins = []string{"append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len", "make", "max", "min", "new", "panic", "real", "recover"}

// form names a form of syntax by its node, and by its token where it has one.
func form(n ast.Node) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast.")
	given := func(what string, is bool) {
		if is {
			name += " " + what
		}
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		name += " " + n.Op.String()
	case *ast.UnaryExpr:
		name += " " + n.Op.String()
	case *ast.AssignStmt:
		name += " " + n.Tok.String()
		given("of several", len(n.Lhs) > 1)
		given("of one call", len(n.Lhs) > 1 && len(n.Rhs) == 1)
	case *ast.IncDecStmt:
		name += " " + n.Tok.String()
	case *ast.GenDecl:
		name += " " + n.Tok.String()
	case *ast.BranchStmt:
		name += " " + n.Tok.String()
		given("with label", n.Label != nil)
	case *ast.RangeStmt:
		name += " " + n.Tok.String()
		given("with key", n.Key != nil)
		given("with value", n.Value != nil)
	case *ast.ForStmt:
		given("with init", n.Init != nil)
		given("with condition", n.Cond != nil)
	case *ast.FuncDecl:
		given("of type", n.Recv != nil)
		given("with type parameters", n.Type.TypeParams != nil)
	case *ast.CallExpr:
		given("with dots", n.Ellipsis.IsValid())
	case *ast.SliceExpr:
		given("of three", n.Slice3)
	case *ast.ChanType:
		name += fmt.Sprint(" ", n.Dir)
	case *ast.BasicLit:
		name += " " + n.Kind.String()
	case *ast.CaseClause:
		given("default", n.List == nil)
	case *ast.CommClause:
		given("default", n.Comm == nil)
	}
	return name
}

// verbs returns the verbs in a literal.
func verbs(literal string) map[string]bool {
	out := map[string]bool{}
	for _, part := range strings.Split(literal, "%")[1:] {
		if i := strings.IndexFunc(part, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }); i >= 0 && i <= 5 {
			out["%"+part[:i+1]] = true
		}
	}
	return out
}
