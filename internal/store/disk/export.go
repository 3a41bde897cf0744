package disk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// manifestFile is the last file of an export. It lists the other files with their checksums.
const manifestFile = "MANIFEST.json"

// manifest is the content of manifestFile.
type manifest struct {
	SchemaVersion int               `json:"schema_version"`
	CreatedAt     time.Time         `json:"created_at"`
	Files         map[string]string `json:"files"` // SHA-256 in hexadecimal digits, by name
}

// Export writes an archive (tar, gzip) of everything while the store is in use, or of one namespace if only is not "".
// It copies the files as they are, and then the journal since the last checkpoint. Opening the content replays the
// journal onto the files, so the archive shows the state at the end of the export. Archiving and restoring tools waits
// for an export; calls do not.
func (s *Store) Export(ctx context.Context, w io.Writer, only agent.Namespace) error {
	s.flusher.archive.RLock()
	defer s.flusher.archive.RUnlock()
	if only != "" && !s.have(only) {
		return fmt.Errorf("%w: namespace %s", store.ErrNotFound, only)
	}
	if err := s.flusher.beginExport(); err != nil {
		return err
	}
	defer s.flusher.endExport()
	zip := gzip.NewWriter(w)
	x := exporter{ctx: ctx, fs: s.root, only: only, tar: tar.NewWriter(zip), at: s.now(), sums: map[string]string{}}
	if err := x.content(); err != nil {
		return err
	}
	segments, err := s.sequencer.closeSegment()
	if err != nil {
		return err
	}
	for _, seg := range segments {
		if err := x.segment(seg); err != nil {
			return err
		}
	}
	if err := x.lateFiles(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(manifest{agent.SchemaVersion, s.now().UTC(), x.sums}, "", "  ")
	if err != nil {
		return err
	}
	if err := x.text(manifestFile, text); err != nil {
		return err
	}
	for _, l := range x.left {
		s.log.Warn().Str("why", l.Why).Int("files", l.Files).Strs("names",
			l.Names).Msg("an export left out files that are no part of the store")
	}
	return errors.Join(x.tar.Close(), zip.Close())
}

// beginExport writes a checkpoint and keeps the journal from then on until endExport.
func (f *flusher) beginExport() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkpointLocked(); err != nil {
		return err
	}
	f.exporting++
	return nil
}

func (f *flusher) endExport() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exporting--
}

// closeSegment starts a new segment of the journal and returns the complete ones.
func (s *sequencer) closeSegment() ([]wal.Segment, error) {
	if err := s.rotate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Closed(), nil
}

// exporter is the state of one export.
type exporter struct {
	ctx  context.Context // of the export
	fs   *files
	only agent.Namespace // "" for all namespaces
	tar  *tar.Writer
	at   time.Time         // time of the export
	sums map[string]string // checksums of the exported files, by name
	left leftOuts
}

// exported reports whether a file belongs in the export before the journal's segments, which come last.
func (x *exporter) exported(name string) bool {
	k, _, within := kindOf(name)
	if k != nil {
		if strings.HasPrefix(within, archiveDir+"/") && pastRestore(within, x.at) {
			return false
		}
		return path.Dir(name) != journalDir || !wal.IsSegment(path.Base(name))
	}
	x.leave(name)
	return false
}

// leave records a file that is left out, unless every store has such files.
func (x *exporter) leave(name string) {
	if why := whyLeft(name); why == leftUnknown || why == leftAside {
		x.left.add(why, name)
	}
}

// holdsPrimary reports whether a name is in a directory of primary files, or is such a directory.
func holdsPrimary(name string) bool {
	_, _, within := kindOf(name)
	top, _, _ := strings.Cut(within, "/")
	return !isCorruptName(name) &&
		slices.Contains([]string{"tools", "programs", "sessions", "calls", "values", filesDir, journalDir,
			namespacesDir}, top)
}

// passed reports whether a directory is skipped because nothing in it belongs in an export: derived files, temporary
// files and erased namespaces.
func passed(name string) bool {
	if strings.HasSuffix(name, erasedSuffix) && path.Dir(name) == namespacesDir {
		return true
	}
	return name == store.DerivedDir || name == vfs.TempDir || path.Base(name) == vfs.TempDir &&
		path.Dir(path.Dir(name)) == namespacesDir
}

// tree exports a directory.
func (x *exporter) tree(dir string) error {
	names, err := x.fs.List(dir)
	if vfs.NotExist(err) {
		return nil // deleted meanwhile; the journal has the deletion
	}
	if err != nil {
		return err
	}
	// A session's document must come before its history. The history only grows, so it includes what the document
	// refers to.
	if i := slices.Index(names, "session.json"); i > 0 {
		names = append([]string{"session.json"}, slices.Delete(names, i, i+1)...)
	}
	for _, base := range names {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, base)
		if passed(name) || x.others(name) {
			continue
		}
		if err := x.one(name); err != nil {
			return err
		}
	}
	return nil
}

// one exports a file, or a directory with its content.
func (x *exporter) one(name string) error {
	info, err := x.fs.Stat(name)
	k, _, _ := kindOf(name)
	switch {
	case vfs.NotExist(err):
		return nil
	case err == nil && info.Dir && k != nil:
		return fmt.Errorf("%s: %w", name, errNoFile)
	case err == nil && info.Dir && !holdsPrimary(name) && path.Dir(name) != namespacesDir:
		x.leave(name + "/") // such as lost+found, which a file system keeps at its top
		return nil
	case err == nil && info.Dir:
		return x.tree(name)
	case vfs.WrongKind(err) && holdsPrimary(name):
		return err
	case !x.exported(name): // whatever it is
		return nil
	case err != nil:
		return err
	}
	return x.file(name)
}

