package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
	"github.com/recurgentd/recurgentd/internal/store"
)

// BroughtBack lists the programs that answer again because of a person's change, although they fail examples of their
// methods.
type BroughtBack struct {
	Programs []BackProgram `json:"brought_back,omitempty"`
	// methods with another answering program whose examples were not all run
	Unchecked int `json:"unchecked_methods,omitempty"`
}

// A BackProgram is a program that answers again but fails examples.
type BackProgram struct {
	Role           string   `json:"role"`
	Method         string   `json:"method"`
	Generation     string   `json:"generation"`
	BrokenExamples []string `json:"broken_examples"` // ids
}

// Bounds of the checks after a change: methods, roles, and the time that the reply waits. The change itself is in force
// before.
const (
	maxBackMethods = 8
	maxBackRoles   = 20
	maxBackTime    = 10 * time.Second
)

// answering maps the methods of roles to the ids of the generations that answer calls without a contract.
type answering map[store.Target]string

// bringingBack makes a person's change. Then it runs the examples of the roles' methods on the programs that answer
// because of the change. An error of such a check does not fail the change, which is in force.
func (o *Operator) bringingBack(ctx context.Context, roles []string, actor string,
	change func() error) (back BroughtBack, err error) {
	roles = roles[:min(len(roles), maxBackRoles)]
	// which programs answer must be known before the change
	was := answering{}
	// a method that could not be read counts as changed
	_ = o.eachMethod(ctx, roles, func(t store.Target, _ *agent.Artifact, g *agent.Generation) { was[t] = idOf(g) })
	if err := change(); err != nil {
		return back, err
	}
	kept := context.WithoutCancel(ctx) // the client may have left
	timed, cancel := context.WithTimeout(kept, maxBackTime)
	defer cancel()
	looked := 0
	_ = o.eachMethod(kept, roles, func(t store.Target, a *agent.Artifact, g *agent.Generation) {
		if idOf(g) == was[t] {
			return
		}
		var now agent.Returned
		switch {
		case g == nil || len(a.ActiveExamples()) == 0:
		case looked == maxBackMethods || timed.Err() != nil:
			back.Unchecked++
		default:
			looked++
			broken, whole := o.broken(timed, a, g, actor)
			if !whole {
				back.Unchecked++
			}
			if len(broken) > 0 {
				now = agent.Returned{Generation: g.ID, Breaks: broken, At: o.o.Now().UTC()}
				back.Programs = append(back.Programs, BackProgram{a.Role, a.MethodName, g.ID, broken})
			}
		}
		o.noteReturn(kept, a, now)
	})
	return back, nil
}

// idOf returns the id of a generation, or "" for nil.
func idOf(g *agent.Generation) string {
	if g == nil {
		return ""
	}
	return g.ID
}

// eachMethod calls f for each method of the roles that has examples or a noted returned program. g is the generation
// that answers, or nil.
func (o *Operator) eachMethod(ctx context.Context, roles []string,
	f func(t store.Target, a *agent.Artifact, g *agent.Generation)) error {
	for _, role := range roles {
		tool, err := o.store.Tool(ctx, role)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		all, err := o.store.ListArtifacts(ctx, role)
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.Returned != nil || len(a.ActiveExamples()) > 0 {
				f(store.Target{Role: role, Method: a.MethodName}, a,
					o.calls.Answering(resolved(o.contracts, &tool, a.MethodName), a))
			}
		}
	}
	return nil
}

// broken returns the ids of the active examples that the generation fails. whole is false if the time was up before all
// were run.
func (o *Operator) broken(ctx context.Context, a *agent.Artifact, g *agent.Generation,
	owner string) (ids []string, whole bool) {
	ids = []string{}
	for _, r := range o.calls.CheckExamples(ctx, verify.DryRun{Role: a.Role, Method: a.MethodName, Owner: owner,
		Artifact: a, Generation: g}) {
		if r.Result == proof.ExampleFailed {
			ids = append(ids, r.ID)
		}
	}
	return ids, ctx.Err() == nil
}

// noteReturn notes on the artifact which generation answers again but fails examples, or that none does any more. It
// gives up if calls change the artifact each time.
func (o *Operator) noteReturn(ctx context.Context, a *agent.Artifact, r agent.Returned) {
	const most = 20
	for range most {
		if a == nil || a.Returned == nil && r.Generation == "" {
			return
		}
		change := agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: o.o.Now().UTC(), Returned: &r}
		if _, err := o.store.ChangeArtifact(ctx, a.Revision, change, nil); !errors.Is(err, store.ErrConflict) {
			return
		}
		a, _ = o.store.Artifact(ctx, a.Role, a.MethodName)
	}
}

// rolesOf returns the roles of the targets without duplicates.
func rolesOf(targets []store.Target) (roles []string) {
	for _, t := range targets {
		if !slices.Contains(roles, t.Role) {
			roles = append(roles, t.Role)
		}
	}
	return roles
}
