package gate

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Program is a program that may run. It stays in the process that checked it: only Facts are sent elsewhere.
type Program struct {
	Source string // the text that was checked: the model's own, with imports repaired
	Facts  Facts

	Fset *token.FileSet
	Pkg  *types.Package
	Info *types.Info
	File *ast.File

	Unused []token.Pos // positions of unused variable declarations

	// Residue is set if a run may change state of other packages. The process that ran it must then run nothing else.
	Residue bool
}

// Package report declares the results of the gate for readers that must not parse programs.
type (
	Refusal = report.Refusal
	Facts   = report.Facts
)
