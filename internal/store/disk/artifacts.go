package disk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// artifacts is the part that holds the programs.
type artifacts struct {
	n *namespace

	// artifacts that changed since their files were written; guarded by shared.mu, as all below
	changed  map[artifactKey]*artifact
	programs map[string]string // texts without a file yet, by checksum
}

func (n *namespace) artifactKey(role, method string) artifactKey {
	return artifactKey{n, role, method}
}

// get returns the live artifact from memory or from its file, or store.ErrNotFound.
func (p *artifacts) get(k artifactKey) (*artifact, error) {
	if err := p.n.broken(); err != nil {
		return nil, err
	}
	if x := p.cached(k); x != nil {
		return x.live()
	}
	lock := p.n.stripe("artifact", string(k.namespace.name), k.role, k.method)
	lock.Lock()
	defer lock.Unlock()
	// Another goroutine may have loaded it meanwhile.
	if x := p.cached(k); x != nil {
		return x.live()
	}
	x, err := p.load(k)
	if err != nil {
		return nil, err
	}
	p.n.artifactCache.Set(k, x)
	return x, nil
}

// cached returns the artifact if it is in memory, and nil otherwise. It may be one that was archived or removed.
func (p *artifacts) cached(k artifactKey) *artifact {
	p.n.mu.RLock()
	x := p.changed[k]
	p.n.mu.RUnlock()
	if x != nil {
		return x
	}
	if x, ok := p.n.artifactCache.GetIfPresent(k); ok {
		return x
	}
	return nil
}

// load reads the artifact from its file. If the file cannot be used, load returns store.ErrNotFound and removes the
// artifact from the index.
func (p *artifacts) load(k artifactKey) (*artifact, error) {
	doc := artifactDoc{}
	err := p.n.files.read(k.file(), &doc, func() error { return checkArtifact(doc.Artifact, k) })
	var newer *newerError
	// An artifact can be forged again, so a newer version must not keep the daemon from working.
	if errors.As(err, &newer) {
		err = p.n.files.reject(k.file(), err)
	}
	switch {
	case err == nil:
		return &artifact{a: doc.Artifact, key: k, lsn: doc.LSN}, nil
	case vfs.NotExist(err), errors.Is(err, errCorrupt):
		p.n.mu.Lock()
		if _, known := p.n.catalog.ranking.Artifact(k.role, k.method); known && p.changed[k] == nil {
			p.n.catalog.dropArtifact(k)
			p.n.stored.unsure.Store(true)
		}
		p.n.mu.Unlock()
		return nil, store.ErrNotFound
	}
	return nil, err
}

// withText returns the artifact with text set to the bytes that its file has or would have.
func (p *artifacts) withText(x *artifact) (*artifact, error) {
	p.n.mu.RLock()
	changed := p.changed[x.key] != nil
	p.n.mu.RUnlock()
	out := *x
	var err error
	if changed || x.text != nil {
		out.text, err = x.encode()
	} else {
		out.text, err = p.n.files.ReadFile(x.key.file())
	}
	return &out, err
}

// write writes the files of changed artifacts and removes those of archived or removed ones.
func (p *artifacts) write(list []*artifact) error {
	slices.SortFunc(list, func(a, b *artifact) int { return a.key.compare(b.key) })
	dirs := map[string]bool{}
	for _, x := range list {
		dir, err := p.writeOne(x)
		if err != nil {
			return err
		}
		if dir != "" {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := p.n.files.SyncDir(dir); err != nil {
			return err
		}
	}
	for _, x := range list {
		p.handToCache(x)
	}
	return nil
}

// writeOne writes or removes one file and returns the directory to sync, or "" if there is none.
func (p *artifacts) writeOne(x *artifact) (dir string, err error) {
	f := p.n.files
	name := x.key.file()
	dir = path.Dir(name)
	if x.a == nil {
		if err := f.Remove(name); err != nil && !vfs.NotExist(err) {
			return "", err
		}
		if _, err := f.Stat(dir); vfs.NotExist(err) {
			return "", nil
		}
		return dir, nil
	}
	text, err := x.encode()
	if err != nil {
		return "", err
	}
	if err := f.makeDir(dir); err != nil {
		return "", err
	}
	return dir, f.ReplaceUnsynced(name, text)
}

// handToCache moves an artifact whose file is written to the cache, unless it has changed again.
func (p *artifacts) handToCache(x *artifact) {
	lock := p.n.stripe("artifact", string(x.key.namespace.name), x.key.role, x.key.method)
	lock.Lock()
	defer lock.Unlock()
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.changed[x.key] != x {
		return
	}
	if x.text != nil {
		plain := *x
		plain.text = nil
		x = &plain
	}
	delete(p.changed, x.key)
	if x.a == nil {
		p.n.artifactCache.Invalidate(x.key)
		return
	}
	p.n.artifactCache.Set(x.key, x)
}

// Artifact is part of store.Namespace.
func (p *artifacts) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	x, err := p.get(p.n.artifactKey(role, method))
	if err != nil {
		return nil, err
	}
	return x.a, nil
}

