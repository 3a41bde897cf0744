package operator

import (
	"context"
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// undoPolicy reverts what the operation changed, and keeps other changes since then.
func (o *Operator) undoPolicy(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	now, _, err := o.store.Policy(ctx) // from the store: another replica may have changed it just now
	if err != nil {
		return nil, err
	}
	if _, err := policyBefore(was, now); err != nil {
		return nil, err
	}
	return func() error {
		_, err := o.calls.ChangePolicy(ctx, func(now agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
			p, err := policyBefore(was, now)
			entry.Before, entry.After = agent.Encoded(now), agent.Encoded(p)
			return p, entry, err
		})
		return err
	}, nil
}

// policyBefore returns the policy without the operation's changes.
func policyBefore(was agent.AuditEntry, now agent.Policy) (p agent.Policy, err error) {
	was.Before, was.After = upgradedPolicy(was.Before), upgradedPolicy(was.After)
	back, err := jsonpatch.CreateMergePatch(was.After, was.Before)
	if err != nil {
		return p, cannotUndo("the entry does not hold what was before", "")
	}
	later, err := jsonpatch.CreateMergePatch(was.After, agent.Encoded(now))
	if err != nil {
		return p, cannotUndo("the entry does not hold what was after", "")
	}
	if name := overlap(back, later); name != "" {
		return p, cannotUndo(name+" was changed again since", "undo the later change first, or PATCH /v1/policy")
	}
	after, err := jsonpatch.MergePatch(agent.Encoded(now), back)
	if err != nil {
		return p, cannotUndo(err.Error(), "")
	}
	return agent.DecodeStoredPolicy(after)
}

// upgradedPolicy returns a policy from the audit trail in the format of this version, or doc itself if it is not a
// policy.
func upgradedPolicy(doc json.RawMessage) json.RawMessage {
	p, err := agent.DecodeStoredPolicy(doc)
	if err != nil {
		return doc
	}
	return agent.Encoded(p)
}

// overlap returns the path of a member that both merge patches set, or "".
func overlap(a, b json.RawMessage) string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return ""
	}
	for name, v := range x {
		w, both := y[name]
		switch {
		case !both:
		case agent.Kind(v) == "object" && agent.Kind(w) == "object":
			if inner := overlap(v, w); inner != "" {
				return name + "." + inner
			}
		default:
			return name
		}
	}
	return ""
}
