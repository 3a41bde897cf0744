package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// filesDir holds the bytes of the files, each under its id. They are on disk before the journal entry that creates the
// file, and are removed after the entry that deletes it.
const filesDir = "files"

// streams is the part that holds the files of clients and programs.
type streams struct {
	n *namespace

	known map[string]agent.File // guarded by shared.mu, as all below
	sums  store.FileSums        // of known
	gone  map[string]bool       // ids of deleted files whose bytes may still be on disk
	doc   held

	owners store.Sums // bytes of known by owner, as shares count them
}

// filesDoc is files.json.
type filesDoc struct {
	head
	Files []agent.File `json:"files"` // sorted by id
}

func newStreams(n *namespace) *streams {
	p := &streams{n: n, known: map[string]agent.File{}, gone: map[string]bool{}}
	p.doc = held{name: filesFile, render: func(h head) (any, error) {
		doc := filesDoc{head: h, Files: []agent.File{}}
		for _, id := range slices.Sorted(maps.Keys(p.known)) {
			doc.Files = append(doc.Files, p.known[id])
		}
		return doc, nil
	}}
	return p
}

func (p *streams) load() (corrupt bool, err error) {
	var doc filesDoc
	corrupt, err = readOptional(p.n.files, filesFile, &doc, func() error { return checkFiles(&doc) })
	p.doc.lsn = doc.LSN
	for _, f := range doc.Files {
		p.put(f)
	}
	return corrupt, err
}

// put adds or replaces a file and keeps the sums. The caller holds shared.mu.
func (p *streams) put(f agent.File) {
	p.drop(f.ID)
	p.known[f.ID] = f
	p.sums.Add(&f)
	p.owners.Add(f.Owner, store.FileBytes(&f))
}

// drop removes a file, if it is known, and keeps the sums. The caller holds shared.mu.
func (p *streams) drop(id string) {
	if f, known := p.known[id]; known {
		delete(p.known, id)
		p.sums.Remove(&f)
		p.owners.Add(f.Owner, store.Bytes{}.Minus(store.FileBytes(&f)))
	}
}

// add applies the files of an entry. The caller holds shared.mu.
func (p *streams) add(files []agent.File) {
	before := p.owners.All
	for _, f := range files {
		p.put(f)
		p.doc.lags = true
	}
	p.n.shared.total.Add(p.owners.All.Minus(before))
}

// remove applies the deletion of files; write removes their bytes. The caller holds shared.mu.
func (p *streams) remove(ids []string) {
	before := p.owners.All
	defer func() { p.n.shared.total.Add(p.owners.All.Minus(before)) }()
	for _, id := range ids {
		p.drop(id)
		p.gone[id] = true
		p.doc.lags = true
	}
}

// forget removes the files of a deleted session. The caller holds shared.mu.
func (p *streams) forget(session string) {
	for id, f := range p.known {
		if f.SessionID == session {
			p.remove([]string{id})
		}
	}
}

