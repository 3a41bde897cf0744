package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
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
