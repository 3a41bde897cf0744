package disk

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Import fills the directory, which must be empty or missing, from an export, and opens the store once to replay what
// the export's journal has. A checksum that is wrong, or a file too many or too few, fails it; what was written is
// removed then. audit is the entry of the import in the audit trail of the default namespace, nil for none.
func Import(ctx context.Context, dir string, r io.Reader, o Options, audit *agent.AuditEntry) error {
	fs, err := emptyDirectory(dir, o, "an import")
	if err != nil {
		return err
	}
	o.FS = fs
	if err := whole(fs, func() error { return importInto(ctx, fs, r) }); err != nil {
		return err
	}
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(s.note(ctx, audit), s.close())
}

// note adds an entry to the audit trail of the default namespace.
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
	return errors.Join(err, fs.RemoveAll(unfinishedFile)) // at last
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
		return &newerError{manifestFile, m.SchemaVersion, agent.SchemaVersion}
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
