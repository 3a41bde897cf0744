package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// head is the start of each document, a JSON file that is always replaced as a whole. It has the version of the
// document's schema and the lsn of the last journal entry that the document includes. The lsn makes replaying entries
// onto it idempotent.
type head struct {
	SchemaVersion int    `json:"schema_version"`
	LSN           uint64 `json:"lsn"`
}

// errCorrupt means that a document could not be read and was moved aside.
var errCorrupt = errors.New("corrupt, moved aside")

// newerError means that a newer recurgentd wrote the file.
type newerError struct {
	name string
	// version is that of the file; reads is the newest one that this recurgentd reads.
	version int
	reads   int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has schema version %d, but this recurgentd reads versions up to %d: use the newer one, or "+
		"restore a backup", e.name, e.version, e.reads)
}

// files reads and writes the files of a namespace or, at the top, of the store. Names are relative to its directory.
type files struct {
	vfs.Replacer
	shared *shared
	dir    string // relative to that of the store, for messages

	damaged sync.Map        // names of files whose damaged lines were reported
	made    map[string]bool // directories known to be on disk; guarded by flusher.mu
}

func newFiles(s *shared, dir string) *files {
	return &files{Replacer: vfs.Replacer{FS: vfs.Sub(s.o.FS, dir)}, shared: s, dir: dir, made: map[string]bool{}}
}

// drop removes a file or anything else that has its name.
func (f *files) drop(name string) error {
	err := f.Remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		err = f.RemoveAll(name)
	}
	return err
}

// path returns the name of a file relative to the store, for messages.
func (f *files) path(name string) string { return path.Join(f.dir, name) }

// writeDoc durably writes a document, indented for people unless it encodes itself.
func (f *files) writeDoc(name string, doc any) error {
	data, err := encodeDoc(doc)
	if err != nil {
		return err
	}
	return f.Replace(name, data)
}

func encodeDoc(doc any) ([]byte, error) {
	if d, ok := doc.(interface{ text() ([]byte, error) }); ok {
		return d.text()
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	return append(data, '\n'), err
}

// read reads a document into doc. A document of an older schema version is backed up and migrated. If it does not parse
// or fails check, it is moved aside, and the error matches errCorrupt. A newer one stays in place, and the error is a
// *newerError. If there is no file, the error matches fs.ErrNotExist.
func (f *files) read(name string, doc any, check func() error) error {
	data, err := f.ReadFile(name)
	if vfs.WrongKind(err) {
		return f.reject(name, err)
	}
	if err != nil {
		return err
	}
	return f.decode(name, data, doc, check)
}

// decode is read for a document whose data was read already.
func (f *files) decode(name string, data []byte, doc any, check func() error) error {
	h := head{}
	err := json.Unmarshal(data, &h)
	if reads := versionOf(name); err == nil && h.SchemaVersion > reads {
		return &newerError{f.path(name), h.SchemaVersion, reads}
	}
	if err == nil && h.SchemaVersion < agent.SchemaVersion {
		data, err = f.migrate(name, data, h.SchemaVersion)
		var refused *migrationError
		if err != nil && !errors.As(err, &refused) {
			return err // the disk failed, not the file
		}
	}
	if err == nil {
		err = json.Unmarshal(data, doc)
	}
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return f.reject(name, err)
	}
	return nil
}

// versionOf returns the newest schema version of a document that this recurgentd reads.
func versionOf(name string) int {
	if name == checkpointFile {
		return namespacesVersion
	}
	return agent.SchemaVersion
}

// readOptional is read for a document that may be missing or corrupt; it leaves doc empty then. It reports whether the
// document was corrupt.
func readOptional[D any](f *files, name string, doc *D, check func() error) (corrupt bool, err error) {
	err = f.read(name, doc, check)
	switch {
	case err == nil, vfs.NotExist(err):
		return false, nil
	case errors.Is(err, errCorrupt):
		var empty D // a corrupt file may have filled part of it
		*doc = empty
		return true, nil
	}
	return false, err
}

