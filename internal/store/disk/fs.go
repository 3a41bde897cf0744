package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// FS is the file system under one directory, as the store uses it. Names are relative to the directory, with slashes.
// Tests put one in place that fails, tears and forgets as power cuts do. It is safe for concurrent use.
type FS interface {
	// Open opens a file for reading and writing; create makes it when it is not there. fs.ErrNotExist.
	Open(name string, create bool) (File, error)
	ReadFile(name string) ([]byte, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	Mkdir(name string) error            // and its parents; one that exists is fine
	List(dir string) ([]string, error)  // names, sorted
	Stat(name string) (FileInfo, error) // fs.ErrNotExist
	SyncDir(dir string) error           // makes what was made, renamed and removed in it durable
	Lock(name string) (unlock func() error, err error)
	Free() (free, total uint64, err error) // bytes
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Preallocate(size int64) error // makes room, so that later writes within size do not fail for want of it
	Size() (int64, error)
	Sync() error // makes the content durable
}

// FileInfo is what the store asks of a file.
type FileInfo struct {
	Size    int64
	ModTime time.Time
	Dir     bool
}

// DirFS returns the file system under the directory, which is made when it is not there.
func DirFS(dir string) (FS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return dirFS(dir), nil
}

type dirFS string

func (d dirFS) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d dirFS) Open(name string, create bool) (File, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(d.path(name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d dirFS) ReadFile(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }
func (d dirFS) Rename(from, to string) error         { return os.Rename(d.path(from), d.path(to)) }
func (d dirFS) Remove(name string) error             { return os.Remove(d.path(name)) }
func (d dirFS) RemoveAll(name string) error          { return os.RemoveAll(d.path(name)) }
func (d dirFS) Mkdir(name string) error              { return os.MkdirAll(d.path(name), 0o700) }

func (d dirFS) List(dir string) ([]string, error) {
	f, err := os.Open(d.path(dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (d dirFS) Stat(name string) (FileInfo, error) {
	st, err := os.Stat(d.path(name))
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{st.Size(), st.ModTime(), st.IsDir()}, nil
}

func (d dirFS) SyncDir(dir string) error {
	f, err := os.Open(d.path(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
