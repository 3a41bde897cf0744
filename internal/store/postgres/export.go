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

// Export is part of store.Exporter: an archive as that of package disk. It is made by way of a directory of temporary files, which takes as much
// space as the archive's content.
func (s *Store) Export(ctx context.Context, w io.Writer) (err error) {
	temp, err := os.MkdirTemp("", "recurgent-export-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	dir, o := filepath.Join(temp, "store"), disk.DefaultOptions()
	o.Now = s.o.Now
	if err := disk.Fill(ctx, dir, o, func(give func(*store.Item) error) error { return s.Items(ctx, give) }); err != nil {
		return err
	}
	d, err := disk.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(d.Export(ctx, w), d.Close(context.WithoutCancel(ctx)))
}

// Import fills an empty store from an archive of either store. audit is the entry of the import in the audit trail of the default namespace, nil
// for none. An archive that is damaged changes nothing.
func (s *Store) Import(ctx context.Context, r io.Reader, audit *agent.AuditEntry) (err error) {
	temp, err := os.MkdirTemp("", "recurgent-import-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	dir, o := filepath.Join(temp, "store"), disk.DefaultOptions()
	o.Now = s.o.Now
	if err := disk.Import(ctx, dir, r, o, audit); err != nil {
		return err
	}
	return s.Fill(ctx, func(give func(*store.Item) error) error { return disk.Items(ctx, dir, o, give) })
}

var _ store.Exporter = (*Store)(nil)
