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

// Values of Wait.Kind.
const (
	// Approval means that a program waits for approval: the current one is unapproved and the policy approval_required
	// demands it, it breaks examples for a changed purpose, or a person's change brought it back although it breaks
	// examples.
	Approval = "approval"
	// Correction means that an answer was judged wrong, and no better program was found or none is being sought.
	Correction = "correction"
	// Proposal means that someone without the scope operate proposed an example or judged a call, or that a program
	// proposed a stricter contract.
	Proposal = "proposal"
	// Effects means that the current program reaches or names something that nobody has approved.
	Effects = "effects"
)

// A Wait is a decision that waits for a person.
type Wait struct {
	ID     string // stable as long as it waits
	Kind   string
	Role   string
	Method string // "" for a contract, which belongs to the role
	Of     string // the generation, example, call or proposal to decide on
	Since  time.Time
	State  string // for an approval, the program's lifecycle state

	always bool // it waits under any policy
}

// Compare orders waits newest first.
func (w *Wait) Compare(o *Wait) int {
	return cmp.Or(o.Since.Compare(w.Since), cmp.Compare(w.ID, o.ID))
}

// NewID returns the id of a wait. It is a digest of its parts, and so the same on every replica.
func NewID(kind, role, method, of string) string {
	h := sha256.New()
	for _, part := range []string{kind, role, method, of} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "wait_" + hex.EncodeToString(h.Sum(nil))[:24]
}

// Waits returns the decisions that wait for a person under that policy, newest first.
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

// StandsIn reports whether the wait still exists in the artifact, under any policy. Another replica may meanwhile have
// decided a wait returned by Waits.
func (w *Wait) StandsIn(a *agent.Artifact) bool {
	return slices.ContainsFunc(waitsOf(a), func(now Wait) bool { return now.ID == w.ID })
}

// waitsOfTool returns the contracts that programs proposed for the role.
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

// waitsOf returns the waits of an artifact that may apply, irrespective of the policy.
func waitsOf(a *agent.Artifact) (out []Wait) {
	add := func(w Wait, of string, since time.Time) {
		w.ID, w.Role, w.Method, w.Of, w.Since = NewID(w.Kind, a.Role, a.MethodName, of), a.Role, a.MethodName, of,
			since.UTC().Truncate(time.Millisecond)
		out = append(out, w)
	}
	// A returned program that is current and unapproved is listed below, as the current one.
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

// awaitsApproval reports whether a correcting program exists and waits as an Approval.
func awaitsApproval(a *agent.Artifact) bool {
	c := a.Correction
	return c != nil && c.State == agent.CorrectionAwaitingApproval && c.Generation != nil &&
		*c.Generation == a.CurrentID
}

// Beyond returns the effects that the generation has or names and that nobody has approved. With an approved manifest
// these are the effects that it lacks. Otherwise they are the effects that needed a person's consent, and the hosts
// that its parent neither reached nor named. Approving a program that needed consent approves them all.
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
