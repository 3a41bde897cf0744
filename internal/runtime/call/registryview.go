package call

import (
	"cmp"
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Registry is the registry as models and programs of the call may see it. It shows other owners' tools only as
// far as they are visible to everybody. It hides methods whose programs are switched off by the policy or by
// quarantine. It reads a bounded number of artifacts and hides the methods beyond that number.
type Registry struct {
	call *Call
	left int // artifacts that may still be read
	seen map[store.Target]ShownMethod
}

// A ShownMethod is a method as the view shows it.
type ShownMethod struct {
	Takes *agent.Interface // nil if the interface is unknown
	shown bool
}

// Registry returns a view that reads at most the given number of artifacts.
func (c *Call) Registry(most int) *Registry {
	return &Registry{call: c, left: most, seen: map[store.Target]ShownMethod{}}
}

// Asker returns the reader on whose behalf the call's models and programs read the registry.
func (c *Call) Asker() agent.Reader { return agent.Reader{Owner: c.Owner, Operates: c.Operates} }

// Tool returns the tool reduced to what may be seen, and whether it is shown at all.
func (v *Registry) Tool(ctx context.Context, t store.RankedTool) (store.RankedTool, bool) {
	r := v.call.Asker()
	readable := t.Tool.Audience().Has(r)
	if !readable {
		t.Tool.Contract, t.Tool.Methods = agent.Contract{}, nil
	}
	var methods []string
	for _, m := range t.Methods {
		if v.Method(ctx, &t.Tool, m).shown {
			methods = append(methods, m)
		}
	}
	none := len(methods) == 0
	hidden := none && len(t.Methods) > 0
	t.Methods = methods
	switch {
	case hidden && t.Tool.ByUse: // it is a tool only through its programs
		return t, false
	case t.Tool.ByPerson, r.SeesAll():
		return t, true
	}
	return t, readable || !none
}

// Method returns the tool's method as it is shown.
func (v *Registry) Method(ctx context.Context, t *agent.Tool, method string) ShownMethod {
	k := store.Target{Role: t.Role, Method: method}
	m, known := v.seen[k]
	if known || v.left <= 0 {
		return m
	}
	if selection.Switch(v.call.Policy, t.Role) != "" {
		return m
	}
	v.left--
	if a, err := v.call.Env.Store.Artifact(ctx, t.Role, method); err == nil && !a.Quarantined {
		var d agent.Description
		if d, m.shown = a.ShownTo(v.call.Asker(), cmp.Or(a.Neutral(), a.Current()),
			t.ByPerson); d.Generation != nil && d.Generation.Keeps(agent.FingerprintNone) {
			m.Takes = d.Generation.Interface
		}
	}
	v.seen[k] = m
	return m
}
