package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

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
