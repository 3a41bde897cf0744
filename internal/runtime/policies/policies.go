// Package policies holds the policy in force. Changes of other replicas come into force when Follow reads them. The
// package does not know what a policy decides.
package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Policies holds the policy of a namespace that is in force. Its methods may be called concurrently.
type Policies struct {
	env *env.Env

	policy   atomic.Pointer[agent.Policy]
	rules    atomic.Pointer[mask.Rules] // compiled from the policy
	onPolicy atomic.Pointer[func()]     // called after each change of the policy; nil if nobody registered

	mu       sync.Mutex // held while the policy changes
	revision int64      // of the policy in force; guarded by mu
}

// Read reads the stored policy and puts it into force.
func Read(ctx context.Context, e *env.Env) (*Policies, error) {
	now, revision, err := e.Store.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	p := &Policies{env: e, revision: revision}
	p.enforce(&now)
	return p, nil
}

// Policy returns the policy in force. Settings that are left to the daemon have their effective values.
func (p *Policies) Policy() agent.Policy { return p.resolved(p.policy.Load()) }

// resolved returns a copy of the policy in which settings left to the daemon have their effective values.
func (p *Policies) resolved(now *agent.Policy) agent.Policy {
	whole := *now
	whole.Storage.OwnerShare = p.env.Storage.OwnerShare(now)
	return whole
}

// ChangePolicy stores what change makes of the policy, together with change's audit entry, and returns the new policy.
// The change is durable when ChangePolicy returns, and applies from the next call on. Changes run one after another.
// change receives the store's policy, which another Runtime may have written; if that happens meanwhile, change is
// called again.
func (p *Policies) ChangePolicy(ctx context.Context, change func(now agent.Policy) (agent.Policy, *agent.AuditEntry,
	error)) (agent.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		now, revision, err := p.env.Store.Policy(ctx)
		if err != nil {
			return agent.Policy{}, err
		}
		next, entry, err := change(now)
		if err != nil {
			return agent.Policy{}, err
		}
		switch err := p.env.Store.SetPolicy(ctx, next, revision, entry); {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return agent.Policy{}, err
		}
		// Follow compares revisions, and so ignores this change when the store reports it.
		p.revision = revision + 1
		p.enforce(&next)
		return p.resolved(&next), nil
	}
}

// enforce puts the policy into force.
func (p *Policies) enforce(next *agent.Policy) {
	p.rules.Store(mask.Compile(next.RedactKeys))
	p.policy.Store(next)
	if changed := p.onPolicy.Load(); changed != nil {
		(*changed)()
	}
}

// OnPolicy registers changed, which is called whenever another policy has come into force, here or on another replica.
// It replaces an earlier function. changed must return quickly.
func (p *Policies) OnPolicy(changed func()) { p.onPolicy.Store(&changed) }

// Rules returns the masking rules of the policy in force.
func (p *Policies) Rules() *mask.Rules { return p.rules.Load() }

// PolicyInForce returns the policy in force for comparison by address: each change makes a new one. The policy must not
// be modified.
func (p *Policies) PolicyInForce() *agent.Policy { return p.policy.Load() }

// Follow puts the stored policy into force if it differs from the current one.
func (p *Policies) Follow(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, revision, err := p.env.Store.Policy(ctx)
	if err != nil {
		p.env.Logger.Error().Err(err).Msg(
			"the policy that another replica changed could not be read; the one before stays in force")
		return err
	}
	if revision != p.revision {
		p.revision = revision
		p.enforce(&next)
	}
	return nil
}
