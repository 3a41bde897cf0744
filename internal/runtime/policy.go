package runtime

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Policy returns the policy in force, with the value of what is left to the daemon.
func (r *Runtime) Policy() agent.Policy { return r.resolved(r.policy.Load()) }

func (r *Runtime) resolved(p *agent.Policy) agent.Policy {
	whole := *p
	whole.Storage.OwnerShare = r.o.Storage.OwnerShare(p)
	return whole
}

// ChangePolicy replaces the policy with the one that change makes of the policy in force, and stores it together with
// change's audit entry. It is durable when ChangePolicy returns, and in force from the very next call on. Changes run one
// after another. The policy that change is given is the store's, which another runtime may have changed; when one does so meanwhile, change is asked again.
func (r *Runtime) ChangePolicy(ctx context.Context, change func(now agent.Policy) (agent.Policy, *agent.AuditEntry,
	error)) (agent.Policy, error) {
	r.policyMu.Lock()
	defer r.policyMu.Unlock()
	for {
		now, revision, err := r.store.Policy(ctx)
		if err != nil {
			return agent.Policy{}, err
		}
		p, entry, err := change(now)
		if err != nil {
			return agent.Policy{}, err
		}
		switch err := r.store.SetPolicy(ctx, p, revision, entry); {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return agent.Policy{}, err
		}
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

// OnPolicy has changed called whenever another policy has come into force, here or by a replica: the store announces it before. It must be quick.
func (r *Runtime) OnPolicy(changed func()) { r.onPolicy.Store(&changed) }

// Rules returns what is masked by the policy in force; nil for nothing.
func (r *Runtime) Rules() *mask.Rules { return r.rules.Load() }

// PolicyInForce returns the policy in force, to compare by address: each change makes another one. It must not be changed.
func (r *Runtime) PolicyInForce() *agent.Policy { return r.policy.Load() }
