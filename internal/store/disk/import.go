package disk

import (
	"context"
	"errors"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

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
