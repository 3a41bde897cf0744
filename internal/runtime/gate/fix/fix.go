// Package fix repairs the text of programs as small models write them: what is wrong and can mean one thing only gets the form that the gate takes.
// What may mean several things stays as it is, for the gate to name. A program that compiles is changed where what it says fails for every input, or shows
// nothing: it asserts decoded JSON to be what that never is, as in call.Arg(0, "n").(int), returns fields that JSON does not show, or prints its value alone;
// and where it opens a file that it reads as text alone.
//
// It works on text and syntax trees alone, before any engine, and parses nothing but through the Checker, which bounds what is hostile.
package fix

import (
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Checker parses and type-checks programs against the allowed packages.
type Checker interface {
	// Parse refuses what is too large or nested too deeply. With an error of syntax there may be a file all the same.
	Parse(source string) (*token.FileSet, *ast.File, error)
	Check(fset *token.FileSet, file *ast.File) Checked
	// Package returns the one allowed package of that name that has all the names; "" when there is none or more.
	Package(name string, has map[string]bool) string
	// Spent reports whether no more rounds are to be made.
	Spent() bool
	// Names returns the exported names of an allowed package, and false for another path.
	Names(path string) ([]string, bool)
}

// Checked is what a type check found.
type Checked struct {
	Pkg    *types.Package
	Info   *types.Info
	Errors []types.Error // without those of unused variables
}

// Bounds of fixing.
const (
	maxRounds = 40
	maxNotes  = 32
	maxGrowth = 16 << 10
)

// Text returns the fixed text, formatted, and what was fixed in it: without fixes it is the text as it was. Faults are what is wrong in it though it compiles.
func Text(source string, t report.Terms, c Checker) report.Fixed {
	m := &fixer{terms: t, checker: c, src: source}
	seen := map[string]bool{}
	for range maxRounds {
		if seen[m.src] || len(m.src) > len(source)+maxGrowth || c.Spent() {
			break
		}
		seen[m.src] = true
		m.edits = nil
		m.round()
		if len(m.edits) == 0 {
			break
		}
		m.apply()
	}
	out := m.src
	if len(m.notes) == 0 {
		out = source
	} else if formatted, err := format.Source([]byte(m.src)); err == nil {
		out = string(formatted)
	}
	return report.Fixed{Text: out, Fixes: m.placed(out, m.notes), Faults: m.placed(out, m.named)}
}

// A fixer fixes one program.
type fixer struct {
	terms   report.Terms
	checker Checker
	src     string
	fset    *token.FileSet
	file    *ast.File
	Checked
	parents map[ast.Node]ast.Node
	used    map[types.Object][]*ast.Ident // by usesOf, of this round
	makesOf map[types.Type]bool           // by makes, of this round

	edits []edit
	notes []mark
	named []mark // faults of the text as it is
}

// round finds edits of the text as it is. The rules of a stage rest on what the stages before have fixed.
func (m *fixer) round() {
	m.named = nil
	if m.wholeText(); len(m.edits) > 0 {
		return
	}
	var err error
	if m.fset, m.file, err = m.checker.Parse(m.src); err != nil {
		m.syntax(err)
		return
	}
	m.parents = parentsOf(m.file)
	m.used, m.makesOf = nil, nil
	for _, stage := range []func(){m.foreignImports, m.entry, m.missingImports} {
		if stage(); len(m.edits) > 0 {
			return
		}
	}
	m.Checked = m.checker.Check(m.fset, m.file)
	if m.Info == nil {
		return
	}
	for _, e := range m.Errors {
		if m.checker.Spent() {
			return
		}
		m.typeError(e)
	}
	if len(m.Errors) > 0 {
		return
	}
	for _, stage := range []func(){m.assertions, m.pointers, m.functions, m.boundaries, m.printedValue, m.keys,
		m.shownFields, m.ownNames, m.textFiles, m.lists, m.nilMaps, m.layouts, m.jsonTexts, m.refusals,
		m.unusedImports} {
		if stage(); len(m.edits) > 0 {
			return
		}
	}
	m.faults()
}

// parentsOf maps each node of the file to the one that it is a part of.
func parentsOf(file *ast.File) map[ast.Node]ast.Node {
	parents := map[ast.Node]ast.Node{}
	var stack []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	return parents
}

// placed are notes with their lines in the formatted text.
func (m *fixer) placed(out string, marks []mark) (notes []report.Fix) {
	lines := linesAt(m.src, out, marks)
	for i, n := range marks {
		if note := (report.Fix{Line: lines[i], Text: n.text}); !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	slices.SortStableFunc(notes, func(a, b report.Fix) int { return a.Line - b.Line })
	return notes[:min(len(notes), maxNotes)]
}

// clip bounds a piece of the program in a note.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
