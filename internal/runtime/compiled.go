package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/tier"
	"github.com/recurgentd/recurgentd/internal/store"
)

// NativeState returns the state of the artifact's current program in the native tier.
func (r *Runtime) NativeState(a *agent.Artifact) tier.View {
	return r.o.Native.View(r.nativeKey(a.Role, a.MethodName, a.CodeChecksum))
}

// NativeTier reports whether programs are compiled, with which toolchain, or why not.
func (r *Runtime) NativeTier() tier.State { return r.o.Native.State() }

// ToolsChanged is called when tools or artifacts were archived, deleted or brought back.
func (r *Runtime) ToolsChanged() { r.o.Native.ChangedAll(r.o.Namespace) }

func (r *Runtime) nativeKey(role, method, checksum string) tier.Key {
	return tier.Key{Namespace: r.o.Namespace, Role: role, Method: method, Checksum: checksum}
}

// NativeSource is what the native tier asks of the namespace's programs.
func (r *Runtime) NativeSource() tier.Source { return programs{r} }

// noteNative counts a live run and, where the tier asks for it, hands it over to be repeated on the compiled program.
func (s *selected) noteNative(p *tier.Program, q *sandbox.Request, res *sandbox.Result) {
	if !p.Ran(res, s.policy.Native) || s.shown().masked || !tier.Repeatable(res) {
		return
	}
	p.Offer(tier.Sample{Origin: "call " + s.id, Request: *q, Result: *res, Host: s.r.RecordedHost(s.session)})
}

// programs is what the native tier asks the runtime. It implements tier.Source.
type programs struct{ r *Runtime }

func (p programs) Generation(ctx context.Context, k tier.Key) (*agent.Generation, bool, error) {
	a, g, err := p.find(ctx, k)
	return g, g != nil && g.ID == a.CurrentID, err
}

// find returns the method's generation with the program, the current one if it is one of several; nil when none is kept.
func (p programs) find(ctx context.Context, k tier.Key) (a *agent.Artifact, g *agent.Generation, err error) {
	a, err = p.r.store.Artifact(ctx, k.Role, k.Method)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, kept := range a.Generations {
		if kept.CodeChecksum == k.Checksum && (g == nil || kept.ID == a.CurrentID) {
			g = kept
		}
	}
	return a, g, nil
}

func (p programs) Rules() *mask.Rules { return p.r.Rules() }

// Proofs runs what the generation has to answer as it did. Nothing is kept or counted.
func (p programs) Proofs(ctx context.Context, k tier.Key, yield func(tier.Sample) bool) error {
	a, g, err := p.find(ctx, k)
	if err != nil || g == nil {
		return err
	}
	c := p.r.selection(DryRun{Role: k.Role, Method: k.Method, Artifact: a, Generation: g})
	try := func(origin string, d dryRun) bool {
		q, h, ok := c.dryRequest(g, d)
		if !ok {
			return true
		}
		s := tier.Sample{Origin: origin, Request: q, Host: &host{call: c.opened, attempt: d.id, recorded: true, dry: true}}
		s.Result = p.r.box.Run(ctx, q, h)
		return ctx.Err() != nil || !tier.Repeatable(&s.Result) || yield(s)
	}
	for _, f := range g.Fixtures {
		if !try("fixture "+f.CallID, dryRun{id: c.id, callID: f.CallID, args: f.Args, kwargs: f.Kwargs, context: f.Context, effects: effectsOf(f.Effects)}) {
			return nil
		}
	}
	for _, x := range a.ActiveExamples() {
		d := dryRun{id: c.id, callID: x.ID, args: x.Args, kwargs: x.Kwargs, context: x.Context, effects: x.Effects, denied: c.policy.ApprovalRequired}
		if x.CallID != "" {
			d.callID = x.CallID
		}
		if !try("example "+x.ID, d) {
			return nil
		}
	}
	return nil
}

// effectsOf are a fixture's effects as a run takes them: none are none, not live ones.
func effectsOf(journal json.RawMessage) json.RawMessage {
	if journal == nil {
		return sandbox.EmptyJournal()
	}
	return journal
}
