package disk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// An importer is the state of one import.
type importer struct {
	ctx    context.Context   // of the import
	files  *files            // of the store
	sums   map[string]string // checksums of the files that came, by name
	folded map[string]string // names by their lower case, which some file systems treat as equal
	left   leftOuts
	waste  int64 // bytes of files that were left out
	wasted int   // number of files that were left out
}

// Bounds of an archive, in addition to those of each kind.
const (
	maxWaste = 16 << 30 // bytes that are left out; archives of earlier versions contain compiled programs
	maxLeft  = 1 << 20  // files that are left out
	maxName  = 512      // bytes of a name
	reserve  = 64 << 20 // bytes that must stay free on the disk
)

// importInto writes the files of an archive and returns what was left out.
func importInto(ctx context.Context, o Options, r io.Reader) ([]LeftOut, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, notWhole(err)
	}
	common, err := newShared(o)
	if err != nil {
		return nil, err
	}
	defer common.close()
	x := &importer{ctx: ctx, files: newFiles(common, "."), sums: map[string]string{}, folded: map[string]string{}}
	archive := tar.NewReader(zip)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := archive.Next()
		if err != nil {
			return nil, notWhole(fmt.Errorf("it has no %s: %w", manifestFile, err))
		}
		if header.Name == manifestFile && header.Typeflag == tar.TypeReg {
			if err := x.manifest(archive, header.Size); err != nil {
				return nil, err
			}
			return x.left, ended(archive, zip)
		}
		if header.Typeflag == tar.TypeDir && localName(strings.TrimSuffix(header.Name, "/")) {
			continue // directories are created with their files
		}
		if err := x.accept(header); err != nil {
			return nil, err
		}
		if err := x.take(header, archive); err != nil {
			return nil, err
		}
	}
}

// accept returns an error for entries that no export writes.
func (x *importer) accept(h *tar.Header) error {
	name := h.Name
	if h.Typeflag != tar.TypeReg {
		return strange("%.80q, which is not a regular file", name)
	}
	for record := range h.PAXRecords {
		// A few bytes of an archive could fill the disk.
		if strings.HasPrefix(record, "GNU.sparse.") {
			return strange("%.80q, which is a file with holes", name)
		}
	}
	if !localName(name) || len(name) > maxName {
		return strange("%.80q, which is no name of a file in a data directory", name)
	}
	folded := strings.ToLower(name)
	if other, taken := x.folded[folded]; taken {
		return strange("both %.80q and %.80q", other, name)
	}
	x.folded[folded] = name
	return nil
}

// localName reports whether a name is one that an export can contain: a clean path below the root.
func localName(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, "\\\x00")
}

// take writes a file of a known kind. It leaves out other files and those whose content is not of their kind.
func (x *importer) take(h *tar.Header, r io.Reader) error {
	k, dir, within := kindOf(h.Name)
	why := leftForm
	if k == nil {
		why = whyLeft(h.Name)
	}
	if k == nil || k.most > 0 && h.Size > k.most {
		return x.drain(h, r, why)
	}
	if free, _, err := x.files.Free(); err != nil || uint64(h.Size)+reserve > free {
		return errors.Join(err, &ArchiveError{Why: fmt.Sprintf("needs %d bytes for %s, but %d are free on the disk",
			h.Size, h.Name, free), Do: "free disk space, or set another --data-dir"})
	}
	if err := x.write(h.Name, r); err != nil {
		return err
	}
	of := x.files
	if dir != "." {
		of = newFiles(x.files.shared, dir)
	}
	err := k.check(of, within)
	var newer *newerError
	var disk *fs.PathError
	if err == nil || errors.As(err, &newer) || errors.As(err, &disk) {
		return err
	}
	x.files.shared.log.Warn().Str("file", h.Name).AnErr("cause",
		err).Msg("a file of an archive does not match its name and is left out")
	x.left.add(leftForm, h.Name)
	err = x.files.Remove(h.Name)
	for at := path.Dir(h.Name); err == nil && at != "."; at = path.Dir(at) {
		if x.files.Remove(at) != nil {
			break // it is not empty
		}
	}
	return err
}

