package vfs

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"
)

// TempDir holds files that are being written, in each directory that a Replacer writes to.
const TempDir = "tmp"

// Replacer replaces whole files: a reader, or a start after a crash, sees the old content or the new one. It is safe for
// concurrent use; two replacements of one file must not overlap.
type Replacer struct {
	FS
	count atomic.Int64
}

// Replace makes data the content of the file, durably.
func (r *Replacer) Replace(name string, data []byte) error {
	if err := r.ReplaceUnsynced(name, data); err != nil {
		return err
	}
	return r.SyncDir(path.Dir(name))
}

// NewTemp names a file to write and then rename.
func (r *Replacer) NewTemp() string { return fmt.Sprintf("%s/%d", TempDir, r.count.Add(1)) }

// ReplaceUnsynced is Replace for callers that replace several files of a directory and then sync the directory once.
func (r *Replacer) ReplaceUnsynced(name string, data []byte) error {
	temp := r.NewTemp()
	err := r.writeSynced(temp, data)
	if err == nil {
		err = r.Rename(temp, name)
	}
	if err != nil {
		_ = r.Remove(temp)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (r *Replacer) writeSynced(name string, data []byte) error {
	f, err := r.Open(name, true)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// A Batch replaces many files with two syncs in all. Each file is replaced atomically, as by Replace, but the batch is not: after a
// crash some files may be replaced and others not. A Batch is not safe for concurrent use.
type Batch struct {
	r      *Replacer
	staged []staged
}

type staged struct{ temp, name string }

// NewBatch returns an empty batch.
func (r *Replacer) NewBatch() *Batch { return &Batch{r: r} }

// Add adds a file: Commit will replace its content by data.
func (b *Batch) Add(name string, data []byte) error {
	temp := b.r.NewTemp()
	b.staged = append(b.staged, staged{temp, name})
	f, err := b.r.Open(temp, true)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.WriteAt(data, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Commit replaces the files durably. If it fails, files that were not replaced yet stay as they were.
func (b *Batch) Commit() error {
	if err := b.r.SyncAll(); err != nil {
		return err
	}
	for len(b.staged) > 0 {
		s := b.staged[0]
		if err := b.r.Rename(s.temp, s.name); err != nil {
			return fmt.Errorf("write %s: %w", s.name, err)
		}
		b.staged = b.staged[1:]
	}
	return b.r.SyncAll()
}

// Discard removes the temporary files that Add wrote and Commit has not renamed.
func (b *Batch) Discard() {
	for _, s := range b.staged {
		_ = b.r.Remove(s.temp) // Clean removes it at the next start
	}
	b.staged = nil
}

// Clean creates the directory for files that are being written and removes those that a crash left in it.
func (r *Replacer) Clean() error {
	if err := r.Mkdir(TempDir); err != nil {
		return err
	}
	names, err := r.List(TempDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(TempDir, name)
		if r.Remove(name) == nil {
			continue
		}
		if err := r.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}
