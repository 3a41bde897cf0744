package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

const (
	archiveDir         = "tools/archive"
	archiveRegistryDir = "tools/archive/registry"
)

// archive is the part that archives, removes and restores tools and artifacts.
type archive struct {
	n *namespace

	pending  []archived // without a file yet; guarded by shared.mu, as the other
	restored []string   // files of the archive that were restored, and are to go
}

// archived is an artifact or a tool with its file in the archive.
type archived struct {
	name     string
	tool     *agent.Tool
	artifact *artifact
}

// toolDoc is an archived tool.
type toolDoc struct {
	SchemaVersion int `json:"schema_version"`
	agent.Tool
}

// find lists the archive's files of a target: the newest of each artifact and of the tool, or, with an audit id, those that
// this operation moved.
func (p *archive) find(t store.Target, auditID string) ([]string, error) {
	newest := map[string]string{} // by slug, or "" for the tool
	p.n.mu.RLock()
	back := slices.Clone(p.restored)
	p.n.mu.RUnlock()
	collect := func(dir string, key func(base string) (string, bool)) error {
		names, err := p.n.files.list(dir)
		for _, name := range names { // sorted: later stamps come later
			base, _, ok := strings.Cut(name, ".")
			if k, wanted := key(base); ok && wanted && !isCorruptName(name) && !slices.Contains(back, path.Join(dir, name)) && (auditID == "" || movedBy(name, auditID)) {
				newest[k] = path.Join(dir, name)
			}
		}
		return err
	}
	if err := collect(archiveDir+"/"+slug(t.Role), func(base string) (string, bool) {
		return base, t.Method == "" && !t.ToolOnly || base == slug(t.Method)
	}); err != nil {
		return nil, err
	}
	if t.Method == "" {
		if err := collect(archiveRegistryDir, func(base string) (string, bool) { return "", base == slug(t.Role) }); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Values(newest)), nil
}

// read reads a file of the archive.
func (p *archive) read(name string) (archived, error) {
	text, err := p.n.files.ReadFile(name)
	if vfs.WrongKind(err) {
		err = p.n.files.reject(name, err)
	}
	if err != nil {
		return archived{}, err
	}
	if strings.HasPrefix(name, archiveRegistryDir+"/") {
		doc := toolDoc{}
		if err := p.n.files.decode(name, text, &doc, nil); err != nil {
			return archived{}, err
		}
		return archived{name: name, tool: compactTool(&doc.Tool)}, nil
	}
	doc := artifactDoc{}
	if err := p.n.files.decode(name, text, &doc, func() error { return doc.check() }); err != nil {
		return archived{}, err
	}
	return archived{name: name, artifact: &artifact{a: doc.Artifact, key: p.n.artifactKey(doc.Role, doc.MethodName), lsn: doc.LSN, text: text}}, nil
}

// write writes the files of what was archived.
func (p *archive) write(list []archived) error {
	for _, x := range list {
		text, err := x.encode()
		if err != nil {
			return err
		}
		if err := p.n.files.makeDir(path.Dir(x.name)); err != nil {
			return err
		}
		if err := p.n.files.Replace(x.name, text); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		p.n.mu.Lock()
		defer p.n.mu.Unlock()
		p.pending = p.pending[len(list):]
	}
	return nil
}

func (x archived) encode() ([]byte, error) {
	if x.tool != nil {
		return json.MarshalIndent(toolDoc{agent.SchemaVersion, *x.tool}, "", "  ")
	}
	return x.artifact.encode()
}

// removeRestored removes the archive's files of what was restored. They stay until a checkpoint has the entry that
// restored it: before that, replaying the entry needs them, as what was restored has the lsn that it was archived with.
func (p *archive) removeRestored(names []string) error {
	if err := p.n.files.removeAll(names); err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.restored = p.restored[len(names):]
	return nil
}

// Stale is part of store.Namespace.
func (p *archive) Stale(_ context.Context, before time.Time) ([]store.Target, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.n.catalog.ranking.Stale(before), nil
}

// Archive is part of store.Namespace.
func (p *archive) Archive(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return p.takeAway(ctx, "archive", targets, audit)
}

// Remove is part of store.Namespace.
func (p *archive) Remove(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return p.takeAway(ctx, "remove", targets, audit)
}

