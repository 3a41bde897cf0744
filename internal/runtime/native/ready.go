package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A DirError means that nothing can be compiled in the directory Dir. Fix is advice for the operator.
type DirError struct {
	Dir string
	Fix string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("programs cannot be compiled in %s: %v; %s", e.Dir, e.Err, e.Fix)
}

func (e *DirError) Unwrap() error { return e.Err }

var errNoExec = errors.New("no file there can be executed") // the file system is mounted noexec

// Unusable wraps err in a *DirError if it means that the directory cannot be used. It returns other errors, and nil,
// unchanged.
func Unusable(dir string, err error) error {
	if _, is := errors.AsType[*DirError](err); is || err == nil {
		return err
	}
	fix := ""
	switch {
	case errors.Is(err, errNoExec):
		fix = "mount its file system without noexec, or name a data directory elsewhere"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		fix = "free 200 MB there"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		fix = "let the daemon write there, or name another data directory"
	default:
		return err
	}
	return &DirError{dir, fix, err}
}

// TryDir returns an error if files in the directory cannot be created or executed, otherwise nil.
func TryDir(dir string) error {
	f, err := os.CreateTemp(dir, ".execute-*")
	if err != nil {
		return Unusable(dir, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // only a probe file
	if err := errors.Join(f.Chmod(0o500), f.Close()); err != nil {
		return Unusable(dir, err)
	}
	return Unusable(dir, executable(f.Name()))
}

// executable returns an error if the file, which has execute permission for everybody, is on a file system mounted
// noexec.
func executable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%w: %w", errNoExec, err)
	}
	return nil
}

// Prepare prepares the packages that all executables share; otherwise the first build does. The errors are those of
// Compile. It may be called concurrently.
func (b *Builder) Prepare(ctx context.Context) error {
	_, err := b.shared(ctx)
	return err
}

// alone locks the cache directory, so that no other process replaces the packages until the returned function is
// called. On a file system without locks it has no effect.
func (b *Builder) alone() (end func()) {
	dir, err := b.at.OpenDir(".")
	if err != nil {
		return func() {}
	}
	for unix.Flock(int(dir.Fd()), unix.LOCK_EX) == unix.EINTR {
	}
	return func() { _ = dir.Close() } // Close releases the lock
}
