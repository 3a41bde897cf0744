package gate

import (
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Program is a program that may run. It belongs to the process that checked it: only Facts travel.
type Program struct {
	Source string // the text that was checked: the model's own, with imports repaired
	Facts  Facts

	// What an engine compiles: the program's own package last, before it the packages that it uses from source.
	Fset  *token.FileSet
	Units []Unit

	Unused []token.Pos // where variables are declared that nothing uses

	Residue bool // a run may leave something in the state of other packages, so that its process must run nothing afterwards

	moved bool // Units differ from Source: calls have moved into the toolchain's order of evaluation
}

// Text returns the program as an engine reads it that compiles text: Source, with calls in the toolchain's order of evaluation. Lines may differ from those of Source.
func (p *Program) Text() (string, error) {
	if !p.moved {
		return p.Source, nil
	}
	f := *p.Units[len(p.Units)-1].Files[0]
	f.Comments = []*ast.CommentGroup{} // their places are lost; nil would print those of declarations
	var b strings.Builder
	if err := printer.Fprint(&b, p.Fset, &f); err != nil {
		return "", err
	}
	return b.String(), nil
}

// A Unit is one type-checked package with its syntax.
type Unit struct {
	Pkg   *types.Package
	Info  *types.Info
	Files []*ast.File
}

// What the gate says of a program is in a package of its own, for those who may read it but not parse.
type (
	Refusal = report.Refusal
	Facts   = report.Facts
)
