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

// ReplaceUnsynced is Replace for callers that replace several files of a directory and then sync the directory once.
func (r *Replacer) ReplaceUnsynced(name string, data []byte) error {
	temp := fmt.Sprintf("%s/%d", TempDir, r.count.Add(1))
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
		if err := r.Remove(path.Join(TempDir, name)); err != nil {
			return err
		}
	}
	return nil
}
