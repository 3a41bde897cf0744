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
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/lazy"
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

// archiveFile returns the file name of an archived artifact, or of a tool if the target has no method.
func archiveFile(t store.Target, stamp string) string { return archivePlace(t) + "." + stamp + ".json" }

// archivePlace returns the start of the file names of everything archived for a target. It has no dot.
func archivePlace(t store.Target) string {
	if t.Method == "" {
		return archiveRegistryDir + "/" + slug(t.Role)
	}
	return archiveDir + "/" + slug(t.Role) + "/" + slug(t.Method)
}

// stampOf returns the end of the names of an operation's files. It is unique and sorts by age.
func stampOf(at time.Time, number uint64, deleted bool, auditID string) string {
	mark := ""
	if deleted {
		mark = deletedMark
	}
	return fmt.Sprintf("%s-%010d%s-%s", at.UTC().Format(stampFormat), number, mark, slug(auditID))
}

// deletedMark is the part of a stamp that marks a file of something deleted.
const deletedMark = ".deleted"

// A stamp is the decoded end of an archive file's name. The zero value stands for an unknown format.
type stamp struct {
	at      time.Time
	deleted bool   // the file is removed store.DeletedLife after at
	by      string // the slug of the operation's audit id; "" in files of earlier versions
}

var stampParts = lazy.Regexp(`^([0-9T]+\.[0-9]+Z)-[0-9]+(\.deleted)?(?:-(.*))?$`)

// readStamp decodes the stamp in the name of an archive file.
func readStamp(name string) (s stamp) {
	_, text, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
	of := stampParts().FindStringSubmatch(text)
	if of == nil {
		return s
	}
	at, err := time.Parse(stampFormat, of[1])
	if err != nil {
		return s
	}
	return stamp{at, of[2] != "", of[3]}
}

// pastRestore reports whether the file's content can no longer be restored.
func pastRestore(name string, now time.Time) bool {
	s := readStamp(name)
	return store.Ended(s.deleted, s.at, now)
}

// movedBy reports whether the operation with that audit id moved the file to the archive. Files of earlier versions do
// not have the id in their names and are matched by time.
func movedBy(name, auditID string) bool {
	s := readStamp(name)
	if s.by != "" || s.at.IsZero() {
		return s.by == slug(auditID)
	}
	const longest = 10 * time.Second // of a commit, from the operation's id to its stamp
	took := s.at.Sub(ids.Time(auditID).Truncate(time.Millisecond))
	return took >= 0 && took < longest
}

// Archived is part of store.Namespace.
func (p *archive) Archived(_ context.Context, targets []store.Target, auditID string) error {
	p.n.mu.RLock()
	pending, back := slices.Clone(p.pending), slices.Clone(p.restored)
	p.n.mu.RUnlock()
	now := p.n.now()
	held := map[string][]string{} // names of files by directory
	for _, x := range pending {
		held[path.Dir(x.name)] = append(held[path.Dir(x.name)], x.name)
	}
	listed := map[string]bool{}
	for _, t := range targets {
		place := archivePlace(t)
		if dir := path.Dir(place); !listed[dir] {
			listed[dir] = true
			names, err := p.n.files.list(dir)
			if err != nil {
				return err
			}
			for _, name := range names {
				held[dir] = append(held[dir], path.Join(dir, name))
			}
		}
		if !slices.ContainsFunc(held[path.Dir(place)], func(name string) bool {
			return strings.HasPrefix(name, place+".") && movedBy(name, cmp.Or(t.From, auditID)) &&
				!isCorruptName(path.Base(name)) && !slices.Contains(back, name) && !pastRestore(name, now)
		}) {
			return store.NotArchived(t)
		}
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
	// The files must hold the entry that was just archived.
	if err := p.n.flusher.sync(); err != nil {
		return err
	}
	e := p.n.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: "restore"}
	return p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		seen, r := map[string]bool{}, store.Restoring{}
		for _, t := range targets {
			if err := p.planRestore(e, t, seen, &r); err != nil {
				return err
			}
		}
		e.Artifacts = r.Below
		e.growMoved()
		return nil
	}})
}

