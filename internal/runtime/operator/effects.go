package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Origins of a manifest.
const (
	effectsNone     = "none"     // there was no ok call yet, and nobody wrote one
	effectsObserved = "observed" // ok calls wrote it
	effectsApproved = "approved" // a person did
)

// MethodEffects is what a method's programs may reach, and what each of its generations did.
type MethodEffects struct {
	Role       string `json:"role"`
	MethodName string `json:"method_name"`
	agent.Manifest
	Origin      string              `json:"origin"` // none, observed, approved
	Policy      string              `json:"policy"` // what the manifest means now: observe, enforce
	Generations []GenerationEffects `json:"generations"`
}

// GenerationEffects is what one generation did, and names in its text.
type GenerationEffects struct {
	ID         string         `json:"id"`
	Current    bool           `json:"current"`
	Did        *agent.Effects `json:"did"`         // in ok calls; null before the first one
	NamedHosts []string       `json:"named_hosts"` // of the addresses in its text, whether it ran or not
	NewHosts   []string       `json:"new_hosts"`   // that its parent neither reached nor names
	Lacks      agent.Effects  `json:"lacks"`       // of all these, what the manifest lacks
}

// Effects returns the method's effects, store.ErrNotFound when there is no artifact.
func (o *Operator) Effects(ctx context.Context, role, method string) (MethodEffects, error) {
	a, err := o.store.Artifact(ctx, role, method)
	if err != nil {
		return MethodEffects{}, err
	}
	return o.effectsOf(a), nil
}

func (o *Operator) effectsOf(a *agent.Artifact) MethodEffects {
	v := MethodEffects{Role: a.Role, MethodName: a.MethodName, Origin: effectsNone, Policy: o.calls.Policy().Effects,
		Generations: []GenerationEffects{}}
	if a.Manifest != nil {
		if v.Manifest, v.Origin = *a.Manifest, effectsObserved; a.Manifest.ApprovedBy != "" {
			v.Origin = effectsApproved
		}
	}
	none := &agent.Effects{}
	v.Effects = v.With(none)
	for _, g := range a.Generations {
		of := GenerationEffects{ID: g.ID, Current: g.ID == a.CurrentID, Did: g.Effects,
			NamedHosts: append([]string{}, g.NamedHosts()...), NewHosts: append([]string{}, a.NewHosts(g)...)}
		all := &agent.Effects{Hosts: of.NamedHosts}
		if g.Effects != nil {
			reached := all.With(g.Effects)
			all = &reached
		}
		if v.Origin != effectsNone {
			lacks := v.Lacks(*all)
			of.Lacks = lacks.With(none)
		} else {
			of.Lacks = none.With(none)
		}
		v.Generations = append(v.Generations, of)
	}
	return v
}

// An EffectsPut is the manifest that a person approves. Lists that are nil stay as they are.
type EffectsPut struct {
	Role, Method                 string
	Hosts, Methods, Tools, Files []string
	Revision                     int64 // that the manifest must have; store.AnyRevision, or 0 for none yet
	Reason, Actor                string
}

// PutEffects makes the manifest the one that the person approves, also before the method exists. From then on it does not grow by itself. An
// *agent.InputError says what about it cannot be meant, store.ErrConflict that it has another revision.
func (o *Operator) PutEffects(ctx context.Context, q EffectsPut) (MethodEffects, error) {
	if err := agent.Names(&q.Role, &q.Method); err != nil {
		return MethodEffects{}, err
	}
	given, err := agent.CheckEffects(agent.Effects{Hosts: q.Hosts, Methods: q.Methods, Tools: q.Tools, Files: q.Files})
	if err != nil {
		return MethodEffects{}, err
	}
	entry := o.audit(q.Actor, opEffects, q.Role+"."+q.Method, q.Reason)
	a, err := o.change(ctx, q.Role, q.Method, &entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		was := &agent.Manifest{}
		if a != nil && a.Manifest != nil {
			was = a.Manifest
		}
		if !store.Matches(q.Revision, was.Revision) {
			return agent.ArtifactChange{}, store.ErrConflict
		}
		now := o.o.Now().UTC()
		next := agent.Manifest{Effects: was.With(&agent.Effects{}), ApprovedBy: q.Actor, ApprovedAt: &now}
		for _, l := range []struct{ to, asked, checked *[]string }{{&next.Hosts, &q.Hosts, &given.Hosts},
			{&next.Methods, &q.Methods, &given.Methods},
			{&next.Tools, &q.Tools, &given.Tools}, {&next.Files, &q.Files, &given.Files}} {
			if *l.asked != nil {
				*l.to = *l.checked
			}
		}
		return agent.ArtifactChange{Manifest: &next, Correction: o.letIn(a, &next)}, nil
	})
	if err != nil {
		return MethodEffects{}, err
	}
	o.correct(a, q.Actor) // a correction may have waited for this; a held program runs in the next call by itself
	return o.effectsOf(a), nil
}

// letIn is the correction of the method once the manifest lets its program serve, which waited for that; nil where it changes nothing.
func (o *Operator) letIn(a *agent.Artifact, m *agent.Manifest) *agent.Correction {
	if a == nil || !awaits(a, a.CurrentID) || o.calls.Policy().ApprovalRequired {
		return nil
	}
	after := *a
	if after.Manifest = m; after.AwaitsReach(a.Current()) {
		return nil
	}
	return adopted(a.Correction)
}