// reject is moveAside for readers of the file: on success it returns errCorrupt with the cause.
func (f *files) reject(name string, cause error) error {
	if err := f.moveAside(name, cause); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: %w", f.path(name), errCorrupt, cause)
}

// moveAside renames a corrupt file within its directory and counts it. If the name of a directory on its path belongs
// to a link or a file, it renames that instead.
func (f *files) moveAside(name string, cause error) error {
	name = f.wrongKind(name)
	aside := fmt.Sprintf("%s.corrupt-%s", name, f.stamp())
	if err := f.Rename(name, aside); err != nil {
		return fmt.Errorf("%s is corrupt (%w) and cannot be moved aside: %w", f.path(name), cause, err)
	}
	if err := f.SyncDir(path.Dir(name)); err != nil {
		return err
	}
	f.shared.quarantined.Add(1)
	f.shared.log.Warn().Str("file", f.path(name)).Str("aside", f.path(aside)).AnErr("cause",
		cause).Msg("a corrupt file was moved aside")
	return nil
}

// stampFormat is the format of times in file names.
const stampFormat = "20060102T150405.000Z"

// stamp returns the current time for a file name. A counter makes it unique.
func (f *files) stamp() string {
	return fmt.Sprintf("%s-%d", f.shared.now().UTC().Format(stampFormat), f.shared.aside.Add(1))
}

// wrongKind returns the part of a name that is of the wrong kind: a directory on the path that is not one, or else the
// whole name.
func (f *files) wrongKind(name string) string {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := f.Stat(name[:i]); vfs.WrongKind(err) || err == nil && !info.Dir {
			return name[:i]
		}
	}
	return name
}

// isCorruptName reports whether the name is one that moveAside gives.
func isCorruptName(name string) bool { return strings.Contains(name, ".corrupt-") }

// reportDamage logs, once for each file, that some of its lines cannot be read. Readers skip these lines. They stay in
// the file until a repair.
func (f *files) reportDamage(name string) {
	if _, reported := f.damaged.LoadOrStore(name, true); reported {
		return
	}
	f.shared.quarantined.Add(1)
	f.shared.log.Error().Str("file",
		f.path(name)).Msg("lines of a file are damaged and left out; recurgentd store repair moves them aside")
}

// reportLost logs that a file is shorter than it must be.
func (f *files) reportLost(name string, bytes int64) {
	f.shared.quarantined.Add(1)
	f.shared.log.Error().Str("file", f.path(name)).Int64("bytes", bytes).Msg("the end of a file is lost")
}

// makeDir durably creates a directory and its parents, unless it did so before. The caller holds flusher.mu.
func (f *files) makeDir(dir string) error {
	if f.made[dir] {
		return nil
	}
	if err := f.Mkdir(dir); err != nil {
		return err
	}
	for d := dir; d != "."; d = path.Dir(d) {
		if err := f.SyncDir(path.Dir(d)); err != nil {
			return err
		}
	}
	// Only directories that are written repeatedly are worth remembering.
	if len(f.made) > 10_000 {
		clear(f.made)
	}
	f.made[dir] = true
	return nil
}

// removeAll durably removes files. Missing files are ignored.
func (f *files) removeAll(names []string) error {
	for _, name := range names {
		if err := f.drop(name); err != nil && !vfs.NotExist(err) {
			return err
		}
		if err := f.SyncDir(path.Dir(name)); err != nil && !vfs.NotExist(err) {
			return err
		}
	}
	return nil
}

// list is List, but returns nil for a missing directory.
func (f *files) list(dir string) ([]string, error) {
	names, err := f.List(dir)
	if vfs.NotExist(err) {
		return nil, nil
	}
	return names, err
}

// eachDir calls visit with the directories in a directory.
func (f *files) eachDir(parent string, visit func(dir string) error) error {
	names, err := f.list(parent)
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := path.Join(parent, name)
		if info, err := f.Stat(dir); err != nil || !info.Dir {
			continue
		}
		if err := visit(dir); err != nil {
			return err
		}
	}
	return nil
}
