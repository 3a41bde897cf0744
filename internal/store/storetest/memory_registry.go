package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Tool implements Namespace.
func (n *memoryNamespace) Tool(_ context.Context, role string) (agent.Tool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.ranking.Tool(role); t != nil {
		return *t, nil
	}
	return agent.Tool{}, store.ErrNotFound
}

// ListTools implements Namespace.
func (n *memoryNamespace) ListTools(_ context.Context, after string, limit int) ([]agent.Tool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	roles := n.ranking.Roles()
	slices.Sort(roles)
	out := []agent.Tool{}
	for _, role := range roles {
		if t := n.ranking.Tool(role); t != nil && role > after && len(out) < limit {
			out = append(out, *t)
		}
	}
	return out, nil
}

// RankTools implements Namespace.
func (n *memoryNamespace) RankTools(_ context.Context, now time.Time, limit int) ([]store.RankedTool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ranking.Top(now, limit), nil
}

// RankedTool implements Namespace.
func (n *memoryNamespace) RankedTool(_ context.Context, role string, now time.Time) (store.RankedTool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, ok := n.ranking.Of(role, now)
	if !ok {
		return t, fmt.Errorf("%w: tool %s", store.ErrNotFound, role)
	}
	return t, nil
}

// PutTool implements Namespace.
func (n *memoryNamespace) PutTool(ctx context.Context, t agent.Tool, revision int64,
	audit *agent.AuditEntry) (agent.Tool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return agent.Tool{}, err
	}
	next, err := store.ReplaceTool(n.ranking.Tool(t.Role), t, revision, n.now())
	if err != nil {
		return agent.Tool{}, err
	}
	n.setTool(next)
	n.appendAudit(ctx, audit)
	return *next, nil
}

// Policy implements Namespace.
func (n *memoryNamespace) Policy(context.Context) (agent.Policy, int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return agent.Policy{}, 0, errErased
	}
	return n.policy, n.policyRev, nil
}

// SetPolicy implements Namespace.
func (n *memoryNamespace) SetPolicy(ctx context.Context, p agent.Policy, revision int64,
	audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if !store.Matches(revision, n.policyRev) {
		return store.ErrConflict
	}
	n.policy = p
	n.policyRev++
	n.appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedPolicy, Revision: n.policyRev})
	return nil
}

// Audit implements Namespace.
func (n *memoryNamespace) Audit(_ context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	page := store.NewAuditPage(q)
	for i := len(n.audit) - 1; i >= 0 && !page.Add(&n.audit[i]); i-- {
	}
	return page.Entries, nil
}

// AuditHead implements Namespace.
func (n *memoryNamespace) AuditHead(context.Context) (chain.Head, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.head, nil
}

// AppendAudit implements Namespace.
func (n *memoryNamespace) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	n.appendAudit(ctx, &e)
	return nil
}

func (n *memoryNamespace) appendAudit(ctx context.Context, e *agent.AuditEntry) {
	if e == nil {
		return
	}
	if !n.head.Begun() {
		n.head = chain.Start(n.name, 0, "")
	}
	linked := *e
	head, err := chain.Link(n.head, &linked)
	if err != nil {
		return // not JSON, which other stores reject
	}
	n.head, n.audit = head, append(n.audit, linked)
	store.Acknowledge(ctx, e)
}

// forgetAudit erases the bodies of a session's entries. The chain keeps their links.
func (n *memoryNamespace) forgetAudit(session string) {
	for i, e := range n.audit {
		if e.SessionID == session {
			n.audit[i] = chain.Erase(e)
		}
	}
}
