package postgres

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
)

// Export implements store.Exporter. The archive has the format of package disk. Export builds it in a temporary
// directory, which takes as much space as the archive's content.
func (s *Store) Export(ctx context.Context, w io.Writer, only agent.Namespace) (err error) {
	temp, err := os.MkdirTemp("", "recurgent-export-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	dir, o := filepath.Join(temp, "store"), disk.DefaultOptions()
	o.Now = s.o.Now
	if err := disk.Fill(ctx, dir, o,
		func(give func(*store.Item) error) error { return s.items(ctx, only, give) }); err != nil {
		return err
	}
	d, err := disk.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(d.Export(ctx, w, only), d.Close(context.WithoutCancel(ctx)))
}

// Import fills an empty store from an archive of either kind of store. audit is the entry for the import in the audit
// trail of the default namespace; nil means none. A damaged archive changes nothing.
func (s *Store) Import(ctx context.Context, r io.Reader, audit *agent.AuditEntry) (disk.Imported, error) {
	return s.unpacked(ctx, r, audit, func(dir string, o disk.Options) error {
		return s.Fill(ctx, func(give func(*store.Item) error) error { return disk.Items(ctx, dir, o, "", give) })
	})
}

// ImportNamespace adds one namespace of an archive to the store, which may be in use. It adds all of it under its
// original name, or nothing: store.ErrExists if the store has a namespace of that name, store.ErrNotFound if the
// archive has none. audit is as in Import.
func (s *Store) ImportNamespace(ctx context.Context, r io.Reader, name agent.Namespace,
	audit *agent.AuditEntry) (disk.Imported, error) {
	return s.unpacked(ctx, r, nil, func(dir string, o disk.Options) error {
		return s.fillNamespace(ctx, name, audit,
			func(give func(*store.Item) error) error { return disk.Items(ctx, dir, o, name, give) })
	})
}

// unpacked calls do with a temporary directory that holds the archive's content.
func (s *Store) unpacked(ctx context.Context, r io.Reader, audit *agent.AuditEntry,
	do func(dir string, o disk.Options) error) (in disk.Imported, err error) {
	temp, err := os.MkdirTemp("", "recurgent-import-")
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	dir, o := filepath.Join(temp, "store"), disk.DefaultOptions()
	o.Now = s.o.Now
	if in, err = disk.Import(ctx, dir, r, o, audit); err != nil {
		return in, err
	}
	return in, do(dir, o)
}

var _ store.Exporter = (*Store)(nil)
