package disk

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// apply shows readers the changes of a planned entry. The caller holds sequencer.mu and shared.mu.
func (n *namespace) apply(e *entry) {
	n.applied = e.lsn
	n.life.Due = nil
	n.stored.apply(e)
	if e.Create != nil {
		n.sessions.applyCreate(e)
	}
	if e.planned.session != nil {
		n.sessions.applyChange(e)
	}
	// See store.Change: only ChangeArtifact commits an audit entry with exactly one change of an artifact.
	operated := e.Audit != nil && len(e.Artifacts) == 1 && e.Artifacts[0].Renews() && len(e.Delete) == 0
	for _, x := range e.artifacts {
		n.applyArtifact(x, operated)
	}
	for _, t := range e.tools {
		n.catalog.applyTool(t)
		n.changed(store.Change{Kind: store.ChangedTool, Role: t.Role, Revision: t.Revision})
	}
	n.artifacts.keepPrograms(e.Artifacts)
	n.evidence.add(e)
	n.spending.add(e)
	if e.Pattern != nil {
		n.patterns.add(e.Pattern)
	}
	if e.Content != nil {
		n.contents.put(*e.Content, e.Session, n.policies.policy.Retention)
	}
	if e.call != nil && !e.skipLog {
		n.calls.apply(e)
		if n.feed.Watched() {
			n.changed(store.Change{Kind: store.ChangedCall, CallID: e.call.log.CallID, SessionID: e.Session,
				Log: &e.call.log})
		}
	}
	if e.Policy != nil {
		n.policies.apply(e.Policy)
		n.changed(store.Change{Kind: store.ChangedPolicy, Revision: n.policies.revision})
	}
	if e.Connect != nil || e.Disconnect != "" {
		n.applyConnection(e)
	}
	if e.Audit != nil {
		n.auditTrail.apply(e.Audit)
	}
	n.streams.add(e.Files)
	n.streams.remove(e.FilesGone)
	for _, id := range e.Delete {
		n.applyDelete(id)
	}
	if e.Move != nil {
		n.applyMove(e)
	}
	n.applySpaces(e)
}

// changed adds a change of the namespace to the feed.
func (n *namespace) changed(c store.Change) {
	c.Namespace = n.name
	n.feed.add(c)
}

// applyArtifact shows readers the next state of an artifact, or its removal if x.a is nil.
func (n *namespace) applyArtifact(x *artifact, operated bool) {
	n.artifacts.changed[x.key] = x
	c := store.Change{Kind: store.ChangedArtifact, Role: x.key.role, Method: x.key.method}
	if x.a == nil {
		n.catalog.dropArtifact(x.key)
	} else {
		n.catalog.setArtifact(x.key, store.FiguresOf(x.a))
		c.Revision, c.Operated = x.a.Revision, operated
	}
	n.changed(c)
}

// applyDelete removes a session from memory. The flusher erases it from the files.
func (n *namespace) applyDelete(id string) {
	n.sessions.applyDelete(id)
	n.members.Forget(n.name, id)
	n.calls.erase(id)
	n.auditTrail.forget(id)
	n.patterns.forget(id)
	n.contents.forget(id)
	n.streams.forget(id)
}

// applyMove removes from use what planAway found, or puts back what planRestore found.
func (n *namespace) applyMove(e *entry) {
	for _, x := range e.away {
		if e.Move.Kind == "archive" { // earlier versions wrote "remove", too
			n.archive.pending = append(n.archive.pending, x)
		}
		if x.tool == nil {
			n.applyArtifact(&artifact{key: x.artifact.key, lsn: e.lsn}, false)
			continue
		}
		n.catalog.dropTool(x.tool.Role)
		n.changed(store.Change{Kind: store.ChangedTool, Role: x.tool.Role})
	}
	for _, x := range e.restored {
		n.archive.restored = append(n.archive.restored, x.name)
		if x.tool != nil {
			n.catalog.setTool(x.tool)
			n.catalog.registry.behind = true
			n.changed(store.Change{Kind: store.ChangedTool, Role: x.tool.Role, Revision: x.tool.Revision})
		} else if x.artifact != nil {
			n.applyArtifact(x.artifact, false)
		}
	}
}

// sameContract reports whether two versions of a tool differ only in usage figures. It compares slices by address
// instead of content, because a contract that was not set again shares its bytes.
func sameContract(a, b *agent.Tool) bool {
	same := func(x, y json.RawMessage) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a.Purpose == b.Purpose && same(a.Deliverable, b.Deliverable) && same(a.Acceptance, b.Acceptance) &&
		same(a.FailurePolicy, b.FailurePolicy) &&
		same(a.Signature, b.Signature) && len(a.Methods) == 0 && len(b.Methods) == 0 && a.Proposals == b.Proposals
}
