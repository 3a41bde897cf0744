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

	// The program's own package last, before it the packages that it uses from source.
	Fset  *token.FileSet
	Units []Unit

	Unused []token.Pos // where variables are declared that nothing uses

	Residue bool // a run may leave something in the state of other packages, so that its process must run nothing afterwards
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
