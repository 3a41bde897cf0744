// Package vfs is the file system below one directory as the store uses it. Tests can replace it by one that fails, tears
// writes and forgets what was not synced, as power cuts do (package vfstest).
//
// It knows nothing of what the files hold.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

// FS is the file system below one directory. Names are relative to the directory, with slashes; "." is the directory
// itself. It is safe for concurrent use. No symbolic link is followed, and no pipe or device opened: *beneath.KindError.
type FS interface {
	// Open opens a file for reading and writing; create makes it when it is missing. fs.ErrNotExist.
	Open(name string, create bool) (File, error)
	ReadFile(name string) ([]byte, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	Mkdir(name string) error           // with its parents; one that exists is fine
	List(dir string) ([]string, error) // names, sorted; fs.ErrNotExist
	Stat(name string) (Info, error)    // fs.ErrNotExist
	SyncDir(dir string) error          // makes durable what was created, renamed and removed in it
	// SyncAll makes everything durable that was written, created, renamed or removed before. errors.ErrUnsupported if the system has no such
	// operation, or one that does not return write errors.
	SyncAll() error
	// Lock takes the lock file for this process until unlock, or until the process ends. *LockedError.
	Lock(name string) (unlock func() error, err error)
	Free() (free, total uint64, err error) // bytes
}

// LockedError says that another process holds the lock file.
type LockedError struct {
	Name   string // of the lock file
	Holder string // the other process's id; "" when it is not known
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by process %s", e.Name, e.Holder)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Preallocate(size int64) error // reserves space, so that later writes within size do not fail for lack of it
	Size() (int64, error)
	Sync() error // makes the content durable
}

// Info describes a file or a directory.
type Info = beneath.Info

// Dir returns the file system below the directory, which is created when it is missing.
func Dir(dir string) (FS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	at, err := beneath.Open(dir)
	return dirFS{at}, err
}

type dirFS struct{ *beneath.Dir }

func (d dirFS) Open(name string, create bool) (File, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := d.Dir.Open(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d dirFS) Mkdir(name string) error { return d.Dir.Mkdir(name, 0o700) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Version changes with the content, and when another file takes its place: see store.Versioned.
func (f osFile) Version() string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	return fmt.Sprintf("%x %x %x", st.Ino, st.Ctim.Nano(), st.Size)
}

// NotExist reports whether the error says that a file or directory is missing.
func NotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// WrongKind reports whether the error says that something else than a file, or than a directory, has the name of one.
func WrongKind(err error) bool {
	_, is := errors.AsType[*beneath.KindError](err)
	return is
}
