package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// draft is a store.Draft in a temporary file. It must not be used concurrently.
type draft struct {
	p    *streams
	temp string
	file vfs.File // nil once it was sealed or discarded
	size int64    // bytes written so far
	room int64    // bytes that may be written before the free space is checked again
}

// NewDraft is part of store.Namespace.
func (p *streams) NewDraft() (store.Draft, error) {
	if err := p.n.make(); err != nil {
		return nil, err
	}
	if err := p.n.health.ready(); err != nil {
		return nil, err
	}
	d := &draft{p: p, temp: p.n.files.NewTemp()}
	f, err := p.n.files.Open(d.temp, true)
	if err != nil {
		return nil, fullError(err)
	}
	d.file = f
	return d, nil
}

// fullError makes a lack of space match store.ErrFull.
func fullError(err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

// Write is part of store.Draft. It returns store.ErrFull if the disk has too little space.
func (d *draft) Write(data []byte) (int, error) {
	if d.file == nil {
		return 0, fs.ErrClosed
	}
	if d.room -= int64(len(data)); d.room < 0 {
		if err := d.checkSpace(int64(len(data))); err != nil {
			return 0, err
		}
	}
	n, err := d.file.WriteAt(data, d.size)
	d.size += int64(n)
	return n, fullError(err)
}

// ReadAt is part of store.Draft.
func (d *draft) ReadAt(p []byte, off int64) (int, error) {
	if d.file == nil {
		return 0, fs.ErrClosed
	}
	return d.file.ReadAt(p, off)
}

// checkSpace returns store.ErrFull if writing size bytes would leave less space than the store needs for itself.
func (d *draft) checkSpace(size int64) error {
	const step = 8 << 20
	o := &d.p.n.o
	free, total, err := o.FS.Free()
	if err != nil {
		return err
	}
	if need := 2*min(o.Reserve, total/50) + step + uint64(size); free < need {
		return fmt.Errorf("%w: %d bytes are free on the disk", store.ErrFull, free)
	}
	d.room = step
	return nil
}

// Discard is part of store.Draft.
func (d *draft) Discard() {
	if d.file == nil {
		return
	}
	_ = d.file.Close()
	d.file = nil
	_ = d.p.n.files.Remove(d.temp) // otherwise the next start removes it
}

// seal durably moves the bytes to the place of the owner's file. The caller syncs the directory. The draft cannot be
// used afterwards, even after an error.
func (d *draft) seal(ctx context.Context, owner, id string) error {
	if d.file == nil || !validID(id) {
		return fs.ErrClosed
	}
	err := d.p.n.bulk.sync(ctx, agent.Owner{Namespace: d.p.n.name, Name: owner}, d.file.Sync)
	err = errors.Join(err, d.file.Close())
	d.file = nil
	if err == nil {
		err = d.p.n.files.Rename(d.temp, path.Join(filesDir, id))
	}
	if err != nil {
		_ = d.p.n.files.Remove(d.temp)
		return fullError(err)
	}
	return nil
}
