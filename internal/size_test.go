package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of what a reader has to hold in mind at once, tests aside.
const (
	maxFileLines     = 600
	maxFunctionLines = 70
	maxParameters    = 5
	maxColumns       = 120 // a tab has four
)

// large names what is over a limit all the same, by file or "file function", with the reason.
var large = map[string]string{
	"internal/api/operations.go routes":                  "the one list of all routes",
	"internal/api/problemcodes.go clientFaults":          "one table",
	"internal/runtime/attempt/host.go Refuse":            "the method of sandbox.Host that mirrors Call",
	"internal/runtime/gate/diff/compiled/host.go Refuse": "the same",
}

// Files and functions stay small, and a function with many parameters takes a struct. An outdated exception is an
// error, too.
func TestNothingIsLarge(t *testing.T) {
	t.Parallel()
	met := map[string]bool{}
	report := func(name, format string, args ...any) {
		met[name] = true
		if large[name] == "" {
			t.Errorf(name+": "+format, args...)
		}
	}
	for _, top := range []string{"cmd", "internal", "api", "bench"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")) {
				return filepath.SkipDir // packages named so hold tests that others run
			}
			if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
				checkSize(t, file, report)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for name := range large {
		if !met[name] {
			t.Errorf("%s is within the limits; drop its exception", name)
		}
	}
}

func checkSize(t *testing.T, file string, report func(name, format string, args ...any)) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, data, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	if ast.IsGenerated(parsed) {
		return
	}
	name := strings.TrimPrefix(filepath.ToSlash(file), "../")
	if n := bytes.Count(data, []byte("\n")); n > maxFileLines {
		report(name, "%d lines, at most %d are wanted", n, maxFileLines)
	}
	checkColumns(name, string(data), textLines(files, parsed), report)
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		function := name + " " + fn.Name.Name
		if n := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
			report(function, "%d lines, at most %d are wanted", n, maxFunctionLines)
		}
		if n := fn.Type.Params.NumFields(); n > maxParameters {
			report(function, "%d parameters, at most %d are wanted", n, maxParameters)
		}
	}
}

// textLines are the lines on which a string literal stands.
func textLines(files *token.FileSet, parsed *ast.File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			for l := files.Position(text.Pos()).Line; l <= files.Position(text.End()).Line; l++ {
				lines[l] = true
			}
		}
		return true
	})
	return lines
}

// checkColumns reports long lines, except those with a string literal and directives, which cannot be broken.
func checkColumns(name, text string, literals map[int]bool, report func(name, format string, args ...any)) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")
		code := strings.TrimLeft(line, " ")
		if utf8.RuneCountInString(line) > maxColumns && !literals[n] && !strings.HasPrefix(code, "//go:") &&
			!strings.HasPrefix(code, "//lint:") {
			report(name, "line %d has more than %d columns", n, maxColumns)
		}
	}
}
