package gate

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Program is a program that may run. It belongs to the process that checked it: only Facts travel.
type Program struct {
	Source string // the text that was checked: the model's own, with imports repaired
	Facts  Facts

	Fset *token.FileSet
	Pkg  *types.Package
	Info *types.Info
	File *ast.File // its syntax

	Unused []token.Pos // where variables are declared that nothing uses

	// a run may leave something in the state of other packages, so that its process must run nothing afterwards
	Residue bool
}

// What the gate says of a program is in a package of its own, for those who may read it but not parse.
type (
	Refusal = report.Refusal
	Facts   = report.Facts
)
