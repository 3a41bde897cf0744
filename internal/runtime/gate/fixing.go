package gate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/fix"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Fix repairs faults in a model's program that have only one sensible repair, and reports the repairs. Check should be
// called with the returned text, which is also the text to store. A program that is too long or takes too long comes
// back unchanged.
func (g *Gate) Fix(source string, t report.Terms) (fixed report.Fixed) {
	if len(source) > g.opts.MaxSource {
		return report.Fixed{Text: source}
	}
	_, r := within(g, func() (*Program, *Refusal) {
		fixed = fixText(g, source, t)
		return nil, nil
	})
	if r != nil {
		return report.Fixed{Text: source}
	}
	return fixed
}

// fixText runs the fixer. It returns the source unchanged if the fixer panics or the result is too long.
func fixText(g *Gate, source string, t report.Terms) (fixed report.Fixed) {
	defer func() {
		if recover() != nil { // a hostile text made the fixer panic: check it unchanged
			fixed = report.Fixed{Text: source}
		}
	}()
	fixed = fix.Text(source, t, fixing{g, g.used()})
	if len(fixed.Text) > g.opts.MaxSource {
		return report.Fixed{Text: source}
	}
	return fixed
}

// fixing implements fix.Checker on a Gate.
type fixing struct {
	*Gate
	began time.Duration // processor time of the process at the start
}

// Spent reports whether the repair has used a quarter of the deadline. The fixer then stops, and the text of the rounds
// so far is checked. That leaves time for work that does not end.
func (g fixing) Spent() bool { return g.used()-g.began > g.opts.Deadline/4 }

// Parse implements fix.Checker. It bounds the source before and after parsing.
func (g fixing) Parse(source string) (*token.FileSet, *ast.File, error) {
	c := &check{gate: g.Gate, source: source, fset: token.NewFileSet()}
	if r := c.boundTokens(); r != nil {
		return nil, nil, r
	}
	var err error
	c.file, err = parser.ParseFile(c.fset, fileName, source, parser.ParseComments)
	if err == nil {
		if r := c.boundTree(); r != nil {
			return nil, nil, r
		}
	}
	return c.fset, c.file, err
}

// Check implements fix.Checker. It checks nothing if there is a dot import, which the gate refuses anyway.
func (g fixing) Check(fset *token.FileSet, file *ast.File) fix.Checked {
	c := &check{gate: g.Gate, fset: fset, file: file}
	for _, spec := range file.Imports {
		if spec.Name != nil && spec.Name.Name == "." {
			return fix.Checked{}
		}
	}
	c.typeCheck()
	return fix.Checked{Pkg: c.pkg, Info: c.info, Errors: c.errs}
}

// Package implements fix.Checker.
func (g fixing) Package(name string, has map[string]bool) string {
	return (&check{gate: g.Gate}).packageFor(name, has)
}

// Names implements fix.Checker.
func (g fixing) Names(path string) ([]string, bool) {
	if _, ok := g.lib.allowed[path]; !ok {
		return nil, false
	}
	pkg, err := g.lib.load(path)
	if err != nil {
		return nil, true
	}
	return pkg.Scope().Names(), true
}
