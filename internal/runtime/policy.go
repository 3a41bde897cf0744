package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Policy returns the policy in force.
func (r *Runtime) Policy() agent.Policy { return *r.policy.Load() }

// PatchPolicy changes the policy by a JSON merge patch. It is checked as a whole, durable when PatchPolicy returns, and
// in force from the very next call on. Errors are *agent.PolicyError, or the store's.
func (r *Runtime) PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error) {
	if agent.Kind(patch) != "object" {
		return agent.Policy{}, &agent.PolicyError{Reason: "a patch must be an object"}
	}
	r.policyMu.Lock()
	defer r.policyMu.Unlock()
	before, err := json.Marshal(r.policy.Load())
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
	// What a null has removed is as it is by default.
	if after, err = jsonpatch.MergePatch(defaults, after); err != nil {
		return agent.Policy{}, &agent.PolicyError{Reason: err.Error()}
	}
	p, err := agent.DecodePolicy(after)
	if err != nil {
		return agent.Policy{}, err
	}
	entry := r.audit(actor, actPolicy, "policy", "")
	if after, err = json.Marshal(p); err != nil {
		return agent.Policy{}, fmt.Errorf("encode the policy: %w", err)
	}
	entry.Before, entry.After = before, after
	if err := r.store.SetPolicy(ctx, p, &entry); err != nil {
		return agent.Policy{}, err
	}
	r.policy.Store(&p)
	return p, nil
}

// audit begins an entry of the trail, with how to undo the act; acts that have another way, or none, say so themselves.
func (r *Runtime) audit(actor, action, target, reason string) agent.AuditEntry {
	e := agent.AuditEntry{ID: agent.NewID("aud"), Timestamp: agent.FormatTime(r.o.Now()), Actor: actor, Action: action, Target: target, Reason: reason}
	if undoable(action) {
		e.Undo = undoPath(e.ID)
	}
	return e
}
