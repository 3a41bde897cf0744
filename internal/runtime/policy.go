package runtime

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Policy returns the policy in force. Settings that are left to the daemon have their effective values.
func (r *Runtime) Policy() agent.Policy { return r.resolved(r.policy.Load()) }

// resolved returns a copy of the policy in which settings left to the daemon have their effective values.
func (r *Runtime) resolved(p *agent.Policy) agent.Policy {
	whole := *p
	whole.Storage.OwnerShare = r.env.Storage.OwnerShare(p)
	return whole
}

// ChangePolicy stores what change makes of the policy, together with change's audit entry, and returns the new policy.
// The change is durable when ChangePolicy returns, and applies from the next call on. Changes run one after another.
// change receives the store's policy, which another Runtime may have written; if that happens meanwhile, change is
// called again.
func (r *Runtime) ChangePolicy(ctx context.Context, change func(now agent.Policy) (agent.Policy, *agent.AuditEntry,
	error)) (agent.Policy, error) {
	r.policyMu.Lock()
	defer r.policyMu.Unlock()
	for {
		now, revision, err := r.env.Store.Policy(ctx)
		if err != nil {
			return agent.Policy{}, err
		}
		p, entry, err := change(now)
		if err != nil {
			return agent.Policy{}, err
		}
		switch err := r.env.Store.SetPolicy(ctx, p, revision, entry); {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return agent.Policy{}, err
		}
		// followPolicy compares revisions, and so ignores this change when the store reports it.
		r.policyRevision = revision + 1
		r.enforce(&p)
		return r.resolved(&p), nil
	}
}

// enforce puts the policy into force.
func (r *Runtime) enforce(p *agent.Policy) {
	r.rules.Store(mask.Compile(p.RedactKeys))
	r.policy.Store(p)
	if changed := r.onPolicy.Load(); changed != nil {
		(*changed)()
	}
}

// OnPolicy registers changed, which is called whenever another policy has come into force, here or on another replica.
// It replaces an earlier function. changed must return quickly.
func (r *Runtime) OnPolicy(changed func()) { r.onPolicy.Store(&changed) }

// Rules returns the masking rules of the policy in force.
func (r *Runtime) Rules() *mask.Rules { return r.rules.Load() }

// PolicyInForce returns the policy in force for comparison by address: each change makes a new one. The policy must not
// be modified.
func (r *Runtime) PolicyInForce() *agent.Policy { return r.policy.Load() }
