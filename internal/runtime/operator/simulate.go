package operator

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A SimulationQuery asks what a change of the policy would do.
type SimulationQuery struct {
	Patch json.RawMessage // a merge patch of the policy
	Calls int             // the newest ended calls to look at
	Owner string          // whose calls; "" for everybody's
	Scan  *store.Scan     // bounds how many entries are read for them; nil for no bound
}

// Simulation is what a change of the policy would do. Nothing was changed.
type Simulation struct {
	Changed  []ChangedCall `json:"changed"`   // newest first
	LookedAt int           `json:"looked_at"` // calls
	NotKnown int           `json:"not_known"` // of these: too little is kept to run their selection again as it was
	// what it would have wait for a person's approval; null where it does not switch approval_required on
	Approval *Approvals `json:"approval"`
}

// Approvals are the programs that would wait.
type Approvals struct {
	Waiting  int             `json:"waiting"`
	Durable  int             `json:"durable"`  // of these, programs that have proved themselves
	Programs []WaitingMethod `json:"programs"` // durable ones first, at most 1000
}

// WaitingMethod is a method whose program would wait.
type WaitingMethod struct {
	Role           string `json:"role"`
	Method         string `json:"method"`
	Generation     string `json:"generation"`
	LifecycleState string `json:"lifecycle_state"`
}

// mostApprovals bounds the programs that are listed.
const mostApprovals = 1000

// approvals lists what waits under the patched policy and not under the one in force.
func (o *Operator) approvals(ctx context.Context, now, patched *agent.Policy) (*Approvals, error) {
	if !patched.ApprovalRequired || now.ApprovalRequired {
		return nil, nil //nolint:nilnil // nothing more waits
	}
	before, err := o.overview.Waits(ctx, now)
	if err != nil {
		return nil, err
	}
	waited := map[string]bool{}
	for i := range before {
		waited[before[i].ID] = true
	}
	after, err := o.overview.Waits(ctx, patched)
	if err != nil {
		return nil, err
	}
	out := &Approvals{Programs: []WaitingMethod{}}
	var young []WaitingMethod
	for i := range after {
		w := &after[i]
		if w.Kind != overview.Approval || waited[w.ID] {
			continue
		}
		p := WaitingMethod{w.Role, w.Method, w.Of, w.State}
		if out.Waiting++; w.State == agent.StateDurable {
			out.Durable++
			out.Programs = append(out.Programs, p)
		} else {
			young = append(young, p)
		}
	}
	out.Programs = append(out.Programs, young...)
	out.Programs = out.Programs[:min(len(out.Programs), mostApprovals)]
	return out, nil
}

// ChangedCall is a call for which the policy would decide otherwise.
type ChangedCall struct {
	CallID string `json:"call_id"`
	Role   string `json:"role"`
	Method string `json:"method"`
	// by the policy in force: what the call's entry says, unless the policy was changed since
	Was     agent.Selection `json:"was"`
	WouldBe agent.Selection `json:"would_be"`
}

// SimulatePolicy runs the selection of the newest calls again, on what is kept of their methods: under the policy in force, and under the
// patched one. A call whose recorded selection does not come out again under the policy that was in force then is not known. Errors are
// *agent.PolicyError, or the store's.
func (o *Operator) SimulatePolicy(ctx context.Context, q SimulationQuery) (Simulation, error) {
	now := o.calls.Policy()
	patched, err := patchedPolicy(now, q.Patch)
	if err != nil {
		return Simulation{}, err
	}
	waits, err := o.approvals(ctx, &now, &patched)
	if err != nil {
		return Simulation{}, err
	}
	entries, err := o.store.ListCalls(ctx, store.CallQuery{Limit: q.Calls, Owner: q.Owner, Scan: q.Scan})
	if err != nil || len(entries) == 0 {
		return Simulation{Changed: []ChangedCall{}, Approval: waits}, err
	}
	oldest := entries[0].Timestamp
	for i := range entries {
		oldest = min(oldest, entries[i].Timestamp)
	}
	earlier, err := o.policiesSince(ctx, oldest, &now)
	if err != nil {
		return Simulation{}, err
	}
	s := Simulation{Changed: []ChangedCall{}, LookedAt: len(entries), Approval: waits}
	kept := map[methodKey]*agent.Artifact{}
	for i := range entries {
		e := &entries[i]
		if e.Selection.Decision == agent.DecideNone {
			continue // no policy changes it
		}
		a, read := kept[methodKey{e.Role, e.Method}]
		if !read {
			if a, err = o.store.Artifact(ctx, e.Role, e.Method); err != nil && !errors.Is(err, store.ErrNotFound) {
				return Simulation{}, err
			}
			kept[methodKey{e.Role, e.Method}] = a
		}
		past, _ := why.Recall(e, a, o.calls.Reselect)
		then, known := earlier.at(e.Timestamp)
		if !known || !why.Same(past.Under(then), e.Selection) {
			s.NotKnown++
			continue
		}
		if was, next := past.Under(&now), past.Under(&patched); why.Changes(was, next) {
			s.Changed = append(s.Changed, ChangedCall{e.CallID, e.Role, e.Method, was, next})
		}
	}
	return s, nil
}