// ChangeArtifact is part of store.Namespace.
func (p *artifacts) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
	audit *agent.AuditEntry) (*agent.Artifact, error) {
	k := p.n.artifactKey(c.Role, c.MethodName)
	e := p.n.newEntry()
	e.Artifacts, e.Audit = []agent.ArtifactChange{c}, audit
	err := p.n.commit(ctx, &commit{entry: e, check: func() error {
		now, err := p.n.plannedArtifact(k)
		if err != nil {
			return err
		}
		return store.CheckChange(now, revision, &c)
	}})
	if err != nil {
		return nil, err
	}
	return e.artifacts[0].a, nil
}

// ListArtifacts is part of store.Namespace.
func (p *artifacts) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	out := []*agent.Artifact{}
	for _, m := range p.n.catalog.methods(role) {
		x, err := p.get(p.n.artifactKey(role, m))
		if errors.Is(err, store.ErrNotFound) {
			continue // archived or moved aside meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x.a)
	}
	return out, nil
}

// gather returns what must be written: the changed artifacts, and the program texts by checksum. The caller holds
// shared.mu.
func (p *artifacts) gather() ([]*artifact, map[string]string) {
	return slices.Collect(maps.Values(p.changed)), maps.Clone(p.programs)
}

var _ store.Artifacts = (*artifacts)(nil)

// artifact is a stored program at one moment. It never changes. a is nil if the artifact was archived or removed.
type artifact struct {
	a    *agent.Artifact
	key  artifactKey
	lsn  uint64 // of the last entry that changed it
	text []byte // the document's bytes if they must be restored exactly; nil means that they are encoded from a
}

// artifactKey identifies an artifact in memory.
type artifactKey struct {
	namespace    *namespace
	role, method string
}

func (k artifactKey) file() string { return "tools/" + slug(k.role) + "/" + slug(k.method) + ".json" }

// compare orders the keys of a namespace.
func (k artifactKey) compare(o artifactKey) int {
	return cmp.Or(strings.Compare(k.role, o.role), strings.Compare(k.method, o.method))
}

// artifactDoc is tools/<role>/<method>.json.
type artifactDoc struct {
	*agent.Artifact
	LSN uint64 `json:"lsn"`
}

func (d *artifactDoc) check() error {
	if d.Artifact == nil {
		return errors.New("holds no artifact")
	}
	return checkArtifact(d.Artifact, artifactKey{role: d.Role, method: d.MethodName})
}

// checkArtifact returns an error for artifacts that must not be run, and adopts what a person changed in the artifact's
// own fields. Code with a wrong checksum was tampered with or torn and is never run.
func checkArtifact(a *agent.Artifact, k artifactKey) error {
	if a == nil || a.Role != k.role || a.MethodName != k.method {
		return fmt.Errorf("is not the artifact %s.%s", k.role, k.method)
	}
	cur := a.Current()
	if cur == nil && len(a.Generations) == 0 && len(a.Examples) > 0 {
		return nil // examples can exist before there is a program
	}
	if cur == nil {
		return errors.New("has no current generation")
	}
	if agent.Checksum(a.Code) != a.CodeChecksum {
		return errWrongChecksum
	}
	for _, g := range a.Held() {
		if g == nil || agent.Checksum(g.Code) != g.CodeChecksum {
			return errors.New("a generation's checksum is wrong")
		}
		for i := range g.Fixtures {
			compactFixture(&g.Fixtures[i])
		}
		g.Facts, g.SolverShape = compact(g.Facts), compact(g.SolverShape)
	}
	cur.Code, cur.CodeChecksum, cur.Dependencies = a.Code, a.CodeChecksum, a.Dependencies
	cur.ContractFingerprint, cur.PromptVersion, cur.RuntimeVersion, cur.Model = a.ContractFingerprint, a.PromptVersion,
		a.RuntimeVersion, a.Model
	cur.Cacheable, cur.CacheabilityReason, cur.Approved = a.Cacheable, a.CacheabilityReason, a.Approved
	return nil
}

// compactFixture removes insignificant whitespace that the document's indentation added. Fixtures are compared and
// counted by their bytes.
func compactFixture(f *agent.Fixture) {
	for i := range f.Args {
		f.Args[i] = compact(f.Args[i])
	}
	f.Kwargs, f.Context, f.Value, f.Effects = compact(f.Kwargs), compact(f.Context), compact(f.Value),
		compact(f.Effects)
}

// live returns the artifact, or store.ErrNotFound if it was archived or removed.
func (x *artifact) live() (*artifact, error) {
	if x.a == nil {
		return nil, store.ErrNotFound
	}
	return x, nil
}

// weight returns the approximate size of the artifact in the cache, in bytes.
func (x *artifact) weight() uint32 {
	const fixed = 1024
	n := fixed
	if x.a != nil {
		for _, g := range x.a.Generations {
			n += fixed + 2*len(g.Code)
			for _, f := range g.Fixtures {
				n += len(f.Value) + len(f.Effects) + len(f.Kwargs) + len(f.Context)
			}
		}
	}
	return uint32(min(n, 1<<30))
}

// encode returns the bytes of the artifact's document.
func (x *artifact) encode() ([]byte, error) {
	if x.text != nil {
		return x.text, nil
	}
	text, err := json.MarshalIndent(artifactDoc{x.a, x.lsn}, "", "  ")
	return append(text, '\n'), err
}
