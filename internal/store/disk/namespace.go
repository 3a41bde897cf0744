package disk

import (
	"context"
	"fmt"
	"path"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// namespace holds the data of one namespace. Each part implements its share of store.Namespace.
type namespace struct {
	*shared
	store     *Store
	name      agent.Namespace
	sequencer *sequencer
	flusher   *flusher
	root      *files // files of the store
	files     *files // files of the namespace
	batch     batch

	exists atomic.Bool // the directories exist and the checkpoint names the namespace
	gone   atomic.Bool // the namespace was erased
	life   life        // guarded by shared.mu

	*sessions
	*calls
	*artifacts
	*catalog
	*policies
	*auditTrail
	*patterns
	*evidence
	*contents
	*streams
	*stored
	*connections
	*spending
	*archive
	*retention
}

// namespacesDir holds the directories of the namespaces, except the default one.
const namespacesDir = "ns"

// namespaceDir returns the directory of a namespace, relative to that of the store.
func namespaceDir(name agent.Namespace) string {
	if name == agent.DefaultNamespace {
		return "."
	}
	return path.Join(namespacesDir, string(name))
}

// journalName returns the name of a namespace as it is written to the journal: "" for the default one, as in earlier
// versions.
func journalName(name agent.Namespace) agent.Namespace {
	if name == agent.DefaultNamespace {
		return ""
	}
	return name
}

// newNamespace creates the parts of a namespace. It reads nothing; see load.
func newNamespace(s *Store, name agent.Namespace) *namespace {
	n := &namespace{shared: s.shared, store: s, name: name, sequencer: s.sequencer, flusher: s.flusher, root: s.root,
		files: s.root}
	if name != agent.DefaultNamespace {
		n.files = newFiles(s.shared, namespaceDir(name))
		n.files.FS = vfs.While(n.files.FS, n.broken)
	}
	n.sessions = &sessions{n: n, changed: map[string]*session{}, unread: map[string]unread{},
		gone: map[string]time.Time{}}
	n.calls = newCalls(n)
	n.artifacts = &artifacts{n: n, changed: map[artifactKey]*artifact{}, programs: map[string]string{}}
	n.catalog = newCatalog(n)
	n.policies = newPolicies(n)
	n.auditTrail = &auditTrail{n: n}
	n.patterns = newPatterns(n)
	n.evidence = newEvidence(n)
	n.contents = newContents(n)
	n.streams = newStreams(n)
	n.stored = newStored(n)
	n.connections = newConnections(n)
	n.spending = newSpending(n)
	n.archive = &archive{n: n}
	n.retention = &retention{n: n}
	policy := agent.DefaultPolicy()
	n.policies.policy = &policy
	return n
}

// held returns the documents that are held in memory in full.
func (n *namespace) held() []*held {
	return []*held{&n.policies.doc, &n.catalog.registry, &n.catalog.index, &n.patterns.doc, &n.evidence.doc,
		&n.contents.doc, &n.streams.doc, &n.connections.doc, &n.spending.doc}
}

// layOut creates the directories and removes temporary files that were left when the store last stopped.
func (n *namespace) layOut() error {
	if n.name != agent.DefaultNamespace {
		if err := n.root.makeDir(namespaceDir(n.name)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tools", "sessions", "programs", "calls", "values", filesDir} {
		if _, err := n.files.Stat(dir); err == nil {
			continue
		}
		if err := n.files.makeDir(dir); err != nil {
			return err
		}
	}
	return n.files.Clean()
}

// checkpointed is what a checkpoint records of a namespace. Lines after the recorded places come from entries after the
// checkpoint.
type checkpointed struct {
	Calls     jsonl.Place `json:"calls"`
	Values    jsonl.Place `json:"values"`
	Audit     int64       `json:"audit_bytes"`
	AuditHead *chain.Head `json:"audit_head,omitempty"` // of the chain at that place; nil if it has not begun
	Sessions  int64       `json:"sessions"`             // number of sessions; -1 if they were not counted

	Unarchived []string `json:"unarchived,omitempty"` // files of the archive that must be removed

	life
	Figures *figures   `json:"figures,omitempty"` // nil in checkpoints of earlier versions
	Stored  *storedDoc `json:"stored,omitempty"`  // nil in checkpoints of earlier versions and if something was damaged
}

// load reads the documents that are held in memory and opens the line logs. at is nil if no checkpoint names the
// namespace. load reports whether a document was corrupt.
func (n *namespace) load(at *checkpointed) (corrupt bool, err error) {
	for _, part := range []interface{ load() (bool, error) }{n.catalog, n.policies, n.patterns, n.evidence, n.contents,
		n.streams, n.connections, n.spending} {
		bad, err := part.load()
		if err != nil {
			return false, err
		}
		corrupt = corrupt || bad
	}
	var calls, values *jsonl.Place
	n.sessions.count = -1
	if at != nil {
		calls, values, n.sessions.count, n.life = &at.Calls, &at.Values, at.Sessions, at.life
	}
	if err := n.calls.entries.Open(calls); err != nil {
		return false, err
	}
	if err := n.calls.values.Open(values); err != nil {
		return false, err
	}
	if err := n.auditTrail.open(at); err != nil {
		return false, err
	}
	if err := n.evidence.rebuild(); err != nil {
		return false, err
	}
	n.stored.load(at)
	if at == nil {
		return corrupt, nil
	}
	if err := checkArchived(at.Unarchived); err != nil {
		return false, fmt.Errorf("%s: %w", checkpointFile, err)
	}
	return corrupt, n.files.removeAll(at.Unarchived)
}

// newEntry returns an entry for a change other than a call.
func (n *namespace) newEntry() *entry {
	return &entry{NS: journalName(n.name), At: n.now().UnixMilli(), planned: &planned{namespace: n}}
}

// commit makes the entry durable and applies it. The first commit of a namespace creates the namespace.
func (n *namespace) commit(ctx context.Context, c *commit) error {
	if err := n.make(); err != nil {
		return err
	}
	err := n.sequencer.commit(ctx, c)
	if err == nil && c.entry.Audit != nil {
		store.Acknowledge(ctx, c.entry.Audit)
	}
	return err
}

// make creates the namespace if it does not exist. It returns errErased if it was erased, and store.ErrReadOnly if the
// directories cannot be created.
func (n *namespace) make() error {
	if err := n.broken(); err != nil {
		return err
	}
	if n.exists.Load() {
		return nil
	}
	if err := n.health.ready(); err != nil {
		return err
	}
	if err := n.flusher.create(n); err != nil {
		if n.gone.Load() {
			return errErased
		}
		n.health.fail(err)
		return n.health.ready()
	}
	return nil
}

var _ store.Namespace = (*namespace)(nil)
