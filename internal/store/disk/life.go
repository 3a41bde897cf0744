package disk

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// figures is what Stats say of an idle namespace.
type figures struct {
	Tools     int64          `json:"tools"`
	Artifacts map[string]int `json:"artifacts,omitempty"` // by lifecycle state
	FileBytes int64          `json:"file_bytes"`
	Files     *store.Bytes   `json:"files,omitempty"` // what they count as; nil in a checkpoint of an earlier version
}

// taken is what an idle namespace takes; ok is false where its checkpoint does not say.
func (at *checkpointed) taken() (b store.Bytes, ok bool) {
	if at == nil || at.Stored == nil || at.Figures == nil || at.Figures.Files == nil {
		return b, false
	}
	b = at.Stored.bytes()
	b.Add(*at.Figures.Files)
	return b, true
}

// figures returns those of a namespace in use. The caller holds shared.mu.
func (n *namespace) figures() *figures {
	files := n.streams.owners.All
	f := &figures{Tools: int64(n.catalog.ranking.Tools()), Artifacts: map[string]int{}, FileBytes: n.streams.sums.All,
		Files: &files}
	for state, count := range n.catalog.ranking.States() {
		if count > 0 {
			f.Artifacts[state] = count
		}
	}
	return f
}

// life is what is known of a namespace as a whole, whether it is in use or idle. Guarded by shared.mu.
type life struct {
	Created time.Time  `json:"created_at,omitzero"`
	Due     *time.Time `json:"due,omitempty"` // see store.NamespaceInfo; nil: since it was last expired it changed
}

// errErased is what an erased namespace answers.
var errErased = fmt.Errorf("%w: the namespace was deleted", store.ErrGone)

// broken returns errErased once the namespace is erased.
func (n *namespace) broken() error {
	if n.gone.Load() {
		return errErased
	}
	return nil
}

// forget empties an erased namespace, for those who hold it still: what is not in memory is refused by its files. The caller holds
// sequencer.mu and shared.mu.
func (n *namespace) forget() {
	n.gone.Store(true)
	n.members.Erase(n.name)
	n.shared.total = n.shared.total.Minus(n.taken())
	empty := newNamespace(n.store, n.name)
	n.sessions.changed, n.sessions.unread, n.sessions.gone = empty.sessions.changed, empty.sessions.unread,
		empty.sessions.gone
	n.sessions.ids, n.sessions.count = nil, 0
	n.calls.pending, n.calls.byID, n.calls.byKey, n.calls.corrections = nil, empty.calls.byID, empty.calls.byKey,
		empty.calls.corrections
	n.artifacts.changed, n.artifacts.programs = empty.artifacts.changed, empty.artifacts.programs
	n.catalog.ranking, n.catalog.roles = empty.catalog.ranking, nil
	n.policies.policy = empty.policies.policy
	n.auditTrail.pending, n.auditTrail.bytes, n.auditTrail.chainHead = nil, 0, chain.Head{}
	n.patterns.roles, n.patterns.count = empty.patterns.roles, 0
	n.evidence.all = empty.evidence.all
	n.contents.kept = store.Contents{}
	n.streams.known, n.streams.sums, n.streams.owners, n.streams.gone = empty.streams.known, empty.streams.sums,
		empty.streams.owners, empty.streams.gone
	n.stored.kept, n.stored.values = store.Sums{}, store.Sums{}
	n.connections.all = empty.connections.all
	n.archive.pending, n.archive.restored = nil, nil
	n.life = life{}
	for k := range n.sessionCache.Keys() {
		if k.namespace == n {
			n.sessionCache.Invalidate(k)
		}
	}
	for k := range n.artifactCache.Keys() {
		if k.namespace == n {
			n.artifactCache.Invalidate(k)
		}
	}
}