// write removes the bytes of deleted files.
func (p *streams) write(gone []string) error {
	for _, id := range gone {
		if err := p.n.files.drop(path.Join(filesDir, id)); err != nil && !vfs.NotExist(err) {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := p.n.files.SyncDir(filesDir); err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	for _, id := range gone {
		delete(p.gone, id)
	}
	return nil
}

// sweep runs after the journal was replayed. It marks bytes that belong to no file for removal, and drops files whose
// bytes are missing.
func (p *streams) sweep() error {
	names, err := p.n.files.list(filesDir)
	if err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	found := map[string]bool{}
	for _, id := range names {
		found[id] = true
		if _, known := p.known[id]; !known {
			p.gone[id] = true
		}
	}
	for id := range p.known {
		if !found[id] {
			p.n.log.Error().Str("file", id).Msg("the bytes of a file are lost, and it is dropped")
			p.remove([]string{id})
		}
	}
	return nil
}

// seal moves the drafts of files durably to their places.
func (p *streams) seal(ctx context.Context, files []store.NewFile) (err error) {
	for _, f := range files {
		d, ok := f.Draft.(*draft)
		if !ok || d.p != p {
			return errors.New("a draft of another store")
		}
		if err := d.seal(ctx, f.Owner, f.ID); err != nil {
			return err
		}
	}
	return p.n.files.SyncDir(filesDir)
}

// filesOf returns the metadata of new files.
func filesOf(files []store.NewFile) (known []agent.File) {
	for _, f := range files {
		known = append(known, f.File)
	}
	return known
}

// unseal removes the bytes of files whose entry was not written, and discards drafts that are not sealed yet.
func (p *streams) unseal(files []store.NewFile) {
	for _, f := range files {
		f.Draft.Discard()
		_ = p.n.files.Remove(path.Join(filesDir, f.ID)) // otherwise the next start removes it
	}
}

// AddFile is part of store.Namespace.
func (p *streams) AddFile(ctx context.Context, f store.NewFile) error {
	e, files := p.n.newEntry(), []store.NewFile{f}
	e.Files = filesOf(files)
	// A file is erased with its session and must therefore not follow its deletion.
	check := func() error {
		if f.SessionID == "" {
			return nil
		}
		_, err := p.n.sessions.get(f.SessionID)
		return err
	}
	return p.commitFiles(ctx, files, func() error { return p.n.commit(ctx, &commit{entry: e, check: check}) })
}

// commitFiles seals the files and then calls commit, which writes the entry that creates them. If the entry cannot have
// been written, it removes their bytes again.
func (p *streams) commitFiles(ctx context.Context, files []store.NewFile, commit func() error) error {
	if len(files) == 0 {
		p.n.bulk.light.Add(1)
		return commit()
	}
	err := p.seal(ctx, files)
	if err == nil {
		err = commit()
	}
	// With these errors the entry was written or may have been.
	if err != nil && !errors.Is(err, store.ErrReadOnly) && !errors.Is(err, errRepeated) {
		p.unseal(files)
	}
	return err
}

// File is part of store.Namespace.
func (p *streams) File(_ context.Context, id string) (agent.File, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	f, ok := p.known[id]
	if !ok || f.Expired(p.n.now()) {
		return agent.File{}, store.ErrNotFound
	}
	return f, nil
}

// OpenFile is part of store.Namespace.
func (p *streams) OpenFile(ctx context.Context, id string) (store.FileReader, error) {
	if _, err := p.File(ctx, id); err != nil {
		return nil, err
	}
	f, err := p.n.files.Open(path.Join(filesDir, id), false)
	switch {
	case vfs.NotExist(err):
		return nil, store.ErrNotFound
	case vfs.WrongKind(err):
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return f, err
}

// ListFiles is part of store.Namespace.
func (p *streams) ListFiles(_ context.Context, owner, after string, limit int) ([]agent.File, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return store.PageFiles(slices.Collect(maps.Values(p.known)), p.n.now(), owner, after, limit), nil
}

// FileBytes is part of store.Namespace.
func (p *streams) FileBytes(_ context.Context, owner, session string) (own, all int64, err error) {
	list := p.n.shared.all()
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	for _, n := range list {
		all += n.streams.sums.All
	}
	for _, at := range p.n.spaces.idle {
		all += at.Figures.FileBytes
	}
	return p.sums.Of(owner, session), all, nil
}

// DeleteFile is part of store.Namespace. The bytes have been removed when it returns, unless the store cannot write.
func (p *streams) DeleteFile(ctx context.Context, id string, audit *agent.AuditEntry) error {
	return p.deleteFiles(ctx, []string{id}, audit, func() error {
		_, err := p.File(ctx, id)
		return err
	})
}

// deleteFiles deletes files and removes their bytes. check may be nil.
func (p *streams) deleteFiles(ctx context.Context, ids []string, audit *agent.AuditEntry, check func() error) error {
	e := p.n.newEntry()
	e.FilesGone, e.Audit = ids, audit
	if err := p.n.commit(ctx, &commit{entry: e, check: check}); err != nil {
		return err
	}
	if err := p.n.flusher.sync(); err != nil {
		p.n.health.fail(err)
	}
	return nil
}

// expire deletes the files that have expired.
func (p *streams) expire(ctx context.Context, now time.Time) error {
	p.n.mu.RLock()
	old := []string{}
	for id, f := range p.known {
		if f.Expired(now) {
			old = append(old, id)
		}
	}
	p.n.mu.RUnlock()
	if len(old) == 0 {
		return nil
	}
	slices.Sort(old)
	return p.deleteFiles(ctx, old, nil, nil)
}

var _ store.Files = (*streams)(nil)
