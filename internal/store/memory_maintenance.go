package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
)

// splitTargets gives the artifacts that the targets name, and the roles whose tools they name.
func (n *memoryNamespace) splitTargets(targets []Target) (artifacts []Target, roles []string) {
	for _, t := range targets {
		if t.Method != "" {
			artifacts = append(artifacts, Target{Role: t.Role, Method: t.Method})
			continue
		}
		roles = append(roles, t.Role)
		if t.ToolOnly {
			continue
		}
		for _, method := range n.ranking.Methods(t.Role) {
			artifacts = append(artifacts, Target{Role: t.Role, Method: method})
		}
	}
	return artifacts, roles
}

// Stale is part of Namespace.
func (n *memoryNamespace) Stale(_ context.Context, before time.Time) ([]Target, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ranking.Stale(before), nil
}

// Archive is part of Namespace.
func (n *memoryNamespace) Archive(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, true)
}

// Remove is part of Namespace.
func (n *memoryNamespace) Remove(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, false)
}

func (n *memoryNamespace) takeAway(ctx context.Context, targets []Target, audit agent.AuditEntry, keep bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	artifacts, roles := n.splitTargets(targets)
	for _, t := range artifacts {
		a := n.artifacts[t]
		if a == nil {
			continue
		}
		if keep {
			n.archive[t] = append(n.archive[t], archived{artifact: a, by: audit.ID})
		}
		delete(n.artifacts, t)
		n.ranking.DropArtifact(t.Role, t.Method)
		n.changed(Change{Kind: ChangedArtifact, Role: t.Role, Method: t.Method})
	}
	for _, role := range roles {
		t := n.ranking.Tool(role)
		if t == nil {
			continue
		}
		if keep {
			key := Target{Role: role}
			n.archive[key] = append(n.archive[key], archived{tool: t, by: audit.ID})
		}
		n.ranking.DropTool(role)
		n.changed(Change{Kind: ChangedTool, Role: role})
	}
	n.appendAudit(ctx, &audit)
	return nil
}

// Restore is part of Namespace.
func (n *memoryNamespace) Restore(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	back := map[Target]int{} // where in the archive's list
	for _, t := range targets {
		found := false
		for key, list := range n.archive {
			at := len(list) - 1
			if audit.Undoes != "" {
				at = slices.IndexFunc(list, func(x archived) bool { return x.by == audit.Undoes })
			}
			if at < 0 || key.Role != t.Role || (t.Method != "" || t.ToolOnly) && key.Method != t.Method {
				continue
			}
			found = true
			if n.artifacts[key] != nil || key.Method == "" && n.ranking.Tool(key.Role) != nil {
				return fmt.Errorf("%w: %s", ErrExists, key)
			}
			back[key] = at
		}
		if !found {
			return NotArchived(t)
		}
	}
	for key, at := range back {
		n.bringBack(key, at)
	}
	n.appendAudit(ctx, &audit)
	return nil
}

// Archived is part of Namespace.
func (n *memoryNamespace) Archived(_ context.Context, targets []Target, auditID string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range targets {
		if !slices.ContainsFunc(n.archive[Target{Role: t.Role, Method: t.Method}], func(x archived) bool { return x.by == auditID }) {
			return NotArchived(t)
		}
	}
	return nil
}

// bringBack restores the version at that place of the archive's list.
func (n *memoryNamespace) bringBack(key Target, at int) {
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

// Expire is part of Namespace.
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
		old := r.SessionDays > 0 && idle > time.Duration(r.SessionDays)*24*time.Hour || ids.Ephemeral(id) && r.ValueHours > 0 && idle > time.Duration(r.ValueHours)*time.Hour
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
	maps.DeleteFunc(n.replies, func(_ string, k keptReply) bool { return now.Sub(k.at) >= KeyLife })
	n.due = now.Add(ExpireEvery)
	if len(n.sessions)+len(n.files)+len(n.replies)+len(n.calls) == 0 {
		n.due = Never
	}
	return len(gone), nil
}

var (
	_ Store     = (*Memory)(nil)
	_ Namespace = (*memoryNamespace)(nil)
)
