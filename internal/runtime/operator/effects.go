package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Values of MethodEffects.Origin.
const (
	effectsNone     = "none"     // no successful call yet, and no person has written one
	effectsObserved = "observed" // collected from successful calls
	effectsApproved = "approved" // approved by a person
)

// MethodEffects is what the programs of a method may reach, and what each generation has reached.
type MethodEffects struct {
	Role       string `json:"role"`
	MethodName string `json:"method_name"`
	agent.Manifest
	Origin      string              `json:"origin"` // none, observed or approved
	Policy      string              `json:"policy"` // current effect of the manifest: observe or enforce
	Generations []GenerationEffects `json:"generations"`
}

// GenerationEffects is what one generation has reached, and what its text names.
type GenerationEffects struct {
	ID         string         `json:"id"`
	Current    bool           `json:"current"`
	Did        *agent.Effects `json:"did"`         // in successful calls; null before the first one
	NamedHosts []string       `json:"named_hosts"` // hosts of URLs in its text, whether used or not
	NewHosts   []string       `json:"new_hosts"`   // hosts that its parent neither reaches nor names
	Lacks      agent.Effects  `json:"lacks"`       // the part of all these that the manifest lacks
}

// Effects returns the method's effects, or store.ErrNotFound if there is no artifact.
func (o *Operator) Effects(ctx context.Context, role, method string) (MethodEffects, error) {
	a, err := o.store.Artifact(ctx, role, method)
	if err != nil {
		return MethodEffects{}, err
	}
	return o.effectsOf(a), nil
}

// effectsOf builds the view of an artifact's effects. Its lists are never nil.
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

// An EffectsPut is a manifest that a person approves. A nil list stays unchanged.
type EffectsPut struct {
	Role, Method                 string
	Hosts, Methods, Tools, Files []string
	// required current revision; store.AnyRevision, or 0 if there must be no manifest
	Revision      int64
	Reason, Actor string
}

// PutEffects sets the manifest to the one that the person approves. The method need not exist yet. From then on calls
// do not extend the manifest. It returns an *agent.InputError for an invalid manifest, and store.ErrConflict for
// another revision.
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
		// checked in the change, so another approval cannot come in between
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
	o.correct(a, q.Actor) // a correction may have waited for this; a held program runs in the next call anyway
	return o.effectsOf(a), nil
}

// letIn returns the method's correction as adopted, if the manifest lifts the only obstacle for its program. Otherwise
// it returns nil.
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
