package contract

import (
	"context"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// manySteps is from how many steps on a check can be ended: fewer take some milliseconds.
const manySteps = 20_000

// errEnded is what ends a check.
var errEnded = errors.New("the check was ended")

// An ending ends a check when its context ends: the library takes no context. Each check has its own.
type ending struct {
	ctx  context.Context //nolint:containedctx // of the check that is under way
	left int             // steps until the context is looked at
}

// step panics with errEnded where the check has to end. A nil ending ends nothing.
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

// An endable is the document compiled for one check at a time.
type endable struct {
	compiled *jsonschema.Schema
	end      *ending
}

// validateUntil is validate that ends with ctx, with errEnded.
func (s *Schema) validateUntil(ctx context.Context, v any) error {
	x, _ := s.endable.Get().(*endable)
	if x == nil {
		x = &endable{end: &ending{}}
		var err error
		if x.compiled, err = build(s.root, x.end); err != nil {
			return err // it was built before
		}
	}
	x.end.ctx, x.end.left = ctx, 0
	err := validate(x.compiled, v)
	x.end.ctx = nil
	s.endable.Put(x)
	return err
}
