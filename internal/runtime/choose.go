package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A selected call is a selection whose program is run, or asked for.
type selected struct {
	Selection

	r      *Runtime
	before *reach // of the program that a flight would replace; nil if wider reach needs no approval
}

// choose reads what the selection needs, and selects.
func (c *opened) choose(ctx context.Context) (selected, error) {
	began := c.Env.Now()
	s := selected{Selection: Selection{Call: &c.Call}, r: c.r}
	var err error
	if early := c.Early; early != nil && c.place.Ahead == 0 {
		s.terms, c.Early = *early, nil
	} else if s.terms, err = c.ResolveTerms(ctx); err != nil {
		return s, err
	}
	if c.Depth > 0 {
		s.memory = map[string]json.RawMessage{}
	} else if s.memory, err = c.Env.Store.Context(ctx, c.Session.ID); err != nil {
		return s, err
	}
	a, err := c.Env.Store.Artifact(ctx, c.Role, c.Method)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	s = s.of(a)
	s.Reveal(a.Takes())
	ended := c.Env.Now()
	s.took = ended.Sub(began)
	c.Span.Stage("select", began, ended)
	return s, nil
}

// of returns the call with the given artifact and the selection that follows from it.
func (s selected) of(a *agent.Artifact) selected {
	s.artifact, s.decision = a, selection.Select(s.input(a))
	return s
}

// input returns what Select needs to know about the call, with the given artifact.
func (s *Selection) input(a *agent.Artifact) selection.Input {
	return selection.Input{Role: s.Role, Method: s.Method, HasArgs: s.HasArgs(), Positional: len(s.Args),
		Kwargs:             s.Kwargs,
		Artifact:           a,
		CheckedFingerprint: checkedOf(a, s.terms.Checked, s.terms.Written), Words: s.terms.RegisteredWords(),
		Policy: s.Policy, Now: s.Started, ImportAllowed: s.Env.AllowImport, IgnoresArgs: s.Env.Facts.IgnoresArgs,
		Intact: s.Env.Intact.Has}
}

// checkedOf returns the fingerprint of the contract that the artifact's programs are held to. It is written, the one
// that earlier versions computed, if the artifact holds only programs from those versions.
func checkedOf(a *agent.Artifact, checked, written string) string {
	if written != checked && !a.Fits(checked) && a.Fits(written) {
		return written
	}
	return checked
}

// Reselect repeats Select for a past call, with the runtime's knowledge of programs.
func (r *Runtime) Reselect(in selection.Input) selection.Decision {
	in.ImportAllowed, in.IgnoresArgs, in.Intact = r.env.AllowImport, r.env.Facts.IgnoresArgs, r.env.Intact.Has
	return selection.Select(in)
}

// switchedOff reports whether stored programs are ignored: they are not run, not shown to the model, and not used to
// prove the program that answers instead. The call behaves as if nothing were stored, except that people's decisions
// still apply.
func (s *Selection) switchedOff() bool {
	return s.UnderSwitch() || s.decision.Reason == selection.ReasonQuarantined
}
