package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxPolicyTrail bounds how many audit entries are read to reconstruct earlier policies.
const maxPolicyTrail = 5000

// policies are the policies that were in force, reconstructed from the audit trail.
type policies struct {
	now     *agent.Policy
	changes []policyChange // newest first
	from    string         // policies before this time are unknown; "" if all are known
}

// A policyChange replaced the policy was.
type policyChange struct {
	at  string
	was *agent.Policy
}

// at returns the policy that was in force at that time. If that is unknown, it returns the current one and false.
func (p *policies) at(when string) (in *agent.Policy, known bool) {
	if p.from != "" && when < p.from {
		return p.now, false
	}
	in = p.now
	for _, c := range p.changes {
		if c.at < when {
			break
		}
		in = c.was
	}
	return in, true
}

// policiesSince returns the policies from that time on.
func (o *Operator) policiesSince(ctx context.Context, since string, now *agent.Policy) (*policies, error) {
	p := &policies{now: now}
	last := ""
	for before, read := "", 0; read < maxPolicyTrail; {
		entries, err := o.store.Audit(ctx, store.AuditQuery{Before: before, Limit: 500})
		if err != nil {
			return nil, err
		}
		for i := range entries {
			e := &entries[i]
			if last = e.Timestamp; last < since {
				return p, nil
			}
			if e.Action != opPolicy {
				continue
			}
			was, err := agent.DecodeStoredPolicy(e.Before)
			if err != nil { // erased, or written by another version
				p.from = last
				return p, nil // what it was is not known
			}
			p.changes = append(p.changes, policyChange{last, &was})
		}
		if len(entries) < 500 {
			return p, nil
		}
		before, read = store.AuditCursor(&entries[len(entries)-1]), read+len(entries)
	}
	p.from = last
	return p, nil
}

// PatchPolicy applies a JSON merge patch (RFC 7396) to the policy. The result is validated as a whole. When PatchPolicy
// returns, it is durable and in force for the next call. Errors are *agent.PolicyError or the store's.
func (o *Operator) PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error) {
	if agent.Kind(patch) != "object" {
		return agent.Policy{}, &agent.PolicyError{Reason: "a patch must be an object"}
	}
	return o.calls.ChangePolicy(ctx, func(now agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
		p, err := patchedPolicy(now, patch)
		if err != nil {
			return p, nil, err
		}
		entry := o.audit(actor, opPolicy, "policy", "")
		entry.Before, entry.After = agent.Encoded(now), agent.Encoded(p)
		return p, &entry, nil
	})
}

// PolicyAtStart applies the policy patch of the start-up settings. If the patch changes something, it writes an audit
// entry.
func (o *Operator) PolicyAtStart(ctx context.Context, patch map[string]any) error {
	if len(patch) == 0 {
		return nil
	}
	now := *o.calls.PolicyInForce()
	p, err := patchedPolicy(now, agent.Encoded(patch))
	if err != nil || reflect.DeepEqual(p, now) {
		return err
	}
	_, err = o.PatchPolicy(ctx, agent.Encoded(patch), maintainer)
	return err
}

// patchedPolicy returns the patched policy. A member that the patch sets to null gets its default.
func patchedPolicy(now agent.Policy, patch json.RawMessage) (agent.Policy, error) {
	before, err := json.Marshal(now)
	if err != nil {
		return agent.Policy{}, fmt.Errorf("encode the policy: %w", err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return agent.Policy{}, &agent.PolicyError{Reason: err.Error()}
	}
	defaults, err := json.Marshal(agent.DefaultPolicy())
	if err != nil {
		return agent.Policy{}, fmt.Errorf("encode the default policy: %w", err)
	}
	// over the defaults, which fill in the removed members
	if after, err = jsonpatch.MergePatch(defaults, after); err != nil {
		return agent.Policy{}, &agent.PolicyError{Reason: err.Error()}
	}
	return agent.DecodePolicy(after)
}

// mask hides secrets in a text that a person wrote and that is stored.
func (o *Operator) mask(text string) string { return o.calls.Rules().Text(text) }

// audit returns a new audit entry, with the request that undoes the operation. Operations with another undo, or none,
// set Undo themselves.
func (o *Operator) audit(actor, action, target, reason string) agent.AuditEntry {
	e := trail.Entry(o.o.Now(), actor, action, target)
	e.Reason = o.mask(reason)
	if undoable(action) {
		e.Undo = undoPath(e.ID)
	}
	return e
}

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
