package runtimetest

import (
	"context"
	"errors"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Executables is a compiler that makes nothing: it has the executables that were added, by the checksums of their programs. The zero value has none.
type Executables struct{ made sync.Map }

// Add adds the executable of a program, in the place of another one. Without facts it has empty ones.
func (e *Executables) Add(checksum string, x *sandbox.Executable) {
	own := *x
	if own.Facts == nil {
		own.Facts = &report.Facts{}
	}
	e.made.Store(checksum, &own)
}

// Engine returns a name.
func (e *Executables) Engine() string { return report.EngineGo + " test" }

// Find returns the program's executable, nil where none was added.
func (e *Executables) Find(checksum string) (*sandbox.Executable, error) {
	if x, ok := e.made.Load(checksum); ok {
		return x.(*sandbox.Executable), nil
	}
	return nil, nil
}

// Compile returns an error.
func (e *Executables) Compile(context.Context, sandbox.Compilation) (*sandbox.Executable, error) {
	return nil, errors.New("no executable of the program was added")
}
