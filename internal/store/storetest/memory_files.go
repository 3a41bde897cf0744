package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

type memoryFile struct {
	file agent.File
	data []byte
}

type memoryDraft struct{ bytes.Buffer }

// Discard implements Draft.
func (d *memoryDraft) Discard() { d.Reset() }

// ReadAt implements Draft.
func (d *memoryDraft) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(d.Bytes()).ReadAt(p, off)
}

// NewDraft implements Namespace.
func (n *memoryNamespace) NewDraft() (store.Draft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &memoryDraft{}, n.writable(context.Background())
}

// AddFile implements Namespace.
func (n *memoryNamespace) AddFile(ctx context.Context, f store.NewFile) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if f.SessionID != "" && n.sessions[f.SessionID] == nil {
		return store.ErrNotFound
	}
	n.addFiles([]store.NewFile{f})
	return nil
}

func (n *memoryNamespace) addFiles(files []store.NewFile) {
	for _, f := range files {
		if d, ok := f.Draft.(*memoryDraft); ok {
			n.files[f.ID] = &memoryFile{f.File, d.Bytes()}
			n.fileSums.Add(&f.File)
		}
	}
}

// File implements Namespace.
func (n *memoryNamespace) File(_ context.Context, id string) (agent.File, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.files[id]
	if f == nil || f.file.Expired(n.now()) {
		return agent.File{}, store.ErrNotFound
	}
	return f.file, nil
}

type memoryReader struct{ *bytes.Reader }

// Close implements FileReader.
func (memoryReader) Close() error { return nil }

// OpenFile implements Namespace.
func (n *memoryNamespace) OpenFile(ctx context.Context, id string) (store.FileReader, error) {
	if _, err := n.File(ctx, id); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.files[id]
	if f == nil {
		return nil, store.ErrNotFound
	}
	return memoryReader{bytes.NewReader(f.data)}, nil
}

// ListFiles implements Namespace.
func (n *memoryNamespace) ListFiles(_ context.Context, owner, after string, limit int) ([]agent.File, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []agent.File
	for _, f := range n.files {
		all = append(all, f.file)
	}
	return store.PageFiles(all, n.now(), owner, after, limit), nil
}

// FileBytes implements Namespace.
func (n *memoryNamespace) FileBytes(_ context.Context, owner, session string) (own, all int64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.Memory.namespaces {
		all += m.fileSums.All
	}
	return n.fileSums.Of(owner, session), all, nil
}

// DeleteFile implements Namespace.
func (n *memoryNamespace) DeleteFile(ctx context.Context, id string, audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if n.files[id] == nil {
		return store.ErrNotFound
	}
	n.forgetFiles(func(f *agent.File) bool { return f.ID == id })
	n.appendAudit(ctx, audit)
	return nil
}

// forgetFiles removes the files that drop selects.
func (n *memoryNamespace) forgetFiles(drop func(*agent.File) bool) {
	maps.DeleteFunc(n.files, func(_ string, f *memoryFile) bool {
		if !drop(&f.file) {
			return false
		}
		n.fileSums.Remove(&f.file)
		return true
	})
}

// Join implements Store.
func (m *Memory) Join(_ context.Context, r store.Replica, ttl time.Duration) error {
	return m.members.Join(r, ttl)
}

// Renew implements Store.
func (m *Memory) Renew(_ context.Context, r store.Replica, ttl time.Duration) error {
	return m.members.Renew(r, ttl)
}

// Leave implements Store.
func (m *Memory) Leave(_ context.Context, id string) error {
	m.members.Leave(id)
	return nil
}

// ListReplicas implements Store.
func (m *Memory) ListReplicas(context.Context) ([]store.Replica, error) { return m.members.List(), nil }

// Own implements Namespace.
func (n *memoryNamespace) Own(_ context.Context, sessionID, replica string) (store.Ownership, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions[sessionID] == nil {
		return store.Ownership{}, store.ErrNotFound
	}
	return n.members.Own(n.name, sessionID, replica)
}

// CreateOwned implements Namespace.
func (n *memoryNamespace) CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	if err := n.members.Alive(replica); err != nil {
		return store.Ownership{}, err
	}
	if err := n.CreateSession(ctx, s, sessionContext); err != nil {
		return store.Ownership{}, err
	}
	return n.Own(ctx, s.ID, replica)
}

// Disown implements Namespace.
func (n *memoryNamespace) Disown(_ context.Context, owned map[string]store.Ownership) error {
	n.members.Disown(n.name, owned)
	return nil
}

// Lease implements Namespace.
func (n *memoryNamespace) Lease(ctx context.Context, key string, o store.LeaseOptions) (store.Lease, error) {
	if err := n.alive(); err != nil {
		return nil, err
	}
	return n.members.Lease(ctx, n.name, key, o)
}

// PutCandidate implements Namespace.
func (n *memoryNamespace) PutCandidate(ctx context.Context, key string, c []byte, life time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return errErased
	}
	if err := n.Memory.writable(ctx); err != nil {
		return err
	}
	n.members.PutCandidate(n.name, key, c, life)
	n.changed(store.Change{Kind: store.ChangedCandidate, Name: key})
	return nil
}

// Candidate implements Namespace.
func (n *memoryNamespace) Candidate(_ context.Context, key string) ([]byte, error) {
	return n.members.Candidate(n.name, key)
}

// alive returns an error if the namespace was erased.
func (n *memoryNamespace) alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return errErased
	}
	return nil
}