func (p *archive) takeAway(ctx context.Context, kind string, targets []store.Target, audit agent.AuditEntry) error {
	if err := p.n.make(); err != nil {
		return err
	}
	p.n.flusher.archive.Lock()
	defer p.n.flusher.archive.Unlock()
	e := p.n.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: kind}
	return p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		e.Move.Stamp = fmt.Sprintf("%s-%010d-%s", p.n.now().UTC().Format(stampFormat), e.lsn, slug(audit.ID)) // unique, and sorted by age
		e.Move.Targets = p.resolve(targets)
		err := p.planAway(e)
		e.growMoved()
		return err
	}})
}

// resolve names each artifact and each tool that the targets mean.
func (p *archive) resolve(targets []store.Target) []store.Target {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	ranking := p.n.catalog.ranking
	out := []store.Target{}
	for _, t := range targets {
		if t.Method != "" {
			out = append(out, store.Target{Role: t.Role, Method: t.Method})
			continue
		}
		for _, m := range ranking.Methods(t.Role) {
			if t.ToolOnly {
				break
			}
			out = append(out, store.Target{Role: t.Role, Method: m})
		}
		if ranking.Tool(t.Role) != nil {
			out = append(out, store.Target{Role: t.Role})
		}
	}
	return out
}

// planAway works out what is archived or removed. On recovery it leaves out what changed after the entry.
func (p *archive) planAway(e *entry) error {
	for _, t := range e.Move.Targets {
		name := archiveFile(t, e.Move.Stamp)
		if t.Method == "" {
			if tool := p.n.catalog.tool(t.Role); tool != nil {
				e.away = append(e.away, archived{name: name, tool: tool})
			}
			continue
		}
		x, err := p.n.artifacts.get(p.n.artifactKey(t.Role, t.Method))
		if errors.Is(err, store.ErrNotFound) || err == nil && p.n.recovering && x.lsn > e.lsn {
			continue
		}
		if err != nil {
			return err
		}
		if x, err = p.n.artifacts.withText(x); err != nil {
			return err
		}
		e.away = append(e.away, archived{name: name, artifact: x})
	}
	return nil
}

// Restore is part of store.Namespace.
func (p *archive) Restore(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	if err := errors.Join(p.n.health.ready(), p.n.make()); err != nil {
		return err
	}
	p.n.flusher.archive.Lock()
	defer p.n.flusher.archive.Unlock()
	if err := p.n.flusher.sync(); err != nil { // what was archived just now is in its files then
		return err
	}
	e := p.n.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: "restore"}
	return p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		seen := map[string]bool{}
		for _, t := range targets {
			if err := p.planRestore(e, t, seen); err != nil {
				return err
			}
		}
		e.growMoved()
		return nil
	}})
}

// planRestore works out what a target brings back; seen are the files that earlier targets do.
func (p *archive) planRestore(e *entry, t store.Target, seen map[string]bool) error {
	names, err := p.find(t, e.Audit.Undoes)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return store.NotArchived(t)
	}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		x, err := p.read(name)
		if errors.Is(err, errCorrupt) {
			return fmt.Errorf("%w in the archive: %s was corrupt and moved aside", store.ErrNotFound, name)
		}
		if err != nil {
			return err
		}
		target := x.target()
		if target.Role != t.Role || t.Method != "" && target.Method != t.Method {
			continue // another name with the same slug
		}
		if p.inUse(x) {
			return fmt.Errorf("%w: %s", store.ErrExists, target)
		}
		e.restored = append(e.restored, x)
		e.Move.Targets = append(e.Move.Targets, target)
		e.Move.Files = append(e.Move.Files, name)
	}
	return nil
}

// target names what an archived file holds.
func (x archived) target() store.Target {
	if x.tool != nil {
		return store.Target{Role: x.tool.Role}
	}
	return store.Target{Role: x.artifact.key.role, Method: x.artifact.key.method}
}

// inUse reports whether there is a tool or an artifact of that name in use.
func (p *archive) inUse(x archived) bool {
	if x.tool != nil {
		return p.n.catalog.tool(x.tool.Role) != nil
	}
	_, err := p.n.artifacts.get(x.artifact.key)
	return err == nil
}
