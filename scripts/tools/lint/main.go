// Command lint is a tool of `go vet -vettool` that runs the checks of vet itself, staticcheck, errcheck and
// ineffassign. The go command then gives each package to it once, several at a time, and keeps the results in its
// cache: a second run over unchanged packages takes seconds.
//
// A finding that is wrong says so in its place, as staticcheck has it: //lint:ignore CHECK reason, or
// //lint:file-ignore for a whole file.
package main

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"

	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/staticcheck/sa1019"
	"honnef.co/go/tools/unused"
)

func main() {
	if dependency(os.Args[len(os.Args)-1]) {
		// The library would run everything that uses facts, which takes four times as long as the rest of the checks.
		// the last one for its flag
		unitchecker.Main(printf.Analyzer, lostcancel.Analyzer, sa1019.SCAnalyzer.Analyzer,
			filtered(errcheck.Analyzer, ofOurs))
	}
	var all []*analysis.Analyzer
	for _, a := range slices.Concat(staticcheck.Analyzers, simple.Analyzers) {
		all = append(all, filtered(a.Analyzer, everywhere))
	}
	all = append(all, filtered(unusedAnalyzer(unused.Analyzer), everywhere), filtered(ineffassign.Analyzer, everywhere),
		filtered(errcheck.Analyzer, ofOurs))
	unitchecker.Main(append(all, vet.Suite...)...)
}

const module = "github.com/recurgentd/recurgentd"

// dependency reports whether the file asks for a package of others, for what it means to those that import it:
// deprecated names, functions that print as Printf does, functions that do not return.
func dependency(file string) bool {
	var asked unitchecker.Config
	data, err := os.ReadFile(file)
	return err == nil && json.Unmarshal(data, &asked) == nil && asked.VetxOnly &&
		!strings.HasPrefix(asked.ImportPath, module)
}

func everywhere(string) bool { return true }

// ofOurs leaves out tests and what is taken from others.
func ofOurs(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/test/") &&
		!strings.Contains(file, "/html/internal/") && !strings.Contains(file, "/clients/")
}

// filtered is the analyzer without the findings in other files than those, and without those that the source says to
// ignore.
func filtered(a *analysis.Analyzer, in func(file string) bool) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		ours, report := *pass, pass.Report
		ours.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.Position(d.Pos)
			if in(at.Filename) && !ignored(pass, a.Name, d.Pos, at.Line) {
				d.Message += " (" + a.Name + ")"
				report(d)
			}
		}
		return a.Run(&ours)
	}
	return &out
}

// ignored reports whether a comment before the line, in it or for the file says that the check is wrong there.
func ignored(pass *analysis.Pass, check string, pos token.Pos, line int) bool {
	i := slices.IndexFunc(pass.Files, func(f *ast.File) bool { return f.FileStart <= pos && pos <= f.FileEnd })
	if i < 0 {
		return false
	}
	for _, group := range pass.Files[i].Comments {
		for _, c := range group.List {
			words := strings.Fields(c.Text)
			if len(words) < 3 || !slices.Contains(strings.Split(words[1], ","), check) {
				continue
			}
			of := pass.Fset.Position(c.Pos()).Line
			if words[0] == "//lint:file-ignore" || words[0] == "//lint:ignore" && (of == line || of == line-1) {
				return true
			}
		}
	}
	return false
}

// unusedAnalyzer reports what the other found. The go command analyses a package together with its tests, so what only
// these use is used.
func unusedAnalyzer(found *lint.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{Name: "U1000", Doc: "unused code", Requires: []*analysis.Analyzer{found.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			result, _ := pass.ResultOf[found.Analyzer].(unused.Result)
			for _, o := range result.Unused {
				pass.Report(analysis.Diagnostic{Pos: posOf(pass, o.Position),
					Message: o.Kind + " " + o.Name + " is unused"})
			}
			return nil, nil
		}}
}

// posOf finds a position by its file and line.
func posOf(pass *analysis.Pass, at token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == at.Filename {
			return file.LineStart(at.Line) + token.Pos(at.Column-1)
		}
	}
	return token.NoPos
}
