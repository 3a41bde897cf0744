package storetest

import (
	"cmp"
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Stored implements Namespace. It counts everything each time, as the reference for the running sums of other stores.
func (n *memoryNamespace) Stored(_ context.Context, owner string) (s store.Stored, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.Memory.namespaces {
		sums := m.stored()
		if m == n {
			s.Own, s.All = sums.Of(owner), sums.All
		} else {
			s.Others.Add(sums.All)
		}
	}
	return s, nil
}

// ListStored implements Namespace.
func (n *memoryNamespace) ListStored(_ context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sums := n.stored()
	return store.PageStored(sums.List(), after, limit), nil
}

// stored counts everything. The caller holds mu.
func (n *memoryNamespace) stored() (s store.Sums) {
	for _, x := range n.sessions {
		s.Add(x.session.Owner, store.Bytes{Contexts: store.SessionBytes(x.session) + store.ContextBytes(x.context)})
		for i := range x.records {
			s.Add(x.session.Owner, store.Bytes{Histories: int64(len(x.records[i].raw))})
		}
	}
	for _, c := range n.calls {
		kept := int64(len(c.effects)) + store.DebugBytes(&c.log)
		if c.outcome != nil {
			kept += int64(len(agent.Encoded(c.outcome)))
		}
		s.Add(n.ownerOf(c.log.SessionID, c.log.Owner), store.Bytes{Values: kept})
	}
	for _, k := range n.replies {
		s.Add(n.ownerOf(k.session, ""), store.Bytes{Values: int64(len(k.reply.Reply))})
	}
	for _, f := range n.files {
		s.Add(f.file.Owner, store.FileBytes(&f.file))
	}
	for _, a := range n.artifacts {
		store.ArtifactBytes(a, s.Add)
	}
	for _, role := range n.ranking.Roles() {
		store.ToolBytes(n.ranking.Tool(role), s.Add)
	}
	return s
}

// ownerOf returns the owner of a call's values: the session's owner or, if the session is gone, the owner named in the
// log entry.
func (n *memoryNamespace) ownerOf(session, named string) string {
	if x := n.sessions[session]; x != nil {
		return x.session.Owner
	}
	return cmp.Or(named, agent.LocalOwner)
}
