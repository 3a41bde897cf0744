package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
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

// Artifact implements Namespace.
func (n *memoryNamespace) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.artifacts[store.Target{Role: role, Method: method}]; a != nil {
		return a, nil
	}
	return nil, store.ErrNotFound
}

// ChangeArtifact implements Namespace.
func (n *memoryNamespace) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
	audit *agent.AuditEntry) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return nil, err
	}
	old := n.artifacts[store.Target{Role: c.Role, Method: c.MethodName}]
	if err := store.CheckChange(old, revision, &c); err != nil {
		return nil, err
	}
	a := n.changeArtifact(c, audit != nil && c.Renews())
	n.appendAudit(ctx, audit)
	return a, nil
}

// ListArtifacts implements Namespace.
func (n *memoryNamespace) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []*agent.Artifact{}
	for _, method := range n.ranking.Methods(role) {
		out = append(out, n.artifacts[store.Target{Role: role, Method: method}])
	}
	return out, nil
}

// Program implements Namespace.
func (n *memoryNamespace) Program(_ context.Context, checksum string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if code, ok := n.programs[checksum]; ok {
		return code, nil
	}
	return "", store.ErrNotFound
}

// ListConnections implements Namespace.
func (n *memoryNamespace) ListConnections(context.Context) ([]agent.Connection, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return store.SortedConnections(n.conns), nil
}

// PutConnection implements Namespace.
func (n *memoryNamespace) PutConnection(ctx context.Context, c agent.Connection, revision int64,
	audit *agent.AuditEntry) (agent.Connection, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return agent.Connection{}, err
	}
	old, found := n.conns[c.Name]
	if !found && len(n.conns) >= store.MaxConnections {
		return agent.Connection{}, store.ErrTooMany
	}
	next, err := store.ReplaceConnection(old, c, revision, n.now())
	if err != nil {
		return agent.Connection{}, err
	}
	n.conns[c.Name] = next
	n.appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedConnection, Name: c.Name, Revision: next.Revision})
	return next, nil
}

// DeleteConnection implements Namespace.
func (n *memoryNamespace) DeleteConnection(ctx context.Context, name string, revision int64,
	audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	old, found := n.conns[name]
	if !found {
		return store.ErrNotFound
	}
	if !store.Matches(revision, old.Revision) {
		return store.ErrConflict
	}
	delete(n.conns, name)
	n.appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedConnection, Name: name})
	return nil
}

// splitTargets returns the artifacts and the roles of tools that the targets name. Targets with Restored are left out:
// takeAway handles them, and the artifact in use stays.
func (n *memoryNamespace) splitTargets(targets []store.Target) (artifacts []store.Target, roles []string) {
	for _, t := range targets {
		if t.Restored != "" {
			continue
		}
		if t.Method != "" {
			artifacts = append(artifacts, store.Target{Role: t.Role, Method: t.Method})
			continue
		}
		roles = append(roles, t.Role)
		if t.ToolOnly {
			continue
		}
		for _, method := range n.ranking.Methods(t.Role) {
			artifacts = append(artifacts, store.Target{Role: t.Role, Method: method})
		}
	}
	return artifacts, roles
}

// Stale implements Namespace.
func (n *memoryNamespace) Stale(_ context.Context, before time.Time) ([]store.Target, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ranking.Stale(before), nil
}

// Archive implements Namespace.
func (n *memoryNamespace) Archive(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, false)
}

// Remove implements Namespace.
func (n *memoryNamespace) Remove(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, true)
}

func (n *memoryNamespace) takeAway(ctx context.Context, targets []store.Target, audit agent.AuditEntry, deleted bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	var below []agent.ArtifactChange
	for _, t := range targets {
		if t.Restored == "" {
			continue
		}
		c, err := store.TakeRestored(n.artifacts[store.Target{Role: t.Role, Method: t.Method}], t, n.now())
		if err != nil {
			return err
		}
		below = append(below, c)
	}
	artifacts, roles := n.splitTargets(targets)
	keep := func(key store.Target, x archived) {
		x.by, x.at, x.deleted = audit.ID, n.now(), deleted
		n.archive[key] = append(n.archive[key], x)
	}
	for _, t := range artifacts {
		a := n.artifacts[t]
		if a == nil {
			continue
		}
		keep(t, archived{artifact: a})
		delete(n.artifacts, t)
		n.ranking.DropArtifact(t.Role, t.Method)
		n.changed(store.Change{Kind: store.ChangedArtifact, Role: t.Role, Method: t.Method})
	}
	for _, role := range roles {
		t := n.ranking.Tool(role)
		if t == nil {
			continue
		}
		keep(store.Target{Role: role}, archived{tool: t})
		n.ranking.DropTool(role)
		n.changed(store.Change{Kind: store.ChangedTool, Role: role})
	}
	for _, c := range below {
		n.changeArtifact(c, false)
	}
	n.appendAudit(ctx, &audit)
	return nil
}

