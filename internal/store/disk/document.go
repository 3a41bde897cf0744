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

// head is the start of each document: a JSON file that is replaced as a whole. It says which schema the document has,
// and the lsn of the last journal entry that it includes, so that replaying entries onto it is idempotent.
type head struct {
	SchemaVersion int    `json:"schema_version"`
	LSN           uint64 `json:"lsn"`
}

// errCorrupt is returned for a document that was moved aside because it could not be read.
var errCorrupt = errors.New("corrupt, moved aside")

// newerError says that a file was written by a newer recurgentd.
type newerError struct {
	name    string
	version int
	reads   int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has schema version %d, this recurgentd reads up to %d: use the newer one, or restore a backup", e.name, e.version, e.reads)
}

// files reads and writes the files of a namespace. Names are relative to its directory.
type files struct {
	vfs.Replacer
	shared *shared
	dir    string // of the namespace, for messages

	damaged sync.Map        // names of files with damaged lines that were reported
	made    map[string]bool // directories known to be on disk; used by the holder of flusher.mu
}

func newFiles(s *shared, dir string) *files {
	return &files{Replacer: vfs.Replacer{FS: vfs.Sub(s.o.FS, dir)}, shared: s, dir: dir, made: map[string]bool{}}
}

// drop removes a file, or whatever has the name of one.
func (f *files) drop(name string) error {
	err := f.Remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		err = f.RemoveAll(name)
	}
	return err
}

// path is the name of a file in messages.
func (f *files) path(name string) string { return path.Join(f.dir, name) }

// writeDoc writes a document, indented for people unless it has a text of its own.
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

// read reads a document into doc. One of an older schema version is migrated, after a backup. One that does not parse,
// or does not pass check, is moved aside: errCorrupt. A newer one stays where it is: *newerError. fs.ErrNotExist when
// there is no file.
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
			return err // the disk, not the file
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

// readOptional is read for a document that may be missing or corrupt: doc is empty then. It reports whether the
// document was corrupt.
func readOptional[D any](f *files, name string, doc *D, check func() error) (corrupt bool, err error) {
	err = f.read(name, doc, check)
	switch {
	case err == nil, vfs.NotExist(err):
		return false, nil
	case errors.Is(err, errCorrupt):
		var empty D // the file may have filled half of it
		*doc = empty
		return true, nil
	}
	return false, err
}

// reject is moveAside for a reader of the file: on success it returns errCorrupt with the cause.
func (f *files) reject(name string, cause error) error {
	if err := f.moveAside(name, cause); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: %w", f.path(name), errCorrupt, cause)
}

// moveAside renames a corrupt file, in its directory, and counts it. Where a link or a file has the name of its directory, that is renamed.
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

// stampFormat is a time in the name of a file.
const stampFormat = "20060102T150405.000Z"

// stamp returns the time for the name of a file; a counter distinguishes those of the same moment.
func (f *files) stamp() string {
	return fmt.Sprintf("%s-%d", f.shared.now().UTC().Format(stampFormat), f.shared.aside.Add(1))
}

// wrongKind returns the part of a name that is of a wrong kind: the name itself, or a directory on it that is none.
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

func isCorruptName(name string) bool { return strings.Contains(name, ".corrupt-") }

// reportDamage logs, once for each file, that lines of it cannot be read. They are left out of what is read, and stay
// where they are until a repair.
func (f *files) reportDamage(name string) {
	if _, reported := f.damaged.LoadOrStore(name, true); reported {
		return
	}
	f.shared.quarantined.Add(1)
	f.shared.log.Error().Str("file",
		f.path(name)).Msg("lines of a file are damaged and left out; recurgentd store repair moves them aside")
}

// reportLost logs that a file is shorter than it was.
func (f *files) reportLost(name string, bytes int64) {
	f.shared.quarantined.Add(1)
	f.shared.log.Error().Str("file", f.path(name)).Int64("bytes", bytes).Msg("the end of a file is lost")
}

// makeDir makes a directory, durably, once. The caller holds flusher.mu.
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
	if len(f.made) > 10_000 { // only what is written to again and again is worth remembering
		clear(f.made)
	}
	f.made[dir] = true
	return nil
}

// removeAll removes a list of files, and syncs their directories. Those that are missing are no error.
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

// list is List, empty for a directory that is missing.
func (f *files) list(dir string) ([]string, error) {
	names, err := f.List(dir)
	if vfs.NotExist(err) {
		return nil, nil
	}
	return names, err
}

// eachDir visits the directories in a directory.
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
