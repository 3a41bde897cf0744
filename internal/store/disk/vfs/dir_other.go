//go:build !linux

package vfs

import (
	"errors"
	"os"
)

// Sync makes the content durable.
func (f osFile) Sync() error { return f.File.Sync() }

// Preallocate does nothing. Later writes may fail for lack of space, which callers handle anyway.
func (f osFile) Preallocate(int64) error { return nil }

// SyncAll is not supported on these systems.
func (d dirFS) SyncAll() error { return errors.ErrUnsupported }

// Free returns a very large number, because the free space is not known. A full disk shows only in failing writes.
func (d dirFS) Free() (free, total uint64, err error) { return 1 << 62, 1 << 62, nil }

// Lock creates the lock file exclusively. The file outlives a killed process; a person has to remove it then.
func (d dirFS) Lock(name string) (unlock func() error, err error) {
	f, err := d.Dir.Open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, &LockedError{Name: name}
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), d.Remove(name)) }, nil
}
