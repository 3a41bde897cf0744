// Package fix repairs the text of programs as small models write them: it rewrites what is wrong and has only one
// possible meaning into a form that the gate accepts. It leaves anything ambiguous for the gate to report. It changes a
// program that compiles only if the program fails for every input or shows nothing: it asserts decoded JSON to a type
// that this never has, as in call.Arg(0, "n").(int), returns fields that JSON does not show, or shows under other keys
// than the purpose lists, shows a function in the place of its result, or only prints its value; also if it opens a
// file that it reads only as text.
//
// The package works on text and syntax trees, before any engine. It parses only through the Checker, which bounds
// hostile source.
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
	// Parse rejects source that is too large or nested too deeply. After a syntax error the file may still be set.
	Parse(source string) (*token.FileSet, *ast.File, error)
	Check(fset *token.FileSet, file *ast.File) Checked
	// Package returns the path of the only allowed package with that name that has all the names, or "" if there is
	// none or more than one.
	Package(name string, has map[string]bool) string
	// Spent reports whether the time for fixing is used up.
	Spent() bool
	// Names returns the exported names of an allowed package, and whether path is one.
	Names(path string) ([]string, bool)
}

// Checked is the result of a type check. Info is nil if the program could not be checked.
type Checked struct {
	Pkg    *types.Package
	Info   *types.Info
	Errors []types.Error // without those about unused variables
}

// Limits of one call of Text.
const (
	maxRounds = 40
	maxNotes  = 32
	// maxGrowth bounds, in bytes, how much longer a program may become.
	maxGrowth = 16 << 10
)

// Text repairs the source and returns it formatted, with a list of the repairs. Without repairs it returns the source
// unchanged. Faults lists what is wrong although the program compiles.
func Text(source string, t report.Terms, c Checker) report.Fixed {
	m := &fixer{terms: t, checker: c, src: source}
	seen := map[string]bool{}
	for range maxRounds {
		// A text that was seen before means that two rules undo each other.
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
	// Without repairs even the formatting stays as the model wrote it.
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
	used    map[types.Object][]*ast.Ident // cache of usesOf for this round
	makesOf map[types.Type]bool           // cache of makes for this round

	// edits are those of this round.
	edits []edit
	alone bool // the repair of this round goes without others, which would repair what it changes
	// notes are those of all rounds.
	notes []mark
	named []mark // faults in the current text
}

// round finds edits to the current text. It stops after the first stage that finds any, because each stage relies on
// the repairs of those before.
func (m *fixer) round() {
	m.named, m.alone = nil, false
	// These repairs work on tokens, because the text may not parse yet.
	if m.wholeText(); len(m.edits) > 0 {
		return
	}
	var err error
	if m.fset, m.file, err = m.checker.Parse(m.src); err != nil {
		m.syntax(err)
		return
	}
	// The tree is new in each round, so everything that refers to its nodes is computed again.
	m.parents = parentsOf(m.file)
	m.used, m.makesOf = nil, nil
	for _, stage := range []func(){m.sequential, m.foreignImports, m.entry, m.missingImports} {
		if stage(); len(m.edits) > 0 {
			return
		}
	}
	m.Checked = m.checker.Check(m.fset, m.file)
	if m.Info == nil {
		return
	}
	for _, e := range m.Errors {
		if m.checker.Spent() || m.alone {
			return
		}
		// Several errors may be repaired in one round, as long as their edits do not overlap.
		m.typeError(e)
	}
	if len(m.Errors) > 0 {
		return
	}
	for _, stage := range []func(){m.assertions, m.pointers, m.functions, m.functionValues, m.cutOut, m.boundaries,
		m.printedValue, m.keys, m.untagged, m.shownFields, m.ownNames, m.textFiles, m.lists, m.nilMaps, m.innerMaps,
		m.textOfCounts, m.layouts, m.jsonTexts, m.refusals, m.unusedImports} {
		if stage(); len(m.edits) > 0 {
			return
		}
	}
	m.faults()
}

// parentsOf maps each node of the file to its parent.
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

// placed returns the marks as notes, sorted by line of the formatted text and without duplicates.
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

// clip shortens a piece of the program for a note.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
