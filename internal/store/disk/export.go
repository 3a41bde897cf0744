package disk

import (
	"archive/tar"
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

// manifestFile is the last file of an export: what is in it, with checksums.
const manifestFile = "MANIFEST.json"

type manifest struct {
	SchemaVersion int               `json:"schema_version"`
	CreatedAt     time.Time         `json:"created_at"`
	Files         map[string]string `json:"files"` // name to sha256
}

// Export writes an archive (tar, gzip) of everything, while the store is in use. It copies the files as they are,
// then the journal since they were last whole: opening the archive's content replays the one onto the other, so the
// archive is of the moment when the export ended. Archiving and restoring tools waits for it; calls do not.
func (s *Store) Export(ctx context.Context, w io.Writer) error {
	s.exportMu.RLock()
	defer s.exportMu.RUnlock()
	if err := s.checkpoint(); err != nil {
		return err
	}
	s.flushMu.Lock()
	s.exporting++
	s.flushMu.Unlock()
	defer func() {
		s.flushMu.Lock()
		s.exporting--
		s.flushMu.Unlock()
	}()
	zip := gzip.NewWriter(w)
	x := exporter{ctx: ctx, fs: s.fs, tar: tar.NewWriter(zip), at: s.now(), sums: map[string]string{}}
	if err := x.tree("."); err != nil {
		return err
	}
	s.seq.Lock()
	err := error(nil)
	if s.journal.Writable() {
		err = s.journal.Rotate()
	}
	segments := s.journal.Closed()
	s.seq.Unlock()
	if err != nil {
		return err
	}
	for _, seg := range segments {
		if err := x.file(seg.Name); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(manifest{agent.SchemaVersion, s.now().UTC(), x.sums}, "", "  ")
	if err != nil {
		return err
	}
	if err := x.text(manifestFile, text); err != nil {
		return err
	}
	return errors.Join(x.tar.Close(), zip.Close())
}

type exporter struct {
	ctx  context.Context // of one export, which this is all the state of
	fs   vfs.FS
	tar  *tar.Writer
	at   time.Time
	sums map[string]string
}

// exported says whether a file belongs to an export: not the lock, not what is written aside, not the journal, which
// comes at the end.
func exported(name string) bool {
	if wal.IsSegment(path.Base(name)) {
		return false
	}
	return name != "lock" && name != vfs.TempDir && !strings.HasPrefix(name, vfs.TempDir+"/")
}

func (x *exporter) tree(dir string) error {
	names, err := x.fs.List(dir)
	if vfs.NotExist(err) {
		return nil // deleted meanwhile, which the journal knows
	}
	if err != nil {
		return err
	}
	// A session's document before its history: the history only grows, so it has what the document counts on.
	slices.SortStableFunc(names, func(a, b string) int {
		if a == "session.json" && b != a {
			return -1
		}
		if b == "session.json" && a != b {
			return 1
		}
		return 0
	})
	for _, base := range names {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, base)
		if !exported(name) {
			continue
		}
		info, err := x.fs.Stat(name)
		if vfs.NotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Dir {
			err = x.tree(name)
		} else {
			err = x.file(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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
	return x.copy(name, strings.NewReader(string(text)), int64(len(text)))
}

func (x *exporter) copy(name string, r io.Reader, size int64) error {
	if err := x.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: x.at, Format: tar.FormatPAX}); err != nil {
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

// Import fills the directory, which must be empty or missing, from an export, and opens the store once to replay what
// the export's journal has. A checksum that is wrong, or a file too many or too few, fails it; what was written is
// removed then.
func Import(ctx context.Context, dir string, r io.Reader, o Options) error {
	fs := o.FS
	if fs == nil {
		var err error
		if fs, err = vfs.Dir(dir); err != nil {
			return err
		}
	}
	names, err := fs.List(".")
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s is not empty; an import needs a directory of its own", store.ErrExists, dir)
	}
	o.FS = fs
	if err := importInto(ctx, fs, r); err != nil {
		return errors.Join(err, emptyOut(fs))
	}
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	return s.close()
}

func emptyOut(fs vfs.FS) error {
	names, err := fs.List(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		err = errors.Join(err, fs.RemoveAll(name))
	}
	return err
}

func importInto(ctx context.Context, fs vfs.FS, r io.Reader) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("not an export: %w", err)
	}
	archive := tar.NewReader(zip)
	sums := map[string]string{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := archive.Next()
		if err == io.EOF {
			return errors.New("the export is not whole: it has no " + manifestFile)
		}
		if err != nil {
			return fmt.Errorf("not a whole export: %w", err)
		}
		if header.Name == manifestFile {
			return checkManifest(archive, sums)
		}
		if !localName(header.Name) || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("the export holds a strange file: %q", header.Name)
		}
		if sums[header.Name], err = importFile(fs, header.Name, archive); err != nil {
			return err
		}
	}
}

// localName accepts what an export names: paths downwards, in one form.
func localName(name string) bool {
	return name != "" && name == path.Clean(name) && !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\\\x00")
}

func importFile(fs vfs.FS, name string, r io.Reader) (sum string, err error) {
	if err := fs.Mkdir(path.Dir(name)); err != nil {
		return "", err
	}
	f, err := fs.Open(name, true)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for off := int64(0); ; {
		n, readErr := io.ReadFull(r, buf)
		_, _ = h.Write(buf[:n]) // a hash takes everything
		if n > 0 {
			_, err = f.WriteAt(buf[:n], off)
		}
		off += int64(n)
		if err == nil && readErr != nil && readErr != io.EOF && readErr != io.ErrUnexpectedEOF {
			err = readErr
		}
		if err != nil || readErr != nil {
			break
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hexSum(h), fs.SyncDir(path.Dir(name))
}

func checkManifest(r io.Reader, sums map[string]string) error {
	var m manifest
	if err := json.NewDecoder(r).Decode(&m); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.SchemaVersion > agent.SchemaVersion {
		return &newerError{manifestFile, m.SchemaVersion}
	}
	for name, sum := range m.Files {
		if sums[name] != sum {
			return fmt.Errorf("the export is damaged: the checksum of %s is wrong", name)
		}
	}
	for name := range sums {
		if m.Files[name] == "" {
			return fmt.Errorf("the export is damaged: %s is not in its list", name)
		}
	}
	return nil
}

var _ store.Exporter = (*Store)(nil)
