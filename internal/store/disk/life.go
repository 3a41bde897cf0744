package disk

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// figures is what Stats needs to know of an idle namespace.
type figures struct {
	Tools     int64          `json:"tools"`
	Artifacts map[string]int `json:"artifacts,omitempty"` // by lifecycle state
	FileBytes int64          `json:"file_bytes"`
	// bytes of the files as shares count them; nil in checkpoints of earlier versions
	Files *store.Bytes `json:"files,omitempty"`
}

// taken returns the bytes that an idle namespace takes. ok is false if its checkpoint does not record them.
func (at *checkpointed) taken() (b store.Bytes, ok bool) {
	if at == nil || at.Stored == nil || at.Figures == nil || at.Figures.Files == nil {
		return b, false
	}
	b = at.Stored.bytes()
	b.Add(*at.Figures.Files)
	return b, true
}

// figures returns the figures of a namespace in use. The caller holds shared.mu.
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

// life is what is recorded of a namespace as a whole, in use or idle. It is guarded by shared.mu.
type life struct {
	Created time.Time `json:"created_at,omitzero"`
	// see store.NamespaceInfo; nil if the namespace has changed since it was last expired
	Due *time.Time `json:"due,omitempty"`
}

// errErased is returned by operations on an erased namespace.
var errErased = fmt.Errorf("%w: the namespace was deleted", store.ErrGone)

// broken returns errErased if the namespace was erased, and nil otherwise.
func (n *namespace) broken() error {
	if n.gone.Load() {
		return errErased
	}
	return nil
}

// forget empties an erased namespace for callers that still hold it. Data that is not in memory cannot be read either,
// because its files return errErased. The caller holds sequencer.mu and shared.mu.
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