// drain reads a file that is left out, because its checksum is needed.
func (x *importer) drain(h *tar.Header, r io.Reader, why string) error {
	x.left.add(why, h.Name)
	x.waste += h.Size
	if x.wasted++; x.waste > maxWaste || x.wasted > maxLeft {
		return strange("more than %d bytes, or %d files, that belong to no store", int64(maxWaste), maxLeft)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, x.cancelled(r)); err != nil {
		return notWhole(err)
	}
	x.sums[h.Name] = hexSum(sum)
	return nil
}

// cancelled returns a reader that fails when the import's context ends.
func (x *importer) cancelled(r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := context.Cause(x.ctx); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// write durably writes a file and records its checksum. Errors of the archive become *ArchiveError; those of the disk
// do not.
func (x *importer) write(name string, r io.Reader) (err error) {
	if err := x.files.Mkdir(path.Dir(name)); err != nil {
		return err
	}
	f, err := x.files.Open(name, true)
	if err != nil {
		return err
	}
	sum := sha256.New()
	from := readFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if err != nil && err != io.EOF {
			err = notWhole(err)
		}
		return n, err
	})
	_, err = io.CopyBuffer(struct{ io.Writer }{io.NewOffsetWriter(f, 0)}, io.TeeReader(x.cancelled(from), sum),
		make([]byte, 256<<10))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	x.sums[name] = hexSum(sum)
	return x.files.SyncDir(path.Dir(name))
}

// manifest compares the files that came with the archive's list.
func (x *importer) manifest(r io.Reader, size int64) error {
	if most := int64(len(x.sums)+64) << 10; size > most {
		return strange("a list of %d bytes for %d files", size, len(x.sums))
	}
	var m manifest
	if err := json.NewDecoder(r).Decode(&m); err != nil {
		return notWhole(fmt.Errorf("%s: %w", manifestFile, err))
	}
	if m.SchemaVersion > agent.SchemaVersion {
		return &newerError{manifestFile, m.SchemaVersion, agent.SchemaVersion}
	}
	for name, sum := range m.Files {
		if x.sums[name] != sum {
			return &ArchiveError{Why: fmt.Sprintf("is damaged: the checksum of %.80q is wrong, or it is missing", name),
				Do: exportAgain}
		}
	}
	for name := range x.sums {
		if m.Files[name] == "" {
			return strange("%.80q, which is not in its list", name)
		}
	}
	return nil
}

// ended verifies that nothing follows the list, and the checksum of the compressed archive.
func ended(archive *tar.Reader, zip io.Reader) error {
	h, err := archive.Next()
	if err == nil {
		return strange("%.80q behind its list", h.Name)
	}
	if err != io.EOF {
		return notWhole(err)
	}
	const most = 1 << 20
	rest, err := io.ReadAll(io.LimitReader(zip, most))
	if err != nil {
		return notWhole(err)
	}
	// tar pads archives with zeros.
	if len(rest) == most || len(bytes.Trim(rest, "\x00")) > 0 {
		return strange("something behind its end")
	}
	return nil
}

// Imported is the result of an import.
type Imported struct {
	LeftOut []LeftOut // files of the archive that were not imported
	// connections whose secrets can be opened only with the key of the installation that wrote the archive
	Sealed int
}

