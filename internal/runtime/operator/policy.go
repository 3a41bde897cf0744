package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
)

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
