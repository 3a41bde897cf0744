//go:build !linux

package disk

import (
	"errors"
	"fmt"
	"os"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Sync makes the content durable.
func (f osFile) Sync() error { return f.File.Sync() }

// Preallocate does nothing: writes may then fail for want of room, which is handled too.
func (f osFile) Preallocate(int64) error { return nil }

// Free knows nothing here: the disk is full when a write says so.
func (d dirFS) Free() (free, total uint64, err error) { return 1 << 62, 1 << 62, nil }

// Lock makes the lock file. It outlives a killed process: the message says what to do.
func (d dirFS) Lock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("data directory %s: %w by another recurgentd; stop it, or remove %s if none runs", string(d), store.ErrInUse, d.path(name))
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(d.path(name))) }, nil
}
