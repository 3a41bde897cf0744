package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A selected call is a selection whose program is run, or asked for.
type selected struct {
	proof.Against

	r *Runtime
}

// choose reads what the selection needs, and selects.
func (c *opened) choose(ctx context.Context) (selected, error) {
	began := c.Env.Now()
	s := selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call}, Nester: nester{c.r}}, r: c.r}
	var err error
	if early := c.Early; early != nil && c.place.Ahead == 0 {
		s.Terms, c.Early = *early, nil
	} else if s.Terms, err = c.ResolveTerms(ctx); err != nil {
		return s, err
	}
	if c.Depth > 0 {
		s.Memory = map[string]json.RawMessage{}
	} else if s.Memory, err = c.Env.Store.Context(ctx, c.Session.ID); err != nil {
		return s, err
	}
	a, err := c.Env.Store.Artifact(ctx, c.Role, c.Method)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	s = s.of(a)
	s.Reveal(a.Takes())
	ended := c.Env.Now()
	s.Took = ended.Sub(began)
	c.Span.Stage("select", began, ended)
	return s, nil
}

// of returns the call with the given artifact and the selection that follows from it.
func (s selected) of(a *agent.Artifact) selected {
	s.Artifact, s.Decision = a, selection.Select(s.Input(a))
	return s
}