// lateFiles exports files that the journal names and that were added after their directory was read.
func (x *exporter) lateFiles() error {
	dirs, err := x.fileDirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		names, err := x.fs.List(dir)
		if err != nil && !vfs.NotExist(err) {
			return err
		}
		for _, name := range prefixed(dir, names) {
			if k, _, _ := kindOf(name); k == nil || x.sums[name] != "" {
				continue
			}
			if err := x.file(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// file exports a file up to its current size. A missing file is skipped, because the journal has its deletion.
func (x *exporter) file(name string) error {
	f, err := x.fs.Open(name, false)
	if vfs.NotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return x.copy(name, io.NewSectionReader(f, 0, size), size)
}

func (x *exporter) text(name string, text []byte) error {
	return x.copy(name, bytes.NewReader(text), int64(len(text)))
}

// copy writes a file to the archive and records its checksum.
func (x *exporter) copy(name string, r io.Reader, size int64) error {
	if err := x.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: x.at,
		Format: tar.FormatPAX}); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(x.tar, sum), r)
	if err == nil && n != size {
		err = fmt.Errorf("%s was cut off while it was exported", name)
	}
	x.sums[name] = hexSum(sum)
	return err
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

var _ store.Exporter = (*Store)(nil)

// An export of one namespace has the same layout as any other: the files in their usual places, a checkpoint that names
// no other namespace, and the journal, in which entries of other namespaces are emptied. This keeps the numbers of
// entries without gaps.

// content exports the files, and the checkpoint that records how far they go.
func (x *exporter) content() error {
	if x.only == "" {
		return x.tree(".")
	}
	if err := x.tree(namespaceDir(x.only)); err != nil {
		return err
	}
	return x.checkpoint()
}

// others reports whether a file or directory at the top does not belong to the namespace that is exported alone.
func (x *exporter) others(name string) bool {
	return x.only != "" && (name == journalDir || name == namespacesDir)
}

// checkpoint exports the checkpoint reduced to the namespace.
func (x *exporter) checkpoint() error {
	var all checkpointDoc
	if _, err := readOptional(x.fs, checkpointFile, &all, nil); err != nil {
		return err
	}
	one := checkpointDoc{head: head{agent.SchemaVersion, all.LSN}}
	if x.only == agent.DefaultNamespace {
		one.checkpointed = all.checkpointed
	} else {
		one.SchemaVersion, one.Namespaces = namespacesVersion,
			map[agent.Namespace]*checkpointed{x.only: all.Namespaces[x.only]}
	}
	text, err := encodeDoc(one)
	if err != nil {
		return err
	}
	return x.text(checkpointFile, text)
}

// segment exports a segment of the journal.
func (x *exporter) segment(seg wal.Segment) error {
	if x.only == "" {
		return x.file(seg.Name)
	}
	data, err := x.fs.ReadFile(seg.Name)
	if err != nil {
		return err
	}
	if data, err = seg.Rewrite(data, x.own); err != nil {
		return err
	}
	return x.text(seg.Name, data)
}

// own returns the journal entry unchanged if it belongs to the namespace, and otherwise an entry that does nothing.
func (x *exporter) own(text []byte) []byte {
	var e struct {
		At int64           `json:"t"`
		NS agent.Namespace `json:"ns,omitempty"`
	}
	if json.Unmarshal(text, &e) == nil && e.NS == journalName(x.only) {
		return text
	}
	e.NS = journalName(x.only)
	empty, _ := json.Marshal(e) // a number and a name always encode
	return empty
}

// fileDirs returns the directories that hold the bytes of files.
func (x *exporter) fileDirs() ([]string, error) {
	if x.only != "" {
		return []string{path.Join(namespaceDir(x.only), filesDir)}, nil
	}
	dirs := []string{filesDir}
	names, err := x.fs.List(namespacesDir)
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	for _, name := range names {
		dirs = append(dirs, path.Join(namespacesDir, name, filesDir))
	}
	return dirs, nil
}

// LeftOut lists files of an archive or a directory that were left out for the same reason.
type LeftOut struct {
	Why   string   `json:"why"`
	Files int      `json:"files"`
	Names []string `json:"names"` // the first few
}

// Reasons for leaving a file out.
const (
	leftDerived = "made anew where they are needed"
	leftKey     = "keys, which no archive may bring: put the file there by hand, mode 0600"
	leftAside   = "moved aside as damaged, or kept from before a migration"
	leftForm    = "not what their names say"
	leftUnknown = "of no kind that this recurgentd knows"
)

// leftOuts collects files that are left out, by reason.
type leftOuts []LeftOut

func (l *leftOuts) add(why, name string) {
	const most = 5
	i := slices.IndexFunc(*l, func(x LeftOut) bool { return x.Why == why })
	if i < 0 {
		i = len(*l)
		*l = append(*l, LeftOut{Why: why})
	}
	x := &(*l)[i]
	if x.Files++; x.Files <= most {
		x.Names = append(x.Names, name)
	}
}

// whyLeft returns the reason for leaving out a file that is of no kind.
func whyLeft(name string) string {
	_, _, within := kindOf(name)
	base := path.Base(within)
	switch {
	case isCorruptName(within), strings.HasPrefix(within, backupDir+"/"):
		return leftAside
	case name == store.SecretsKeyFile:
		return leftKey
	case strings.HasPrefix(name, store.DerivedDir+"/"), within == indexFile, strings.HasSuffix(base, ".idx") &&
		(path.Dir(within) == "calls" || path.Dir(within) == "values"),
		name == lockFile, strings.HasPrefix(within, vfs.TempDir+"/"):
		return leftDerived
	}
	return leftUnknown
}
