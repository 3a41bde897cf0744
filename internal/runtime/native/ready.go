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

// A DirError reports that nothing can be compiled in the directory, with what to do.
type DirError struct {
	Dir string
	Fix string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("programs cannot be compiled in %s: %v; %s", e.Dir, e.Err, e.Fix)
}

func (e *DirError) Unwrap() error { return e.Err }

var errNoExec = errors.New("no file there can be executed")

// Unusable returns the error of a directory that cannot be used, with what to do about it. Other errors, and nil, it returns as they are.
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

// TryDir returns the error of a directory from which no file could be executed; nil where one could.
func TryDir(dir string) error {
	f, err := os.CreateTemp(dir, ".execute-*")
	if err != nil {
		return Unusable(dir, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it was only tried
	if err := errors.Join(f.Chmod(0o500), f.Close()); err != nil {
		return Unusable(dir, err)
	}
	return Unusable(dir, executable(f.Name()))
}

// executable returns an error where the file, which everybody may execute, lies on a file system from which nothing is executed.
func executable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%w: %w", errNoExec, err)
	}
	return nil
}

// Prepare makes ready what all executables share, which the first build does otherwise. The errors are those of Compile. It may be called concurrently.
func (b *Builder) Prepare(ctx context.Context) error {
	_, err := b.shared(ctx)
	return err
}

// alone waits until no other process replaces what is ready, and keeps them from it until the returned function is called. Where the file system has no locks it does neither.
func (b *Builder) alone() (end func()) {
	dir, err := b.at.OpenDir(".")
	if err != nil {
		return func() {}
	}
	for unix.Flock(int(dir.Fd()), unix.LOCK_EX) == unix.EINTR {
	}
	return func() { _ = dir.Close() } // which unlocks it
}
