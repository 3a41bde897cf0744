package disk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
)

// policies is the part that holds the policy.
type policies struct {
	n *namespace

	changing locks.Mutex // held while a change is checked and committed

	policy   *agent.Policy // never changed in place; guarded by shared.mu, as all below
	revision int64
	doc      held
}

// policyDoc is policy.json.
type policyDoc struct {
	head
	Revision int64           `json:"revision"`
	Policy   json.RawMessage `json:"policy"`
}

func newPolicies(n *namespace) *policies {
	p := &policies{n: n}
	p.doc = held{name: policyFile, render: p.render}
	return p
}

// load reads the policy. If it is missing or corrupt, the default policy applies. load reports whether it was corrupt.
func (p *policies) load() (corrupt bool, err error) {
	var doc policyDoc
	policy := agent.DefaultPolicy()
	corrupt, err = readOptional(p.n.files, policyFile, &doc, func() (err error) {
		policy, err = decodePolicy(doc.Policy)
		return err
	})
	if doc.Policy == nil {
		policy = agent.DefaultPolicy()
	}
	p.policy, p.revision, p.doc.lsn = &policy, doc.Revision, doc.LSN
	return corrupt, err
}

// decodePolicy decodes a policy over the defaults, which supply settings that an older daemon did not know.
func decodePolicy(data []byte) (agent.Policy, error) {
	p := agent.DefaultPolicy()
	p.RedactVersion = 0 // older daemons did not store it
	if len(data) == 0 {
		return p, errors.New("holds no policy")
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	p.Upgrade()
	return p, p.Validate()
}

func (p *policies) render(h head) (any, error) {
	text, err := json.Marshal(p.policy)
	return policyDoc{h, p.revision, text}, err
}

// apply applies a change. The caller holds shared.mu.
func (p *policies) apply(policy *agent.Policy) {
	upgraded := *policy
	upgraded.Upgrade() // it may come from the journal of an older daemon
	p.policy = &upgraded
	p.revision++
	p.doc.behind = true
}

// current returns the policy, which must not be changed.
func (p *policies) current() *agent.Policy {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.policy
}

// Policy is part of store.Namespace.
func (p *policies) Policy(context.Context) (agent.Policy, int64, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return *p.policy, p.revision, nil
}

// SetPolicy is part of store.Namespace.
func (p *policies) SetPolicy(ctx context.Context, policy agent.Policy, revision int64, audit *agent.AuditEntry) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if _, now, _ := p.Policy(ctx); !store.Matches(revision, now) {
		return store.ErrConflict
	}
	e := p.n.newEntry()
	e.Policy, e.Audit = &policy, audit
	return p.n.commit(ctx, &commit{entry: e})
}
