//go:build !linux

package vfs

import (
	"errors"
	"os"
)

// Sync makes the content durable.
func (f osFile) Sync() error { return f.File.Sync() }

// Preallocate does nothing: later writes may fail for lack of space, which is handled too.
func (f osFile) Preallocate(int64) error { return nil }

// SyncAll is not supported on this system.
func (d dirFS) SyncAll() error { return errors.ErrUnsupported }

// Free is not known here: the disk is full when a write fails.
func (d dirFS) Free() (free, total uint64, err error) { return 1 << 62, 1 << 62, nil }

// Lock creates the lock file. It outlives a killed process; somebody has to remove it then.
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
