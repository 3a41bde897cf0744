package operator

import (
	"context"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// words returns the prose of a registry entry for a method. It is empty for the zero entry.
func (o *Operator) words(t *agent.Tool, method string) *contract.Words {
	return &resolved(o.contracts, t, method).Words
}

// resolved returns the contract of a registry entry for a method. It is empty for the zero entry.
func resolved(cache *contract.Cache, t *agent.Tool, method string) *contract.Resolved {
	l := contract.Layers{Role: &t.Contract, ByProgram: !t.ByPerson}
	if m, ok := t.Methods[method]; ok {
		l.Method = &m
	}
	return cache.Resolve(l)
}

// stale reports why the artifact's program may no longer do what people want, or "".
func (o *Operator) stale(t *agent.Tool, a *agent.Artifact) string {
	return o.calls.Outdated(resolved(o.contracts, t, a.MethodName), a)
}

// Staleness returns a function for artifacts of the role. It returns StalePurpose if the program that answers was made
// for another wording, and "" otherwise.
func (o *Operator) Staleness(ctx context.Context, role string) func(a *agent.Artifact) string {
	t, err := o.store.Tool(ctx, role)
	if err != nil {
		t = agent.Tool{Role: role}
	}
	return func(a *agent.Artifact) string { return o.stale(&t, a) }
}

// remember sets MadeFor of the role's programs that lack it to the registered wording. It must run before that wording
// changes, which loses it.
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
		if err := o.note(ctx, a, w.Made); err != nil {
			return err
		}
	}
	return nil
}

// note sets MadeFor of the artifact's programs that lack it.
func (o *Operator) note(ctx context.Context, a *agent.Artifact, made agent.MadeFor) (err error) {
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: o.o.Now().UTC(),
		Reworded: &agent.Rewording{For: made}}
	for err == nil && slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.MadeFor == nil }) {
		if _, err = o.store.ChangeArtifact(ctx, a.Revision, change, nil); !errors.Is(err, store.ErrConflict) {
			break
		}
		a, err = o.store.Artifact(ctx, a.Role, a.MethodName) // each call updates the artifact's counters
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// take archives or removes the targets with do. Before, it sets MadeFor of their programs, since the wording may change
// while they are archived.
func (o *Operator) take(ctx context.Context, targets []store.Target, entry agent.AuditEntry,
	do func(context.Context, []store.Target, agent.AuditEntry) error) error {
	for _, t := range targets {
		if t.ToolOnly {
			continue
		}
		tool, err := o.store.Tool(ctx, t.Role)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var all []*agent.Artifact
		if t.Method == "" {
			all, err = o.store.ListArtifacts(ctx, t.Role)
		} else {
			all = make([]*agent.Artifact, 1)
			all[0], err = o.store.Artifact(ctx, t.Role, t.Method)
		}
		for i := 0; err == nil && i < len(all); i++ {
			err = o.note(ctx, all[i], o.words(&tool, all[i].MethodName).Made)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return do(ctx, targets, entry)
}

// stands marks the program that becomes or stays current by a rollback or a promotion as confirmed for the registered
// wording, if it was made for another.
func (o *Operator) stands(ctx context.Context, a *agent.Artifact, change *agent.ArtifactChange) error {
	if change.Current == "" && !change.Bless {
		return nil
	}
	g := a.Find(change.Current)
	if change.Current == "" {
		g = a.Current()
	}
	t, err := o.store.Tool(ctx, a.Role)
	if errors.Is(err, store.ErrNotFound) || err == nil && g == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if now := o.words(&t, a.MethodName).ByPerson; g.Reworded(now) {
		change.Confirm = now
	}
	return nil
}
