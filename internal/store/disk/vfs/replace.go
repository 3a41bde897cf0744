package vfs

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"
)

// TempDir is the directory of files that are being written, below the root of a Replacer.
const TempDir = "tmp"

// Replacer replaces whole files: a reader, or a start after a crash, sees either the old or the new content. It may be
// used concurrently, but two replacements of the same file must not overlap. Clean must be called first.
type Replacer struct {
	FS
	count atomic.Int64 // number of the latest temporary file
}

// Replace durably replaces the content of the file.
func (r *Replacer) Replace(name string, data []byte) error {
	if err := r.ReplaceUnsynced(name, data); err != nil {
		return err
	}
	return r.SyncDir(path.Dir(name))
}

// NewTemp returns an unused name for a file that is written and then renamed.
func (r *Replacer) NewTemp() string { return fmt.Sprintf("%s/%d", TempDir, r.count.Add(1)) }

// ReplaceUnsynced is Replace without the sync of the directory. It lets callers replace several files and then sync the
// directory once.
func (r *Replacer) ReplaceUnsynced(name string, data []byte) error {
	temp := r.NewTemp()
	// The content must be on disk before the rename. Otherwise a power cut could leave the name with an empty file.
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

// A Batch replaces many files with two syncs in all. Each file is replaced atomically, as by Replace, but the batch is
// not: after a crash some files may be replaced and others not. A Batch must not be used concurrently.
type Batch struct {
	r      *Replacer
	staged []staged
}

type staged struct{ temp, name string }

// NewBatch returns an empty batch.
func (r *Replacer) NewBatch() *Batch { return &Batch{r: r} }

// Add writes data to a temporary file. Commit will replace the named file by it.
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

// Commit durably replaces the files. If it fails, the files that were not yet replaced keep their content.
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

// Discard removes the temporary files that Commit has not renamed.
func (b *Batch) Discard() {
	for _, s := range b.staged {
		_ = b.r.Remove(s.temp) // Clean removes what is left at the next start
	}
	b.staged = nil
}

// Clean creates TempDir and removes files that a crash left in it.
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
