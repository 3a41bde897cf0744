package contract

import (
	"context"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// manySteps is the number of steps from which a check can be interrupted. Fewer take milliseconds.
const manySteps = 20_000

// errEnded is the value of the panic that interrupts a check.
var errEnded = errors.New("the check was ended")

// An ending interrupts a check when its context ends, since the library takes no context. Each check has its own.
type ending struct {
	ctx  context.Context // of the check that is under way
	left int             // steps until ctx is checked again
}

// step panics with errEnded if the context has ended. A nil ending never does.
func (e *ending) step() {
	if e == nil {
		return
	}
	if e.left--; e.left > 0 {
		return
	}
	if e.left = 256; e.ctx.Err() != nil {
		panic(errEnded)
	}
}

// An endable is a compiled document for one check at a time, which can be interrupted.
type endable struct {
	compiled *jsonschema.Schema
	end      *ending
}

// validateUntil is validate that returns errEnded when ctx ends.
func (s *Schema) validateUntil(ctx context.Context, v any) error {
	x, _ := s.endable.Get().(*endable)
	if x == nil {
		x = &endable{end: &ending{}}
		var err error
		if x.compiled, err = build(s.root, x.end); err != nil {
			return err // not reached: the same document was built before
		}
	}
	x.end.ctx, x.end.left = ctx, 0
	err := validate(x.compiled, v)
	x.end.ctx = nil
	s.endable.Put(x)
	return err
}
