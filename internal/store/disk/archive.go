package disk

import (
	"context"
	"encoding/json"
	"errors"
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

	pending  []archived // archived items without a file yet; guarded by shared.mu, as is restored
	restored []string   // files of the archive that were restored and must be removed
}

// archived is an artifact or a tool, with the name of its file in the archive. One of tool and artifact is set.
type archived struct {
	name     string
	tool     *agent.Tool
	artifact *artifact
}

// toolDoc is the document of an archived tool.
type toolDoc struct {
	SchemaVersion int `json:"schema_version"`
	agent.Tool
}

// find returns the archive's files of a target: the newest file of each artifact and of the tool. With an audit id it
// considers only files that this operation moved. Files that are restored already or can no longer be restored are left
// out.
func (p *archive) find(t store.Target, auditID string) ([]string, error) {
	newest := map[string]string{} // by slug, or "" for the tool
	p.n.mu.RLock()
	back := slices.Clone(p.restored)
	p.n.mu.RUnlock()
	now := p.n.now()
	collect := func(dir string, key func(base string) (string, bool)) error {
		names, err := p.n.files.list(dir)
		for _, name := range names { // sorted: later stamps come later
			base, _, ok := strings.Cut(name, ".")
			if k, wanted := key(base); ok && wanted && !isCorruptName(name) &&
				!slices.Contains(back, path.Join(dir, name)) && !pastRestore(name, now) &&
				(auditID == "" || movedBy(name, auditID)) {
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
		if err := collect(archiveRegistryDir, func(base string) (string, bool) {
			return "",
				base == slug(t.Role)
		}); err != nil {
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
	return archived{name: name, artifact: &artifact{a: doc.Artifact, key: p.n.artifactKey(doc.Role, doc.MethodName),
		lsn: doc.LSN, text: text}}, nil
}

// write writes the files of archived items.
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

// encode returns the bytes of the item's file.
func (x archived) encode() ([]byte, error) {
	if x.tool != nil {
		return json.MarshalIndent(toolDoc{agent.SchemaVersion, *x.tool}, "", "  ")
	}
	return x.artifact.encode()
}

// removeRestored removes the archive's files of restored items. They must stay until a checkpoint includes the entry
// that restored them. Until then a replay of that entry needs them, because a restored item keeps the lsn that it was
// archived with.
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
	return p.takeAway(ctx, targets, audit, false)
}

// Remove is part of store.Namespace.
func (p *archive) Remove(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return p.takeAway(ctx, targets, audit, true)
}

// takeAway archives the targets. deleted marks their files to be removed for good after store.DeletedLife.
func (p *archive) takeAway(ctx context.Context, targets []store.Target, audit agent.AuditEntry, deleted bool) error {
	if err := p.n.make(); err != nil {
		return err
	}
	p.n.flusher.archive.Lock()
	defer p.n.flusher.archive.Unlock()
	e := p.n.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: "archive"}
	return p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		e.Move.Stamp = stampOf(p.n.now(), e.lsn, deleted, audit.ID)
		e.Move.Targets = p.resolve(targets)
		if err := p.planUnrestored(e, targets); err != nil {
			return err
		}
		err := p.planAway(e)
		e.growMoved()
		return err
	}})
}

// planUnrestored plans the removal of programs that an earlier operation restored below newer ones.
func (p *archive) planUnrestored(e *entry, targets []store.Target) error {
	for _, t := range targets {
		if t.Restored == "" {
			continue
		}
		now, err := p.n.plannedArtifact(p.n.artifactKey(t.Role, t.Method))
		if err != nil {
			return err
		}
		c, err := store.TakeRestored(now, t, e.at())
		if err != nil {
			return err
		}
		e.Artifacts = append(e.Artifacts, c)
	}
	return nil
}

// resolve returns each artifact and each tool that the targets name.
func (p *archive) resolve(targets []store.Target) []store.Target {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	ranking := p.n.catalog.ranking
	out := []store.Target{}
	for _, t := range targets {
		if t.Restored != "" {
			// The program in use stays; see planUnrestored.
			continue
		}
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

// planAway finds what the entry archives or removes. During a replay it leaves out artifacts that changed after the
// entry.
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
