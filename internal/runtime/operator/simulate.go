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

// A SimulationQuery asks for the effect of a policy change.
type SimulationQuery struct {
	Patch json.RawMessage // merge patch of the policy
	Calls int             // number of the newest ended calls to simulate
	Owner string          // owner of the calls; "" for everyone's
	Scan  *store.Scan     // bounds the entries that are read; nil means no bound
}

// Simulation is the effect that a policy change would have.
type Simulation struct {
	Changed  []ChangedCall `json:"changed"`   // newest first
	LookedAt int           `json:"looked_at"` // calls that were read
	NotKnown int           `json:"not_known"` // of these, calls whose selection cannot be repeated from what is kept
	// programs that would need approval; null unless the patch turns approval_required on
	Approval *Approvals `json:"approval"`
}

// Approvals are the programs that would need approval.
type Approvals struct {
	Waiting  int             `json:"waiting"`
	Durable  int             `json:"durable"`  // durable programs among them
	Programs []WaitingMethod `json:"programs"` // durable ones first, at most 1000
}

// WaitingMethod is a method whose program would need approval.
type WaitingMethod struct {
	Role           string `json:"role"`
	Method         string `json:"method"`
	Generation     string `json:"generation"`
	LifecycleState string `json:"lifecycle_state"`
}

// mostApprovals bounds the programs in a report.
const mostApprovals = 1000

// approvals returns what would wait under the patched policy but not under the current one. It returns nil if the patch
// does not turn approval_required on.
func (o *Operator) approvals(ctx context.Context, now, patched *agent.Policy) (*Approvals, error) {
	if !patched.ApprovalRequired || now.ApprovalRequired {
		return nil, nil // nothing more waits
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

// ChangedCall is a call with another decision under the patched policy.
type ChangedCall struct {
	CallID string `json:"call_id"`
	Role   string `json:"role"`
	Method string `json:"method"`
	// under the current policy; equals the call's log entry unless the policy was changed since
	Was     agent.Selection `json:"was"`
	WouldBe agent.Selection `json:"would_be"`
}

// SimulatePolicy repeats the selection of the newest calls under the current and under the patched policy, on what is
// kept of their methods. If the policy that was in force at the call does not reproduce the recorded selection, the
// call counts as not known. Errors are *agent.PolicyError or the store's.
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
			continue // no policy affects it
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
