package operator

import (
	"context"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// words is what an entry of the registry says of a method in prose. The zero entry says nothing.
func (o *Operator) words(t *agent.Tool, method string) *contract.Words {
	return words(o.contracts, t, method)
}

func words(cache *contract.Cache, t *agent.Tool, method string) *contract.Words {
	l := contract.Layers{Role: &t.Contract, ByProgram: !t.ByPerson}
	if m, ok := t.Methods[method]; ok {
		l.Method = &m
	}
	return &cache.Resolve(l).Words
}

// Staleness returns what says of artifacts of the role why what answers may not do what people want of the method: "purpose" where one of them has changed that since,
// and else "".
func (o *Operator) Staleness(ctx context.Context, role string) func(a *agent.Artifact) string {
	t, err := o.store.Tool(ctx, role)
	if err != nil {
		t = agent.Tool{Role: role}
	}
	approval := o.calls.Policy().ApprovalRequired
	return func(a *agent.Artifact) string { return a.Stale(o.words(&t, a.MethodName).ByPerson, approval) }
}

// remember notes at programs of which it is not kept what they were made for that they were made for what was registered, where that is about to change.
func (o *Operator) remember(ctx context.Context, was, next *agent.Tool) error {
	all, err := o.store.ListArtifacts(ctx, next.Role)
	if err != nil {
		return err
	}
	for _, a := range all {
		w := o.words(was, a.MethodName)
		if w.ByPerson == o.words(next, a.MethodName).ByPerson {
			continue
		}
		change := agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: o.o.Now().UTC(), Reworded: &agent.Rewording{For: w.Made}}
		for err == nil && slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.MadeFor == nil }) {
			if _, err = o.store.ChangeArtifact(ctx, a.Revision, change, nil); !errors.Is(err, store.ErrConflict) {
				break
			}
			a, err = o.store.Artifact(ctx, a.Role, a.MethodName) // calls count on it all the time
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = nil
	}
	return nil
}

// stands notes with a rollback or a promotion that the person stands by the program that is current after it, where that was made for something else than
// what is registered now.
func (o *Operator) stands(ctx context.Context, a *agent.Artifact, change *agent.ArtifactChange) {
	if change.Current == "" && !change.Bless {
		return
	}
	g := a.Find(change.Current)
	if change.Current == "" {
		g = a.Current()
	}
	t, err := o.store.Tool(ctx, a.Role)
	if err != nil || g == nil {
		return
	}
	if now := o.words(&t, a.MethodName).ByPerson; g.Reworded(now) {
		change.Confirm = now
	}
}
