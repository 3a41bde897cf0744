package runtimetest

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Executables is a compiler that makes nothing: it has the executables that were added, by the checksums of their programs. The zero value has none.
type Executables struct{ made sync.Map }

// An added is the executable of a program.
type added struct {
	path  string
	facts *report.Facts
}

// Add adds the executable of a program, in the place of another one. Without facts it has empty ones.
func (e *Executables) Add(checksum, path string, facts *report.Facts) {
	if facts == nil {
		facts = &report.Facts{}
	}
	e.made.Store(checksum, added{path, facts})
}

// Clear removes them from the disk, too.
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

// Engine returns a name.
func (e *Executables) Engine() string { return report.EngineGo + " test" }

// Find returns the program's executable, nil where none was added.
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

// Compile returns an error.
func (e *Executables) Compile(context.Context, sandbox.Compilation) (*sandbox.Executable, error) {
	return nil, errors.New("no executable of the program was added")
}
