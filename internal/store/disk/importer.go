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
	"path"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
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
		return errors.Join(err, &ArchiveError{Why: fmt.Sprintf("has %d bytes for %s, and %d are free on the disk",
			h.Size, h.Name, free), Do: "make room, or name another --data-dir"})
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
		err).Msg("a file of an archive is not what its name says, and is left out")
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