// Import fills the directory, which must be empty or missing, from an export, and opens the store once to replay the
// export's journal. It imports only primary files of known kinds. A wrong checksum, a missing file or a file that the
// manifest does not list makes it fail with *ArchiveError; what was written is then removed. audit is the entry for the
// audit trail of the default namespace; nil means none.
func Import(ctx context.Context, dir string, r io.Reader, o Options, audit *agent.AuditEntry) (in Imported, err error) {
	fs, err := emptyDirectory(dir, o, "an import")
	if err != nil {
		return in, err
	}
	o.FS = fs
	if err := whole(fs, func() error {
		in.LeftOut, err = importInto(ctx, o, r)
		return err
	}); err != nil {
		return in, err
	}
	o.recount = true // byte counts in an archive are not trusted
	s, err := Open(dir, o)
	if errors.Is(err, store.ErrInUse) {
		return in, err
	}
	if err == nil {
		err = s.loadAll()
		for _, n := range s.all() {
			in.Sealed += n.connections.sealed()
		}
		err = errors.Join(err, s.note(ctx, audit), s.close())
	}
	if err != nil {
		err = errors.Join(err, markUnfinished(fs), emptyOut(fs))
	}
	return in, err
}

// note adds an entry to the audit trail of the default namespace, unless audit is nil.
func (s *Store) note(ctx context.Context, audit *agent.AuditEntry) error {
	if audit == nil {
		return nil
	}
	n, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		return err
	}
	return n.AppendAudit(ctx, *audit)
}

// emptyOut removes the content of a directory. unfinishedFile goes last and marks the directory until then.
func emptyOut(fs vfs.FS) error {
	names, err := fs.List(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != unfinishedFile {
			err = errors.Join(err, fs.RemoveAll(name))
		}
	}
	return errors.Join(err, fs.RemoveAll(unfinishedFile)) // last
}

// An Addition names a namespace of an export that is to be added to a store.
type Addition struct {
	Name  agent.Namespace
	Audit *agent.AuditEntry // entry of the import for the audit trail of the default namespace; nil means none
}

// ImportNamespace adds one namespace of an export to the store in the directory, whose daemon must be stopped. The
// namespace keeps its name and is added completely or not at all. The error matches store.ErrExists if the store has a
// namespace of that name, and store.ErrNotFound if the export has none. The content of the export is first written to a
// temporary directory.
func ImportNamespace(ctx context.Context, dir string, r io.Reader, o Options, add Addition) (in Imported, err error) {
	name := add.Name
	if err := name.Validate(); err != nil {
		return in, err
	}
	temp, err := os.MkdirTemp("", "recurgent-import-")
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	s, err := Open(dir, o)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if name == agent.DefaultNamespace || s.have(name) {
		return in, fmt.Errorf("%w: namespace %s", store.ErrExists, name)
	}
	from := filepath.Join(temp, "store")
	if in, err = Import(ctx, from, r, o, nil); err != nil {
		return in, err
	}
	// After a crash the next start removes the directory, because its name is that of an erased namespace.
	aside := namespaceDir(name) + erasedSuffix
	if err := Fill(ctx, filepath.Join(dir, aside), o,
		func(give func(*store.Item) error) error { return Items(ctx, from, o, name, give) }); err != nil {
		return in, err
	}
	if err := s.adopt(aside, name); err != nil {
		return in, err
	}
	in.Sealed = s.namespace(name).connections.sealed()
	return in, s.note(ctx, add.Audit)
}

// adopt moves a namespace from a store in the directory aside into this store. It belongs to this store from the rename
// on; the checkpoint then records the rest.
func (s *Store) adopt(aside string, name agent.Namespace) error {
	var filled checkpointDoc
	if _, err := readOptional(newFiles(s.shared, aside), checkpointFile, &filled, nil); err != nil {
		return err
	}
	s.flusher.mu.Lock()
	defer s.flusher.mu.Unlock()
	if err := s.root.Rename(path.Join(aside, namespaceDir(name)), namespaceDir(name)); err != nil {
		return err
	}
	s.mu.Lock()
	s.spaces.idle[name] = filled.of(name)
	s.mu.Unlock()
	if _, _, err := s.load(name); err != nil {
		return err
	}
	s.flusher.forced = true
	return errors.Join(s.root.SyncDir(namespacesDir), s.flusher.checkpointLocked(), s.root.removeTree(aside))
}