// Restore implements Namespace.
func (n *memoryNamespace) Restore(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	back, r := map[store.Target]int{}, store.Restoring{} // back: index in the archive's list
	for _, t := range targets {
		for _, key := range slices.SortedFunc(maps.Keys(n.archive), store.CompareTargets) {
			at := n.archivedAt(key, cmp.Or(t.From, audit.Undoes))
			if at < 0 || !t.Of(key.Role, key.Method) {
				continue
			}
			switch now := n.artifacts[key]; {
			case now != nil:
				r.Beneath(now, n.archive[key][at].artifact, &audit, n.archive[key][at].by, n.now())
			case key.Method == "" && n.ranking.Tool(key.Role) != nil:
				r.Stays(key, nil)
			default:
				r.Whole()
				back[key] = at
			}
		}
		if err := r.End(t); err != nil {
			return err
		}
	}
	for key, at := range back {
		n.bringBack(key, at)
	}
	for _, c := range r.Below {
		n.changeArtifact(c, false)
	}
	n.appendAudit(ctx, &audit)
	return nil
}

// archivedAt returns the index of the version that operation by archived, or of the latest one if by is "". It returns
// -1 if there is none.
func (n *memoryNamespace) archivedAt(key store.Target, by string) int {
	now := n.now()
	for i, x := range slices.Backward(n.archive[key]) {
		if (by == "" || x.by == by) && !store.Ended(x.deleted, x.at, now) {
			return i
		}
	}
	return -1
}

// Archived implements Namespace.
func (n *memoryNamespace) Archived(_ context.Context, targets []store.Target, auditID string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range targets {
		if n.archivedAt(store.Target{Role: t.Role, Method: t.Method}, cmp.Or(t.From, auditID)) < 0 {
			return store.NotArchived(t)
		}
	}
	return nil
}

// endDeleted drops removed versions that cannot be restored any more. It reports whether others still wait for their
// end.
func (n *memoryNamespace) endDeleted(now time.Time) (waits bool) {
	for key, list := range n.archive {
		list = slices.DeleteFunc(list, func(x archived) bool { return store.Ended(x.deleted, x.at, now) })
		if n.archive[key] = list; len(list) == 0 {
			delete(n.archive, key)
		}
		waits = waits || slices.ContainsFunc(list, func(x archived) bool { return x.deleted })
	}
	return waits
}

// bringBack restores the version at that index of the archive's list.
func (n *memoryNamespace) bringBack(key store.Target, at int) {
	x := n.archive[key][at]
	if n.archive[key] = slices.Delete(n.archive[key], at, at+1); len(n.archive[key]) == 0 {
		delete(n.archive, key)
	}
	if x.tool != nil {
		n.setTool(x.tool)
	} else {
		n.setArtifact(x.artifact, false)
	}
}

// Expire implements Namespace.
func (n *memoryNamespace) Expire(ctx context.Context, now time.Time) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return 0, errErased
	}
	if err := n.Memory.writable(ctx); err != nil {
		return 0, err
	}
	r := n.policy.Retention
	gone := []string{}
	all := slices.Sorted(maps.Keys(n.sessions))
	for i, id := range all {
		idle := now.Sub(n.sessions[id].session.UpdatedAt)
		old := r.SessionDays > 0 && idle > time.Duration(r.SessionDays)*24*time.Hour || ids.Ephemeral(id) &&
			r.ValueHours > 0 && idle > time.Duration(r.ValueHours)*time.Hour
		if old || r.MaxSessions > 0 && len(all)-i > r.MaxSessions {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		if err := n.deleteSession(id); err != nil {
			return 0, err
		}
	}
	n.forgetFiles(func(f *agent.File) bool { return f.Expired(now) })
	maps.DeleteFunc(n.replies, func(_ string, k keptReply) bool { return now.Sub(k.at) >= store.KeyLife })
	waits := n.endDeleted(now)
	n.due = now.Add(store.ExpireEvery)
	if !waits && len(n.sessions)+len(n.files)+len(n.replies)+len(n.calls) == 0 {
		n.due = store.Never
	}
	return len(gone), nil
}

var (
	_ store.Store     = (*Memory)(nil)
	_ store.Namespace = (*memoryNamespace)(nil)
)
