package overview

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Kinds of what waits for a person.
const (
	// the current program is not approved, and the policy approval_required asks for it, or it breaks examples for a changed purpose, or a person's change brought back a program that does
	Approval = "approval"
	// an answer was called wrong, and no program that answers better was found, or none is looked for
	Correction = "correction"
	// who may not operate proposed an example, or judged a call, or a program a stricter contract
	Proposal = "proposal"
	Effects  = "effects" // the current program reaches, or names, what nobody has approved
)

// A Wait is something that waits for a person's decision.
type Wait struct {
	ID     string // stays as long as it waits
	Kind   string
	Role   string
	Method string // "" of a contract, which is the role's
	Of     string // the generation, the example, the call or the proposal that it is about
	Since  time.Time
	State  string // of an approval: the program's in its lifecycle

	always bool // whatever the policy
}

// Compare orders what waits: the newest first.
func (w *Wait) Compare(o *Wait) int {
	return cmp.Or(o.Since.Compare(w.Since), cmp.Compare(w.ID, o.ID))
}

// NewID returns the id of something that waits.
func NewID(kind, role, method, of string) string {
	h := sha256.New()
	for _, part := range []string{kind, role, method, of} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "wait_" + hex.EncodeToString(h.Sum(nil))[:24]
}

// Waits returns what waits for a person under that policy, the newest first.
func (o *Overview) Waits(ctx context.Context, p *agent.Policy) ([]Wait, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refresh(ctx); err != nil {
		return nil, err
	}
	out := []Wait{}
	for _, waits := range o.waits {
		for _, w := range waits {
			if w.Kind == Approval && !p.ApprovalRequired && !w.always {
				continue
			}
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Wait) int { return a.Compare(&b) })
	return out, nil
}

// StandsIn reports whether it waits in the artifact, whatever the policy. What Waits returns may have been decided at another replica meanwhile.
func (w *Wait) StandsIn(a *agent.Artifact) bool {
	return slices.ContainsFunc(waitsOf(a), func(now Wait) bool { return now.ID == w.ID })
}

// waitsOfTool lists the contracts that programs proposed for the role.
func waitsOfTool(t *agent.Tool) (out []Wait) {
	if t.Proposals == nil {
		return nil
	}
	for _, p := range t.Proposals.Open {
		out = append(out, Wait{ID: NewID(Proposal, t.Role, "", p.ID), Kind: Proposal, Role: t.Role, Of: p.ID,
			Since: p.CreatedAt.UTC().Truncate(time.Millisecond)})
	}
	return out
}

// waitsOf lists what may wait, whatever the policy.
func waitsOf(a *agent.Artifact) (out []Wait) {
	add := func(w Wait, of string, since time.Time) {
		w.ID, w.Role, w.Method, w.Of, w.Since = NewID(w.Kind, a.Role, a.MethodName, of), a.Role, a.MethodName, of,
			since.UTC().Truncate(time.Millisecond)
		out = append(out, w)
	}
	back, _ := a.BreaksReturned()
	if back != nil && (back.ID != a.CurrentID || back.Approved) {
		add(Wait{Kind: Approval, State: a.StateOf(back), always: true}, back.ID, a.Returned.At)
	}
	if g := a.Current(); g != nil {
		if !g.Approved {
			add(Wait{Kind: Approval, State: a.StateOf(g), always: a.AwaitsExamples(g) || g == back}, g.ID, g.CreatedAt)
		}
		if wrongs := a.Corrections(); len(wrongs) > 0 && !a.Correction.Pending() && !awaitsApproval(a) {
			add(Wait{Kind: Correction}, g.ID, wrongs[0].At)
		}
		if beyond := Beyond(a, g); !beyond.Empty() {
			add(Wait{Kind: Effects}, g.ID, g.CreatedAt)
		}
	}
	for i := range a.Examples {
		if x := &a.Examples[i]; x.State == agent.ExampleProposed {
			add(Wait{Kind: Proposal}, x.ID, x.CreatedAt)
		}
	}
	for i := range a.Verdicts {
		if v := &a.Verdicts[i]; v.State == agent.ExampleProposed && v.ExampleID == "" {
			add(Wait{Kind: Proposal}, v.CallID, v.At)
		}
	}
	return out
}

// awaitsApproval reports whether a program that corrects is there, and waits under a kind of its own.
func awaitsApproval(a *agent.Artifact) bool {
	c := a.Correction
	return c != nil && c.State == agent.CorrectionAwaitingApproval && c.Generation != nil &&
		*c.Generation == a.CurrentID
}

// Beyond returns what the generation reaches, or names in its text, that nobody has approved: what a manifest that a person approved lacks;
// where there is none, what a person was to be asked about, and the hosts that its parent neither reached nor names. A person who has approved a program that
// was asked about has approved that.
func Beyond(a *agent.Artifact, g *agent.Generation) agent.Effects {
	asked := &agent.Effects{}
	if g.Beyond != nil && !g.Approved {
		asked = g.Beyond
	}
	if m := a.Manifest; m != nil && m.ApprovedBy != "" {
		return m.Lacks(g.Reach().With(asked))
	}
	if g.Beyond != nil && g.Approved {
		return agent.Effects{}
	}
	return asked.With(&agent.Effects{Hosts: a.NewHosts(g)})
}
