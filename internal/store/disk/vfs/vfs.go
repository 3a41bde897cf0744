// Package vfs is the file system below one directory, reduced to what the store needs. Tests can replace it by one that
// fails, tears writes and loses unsynced data as power cuts do (package vfstest).
//
// The package knows nothing about the content of files.
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

// FS is the file system below one directory. Names are relative to it and slash-separated; "." is the directory itself.
// An FS may be used concurrently. It follows no symbolic links and opens no pipes or devices; it returns
// *beneath.KindError for them.
type FS interface {
	// Open opens a file for reading and writing. If the file is missing, it is created if create is set; otherwise the
	// error matches fs.ErrNotExist.
	Open(name string, create bool) (File, error)
	ReadFile(name string) ([]byte, error) // fs.ErrNotExist
	Rename(from, to string) error         // atomic; replaces a file named to
	Remove(name string) error             // of a file or an empty directory; fs.ErrNotExist
	RemoveAll(name string) error          // of a file or a directory with its content; a missing one is fine
	Mkdir(name string) error              // creates missing parents; succeeds if it exists
	List(dir string) ([]string, error)    // sorted names; fs.ErrNotExist
	Stat(name string) (Info, error)       // fs.ErrNotExist
	SyncDir(dir string) error             // makes creations, renames and removals in it durable
	// SyncAll makes durable all that was written, created, renamed or removed before. It returns errors.ErrUnsupported
	// if the system lacks such an operation or its operation does not report write errors.
	SyncAll() error
	// Lock locks the file for this process until unlock is called or the process ends. It returns *LockedError if
	// another process holds the lock.
	Lock(name string) (unlock func() error, err error)
	Free() (free, total uint64, err error) // bytes
}

// LockedError means that another process holds the lock file.
type LockedError struct {
	Name   string // of the lock file
	Holder string // the other process's id; "" if it is not known
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
	Preallocate(size int64) error // reserves space; later writes within size then do not fail for lack of it
	Size() (int64, error)
	Sync() error // makes the content durable
}

// Info describes a file or a directory.
type Info = beneath.Info

// Dir returns the file system below the directory, which is created if it is missing.
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

// Version returns a string that changes when the content changes or another file takes its place: see store.Versioned.
// It returns "" if the file's state cannot be read.
func (f osFile) Version() string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	return fmt.Sprintf("%x %x %x", st.Ino, st.Ctim.Nano(), st.Size)
}

// NotExist reports whether the error means that a file or directory is missing.
func NotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// WrongKind reports whether the error means that a name belongs to something other than the expected file or directory.
func WrongKind(err error) bool {
	_, is := errors.AsType[*beneath.KindError](err)
	return is
}
