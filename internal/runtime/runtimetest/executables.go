package runtimetest

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Executables is a compiler that compiles nothing: it finds executables that were added under the checksums of their
// programs. The zero value is empty.
type Executables struct{ made sync.Map }

// added is the executable of a program, with its facts.
type added struct {
	path  string
	facts *report.Facts
}

// Add adds the executable of a program, replacing an earlier one. nil facts mean empty ones.
func (e *Executables) Add(checksum, path string, facts *report.Facts) {
	if facts == nil {
		facts = &report.Facts{}
	}
	e.made.Store(checksum, added{path, facts})
}

// Clear removes all executables, including their files.
func (e *Executables) Clear() error {
	var errs []error
	for _, x := range e.made.Range {
		if err := os.Remove(x.(added).path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	e.made.Clear()
	return errors.Join(errs...)
}

// Engine returns the engine's name.
func (e *Executables) Engine() string { return report.EngineGo + " test" }

// Find returns the program's executable, or nil if none was added.
func (e *Executables) Find(checksum string) (*sandbox.Executable, error) {
	of, ok := e.made.Load(checksum)
	if !ok {
		return nil, nil
	}
	x := of.(added)
	f, err := os.Open(x.path)
	if err != nil {
		return nil, err
	}
	return &sandbox.Executable{File: f, Facts: x.facts}, nil
}

// Compile always returns an error.
func (e *Executables) Compile(context.Context, sandbox.Compilation) (*sandbox.Executable, error) {
	return nil, errors.New("no executable of the program was added")
}