// planRestore plans what a target restores. seen holds the files that earlier targets restore.
func (p *archive) planRestore(e *entry, t store.Target, seen map[string]bool, r *store.Restoring) error {
	names, err := p.find(t, cmp.Or(t.From, e.Audit.Undoes))
	if err != nil {
		return err
	}
	for _, name := range names {
		if seen[name] {
			r.Whole()
			continue
		}
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
		switch now := p.inUse(x); {
		case now == nil:
			seen[name] = true
			r.Whole()
			e.restored = append(e.restored, x)
			e.Move.Targets = append(e.Move.Targets, target)
			e.Move.Files = append(e.Move.Files, name)
		case now.artifact != nil:
			r.Beneath(now.artifact.a, x.artifact.a, e.Audit, readStamp(name).by, e.at())
		default:
			r.Stays(target, nil)
		}
	}
	return r.End(t)
}

// endDeleted removes the files of deleted items that can no longer be restored. waits reports whether there are deleted
// items that still can be.
func (p *archive) endDeleted(now time.Time) (waits bool, err error) {
	p.n.flusher.archive.Lock() // nothing is restored meanwhile
	defer p.n.flusher.archive.Unlock()
	p.n.mu.RLock()
	pending := slices.ContainsFunc(p.pending, func(x archived) bool { return readStamp(x.name).deleted })
	p.n.mu.RUnlock()
	// Their files must exist before they are listed.
	if pending {
		if err := p.n.flusher.sync(); err != nil {
			return true, err
		}
	}
	p.n.mu.RLock()
	back := slices.Clone(p.restored)
	p.n.mu.RUnlock()
	var gone []string
	err = p.n.files.eachDir(archiveDir, func(dir string) error {
		names, err := p.n.files.list(dir)
		for _, name := range names {
			at := path.Join(dir, name)
			switch {
			case !readStamp(name).deleted || isCorruptName(name):
			// A replay may need the file until the next checkpoint, which removes it.
			case slices.Contains(back, at):
			case pastRestore(name, now):
				gone = append(gone, at)
			default:
				waits = true
			}
		}
		return err
	})
	return waits, errors.Join(err, p.n.files.removeAll(gone))
}

// target returns the name of an archived item.
func (x archived) target() store.Target {
	if x.tool != nil {
		return store.Target{Role: x.tool.Role}
	}
	return store.Target{Role: x.artifact.key.role, Method: x.artifact.key.method}
}

// inUse returns the tool or artifact that is in use under the name of x, or nil if there is none.
func (p *archive) inUse(x archived) *archived {
	if x.tool != nil {
		if tool := p.n.catalog.tool(x.tool.Role); tool != nil {
			return &archived{tool: tool}
		}
		return nil
	}
	if now, err := p.n.artifacts.get(x.artifact.key); err == nil {
		return &archived{artifact: now}
	}
	return nil
}

// An ArchiveError is the reason why an archive was refused. Nothing of the archive is kept.
type ArchiveError struct {
	// what is wrong with the archive, as the predicate of a sentence
	Why string
	Do  string // what a person can do
	Err error  // the underlying error; may be nil
}

func (e *ArchiveError) Error() string {
	text := "the archive " + e.Why
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Do
}

func (e *ArchiveError) Unwrap() error { return e.Err }

// Advice for ArchiveError.Do.
const (
	exportAgain = "copy it once more, or export again"
	distrust    = "no export writes such a thing, so somebody has changed it: export again, and do not use this one"
)

// notWhole is the error for archives that are damaged or incomplete.
func notWhole(err error) error {
	return &ArchiveError{Why: "is no archive of recurgentd, or it was cut off or damaged", Do: exportAgain, Err: err}
}

// strange is the error for archives with content that no export writes.
func strange(format string, args ...any) error {
	return &ArchiveError{Why: "holds " + fmt.Sprintf(format, args...), Do: distrust}
}
