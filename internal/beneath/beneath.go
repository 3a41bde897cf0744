// Package beneath restricts file operations to one directory tree. It follows no symbolic links below the directory and
// opens only regular files and directories. Whoever can write below the directory therefore cannot make the daemon
// read, write or remove a file elsewhere, or block on a pipe. The directory itself may be named by a link.
//
// The package knows nothing about the content of files.
package beneath

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Dir is an open directory. Names are relative to it and slash-separated, as in io/fs; "." is the directory itself. A
// Dir may be used concurrently.
type Dir struct {
	path string
	root *os.Root
	top  *os.File // the directory itself, where lookups of names start
}

// Info describes a file or a directory.
type Info struct {
	Size    int64
	ModTime time.Time
	Dir     bool
}

// A KindError means that a name belongs to something other than the expected file or directory.
type KindError struct {
	Path string
	Is   string // such as "a symbolic link" or "a named pipe"
}

func (e *KindError) Error() string {
	return fmt.Sprintf("%s is %s, and recurgentd uses no such thing in its place: put the file or directory itself there, or remove it", e.Path, e.Is)
}

// Open opens the directory, which must exist. The caller closes it; a Dir that is no longer referenced is closed by the
// garbage collector.
func Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{dir, root, top}, nil
}

// Close closes the directory. Files opened through it stay open.
func (d *Dir) Close() error { return errors.Join(d.top.Close(), d.root.Close()) }

// Path returns the name joined to the path of the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Open opens a regular file; flag and perm are those of os.OpenFile. It returns a *KindError if the name belongs to
// something else, and a *fs.PathError for other errors.
func (d *Dir) Open(name string, flag int, perm os.FileMode) (*os.File, error) {
	return d.open(name, flag, perm, unix.S_IFREG)
}

// OpenDir opens a directory for reading and syncing.
func (d *Dir) OpenDir(name string) (*os.File, error) {
	return d.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.S_IFDIR)
}

// open opens a name that must be of the kind, an S_IF constant.
func (d *Dir) open(name string, flag int, perm os.FileMode, kind uint32) (f *os.File, err error) {
	err = d.in("open", name, func(dir int, base string) error {
		// Without O_NONBLOCK a pipe in place of the file would block; without O_NOCTTY a terminal could become the
		// controlling one.
		fd, err := openat(dir, base, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, uint32(perm.Perm()))
		if err != nil {
			return d.orKind(dir, base, name, kind, err)
		}
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && uint32(st.Mode)&unix.S_IFMT != kind {
			err = &KindError{d.Path(name), kindOf(uint32(st.Mode))}
		}
		if err == nil {
			// Blocking mode keeps os.NewFile from trying to register the file with the runtime's poller.
			err = unix.SetNonblock(fd, false)
		}
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		f = os.NewFile(uintptr(fd), d.Path(name))
		return nil
	})
	return f, err
}

// in opens the parent directory of the name and calls do with it and the last element of the name. The descriptor is
// valid until do returns.
func (d *Dir) in(op, name string, do func(dir int, base string) error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	defer runtime.KeepAlive(d)
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	at, top := int(d.top.Fd()), true
	// Each directory is opened relative to its parent and without following links. A link that replaces a directory
	// meanwhile therefore has no effect.
	for i, part := range parts[:last] {
		next, err := openat(at, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			err = d.orKind(at, part, path.Join(parts[:i+1]...), unix.S_IFDIR, err)
		}
		if !top {
			_ = unix.Close(at) // it was only used for lookups
		}
		if err != nil {
			return d.wrap(op, name, err)
		}
		at, top = next, false
	}
	if !top {
		defer unix.Close(at)
	}
	return d.wrap(op, name, do(at, parts[last]))
}

// wrap returns a *KindError as it is and puts other errors into a *fs.PathError.
func (d *Dir) wrap(op, name string, err error) error {
	if _, is := errors.AsType[*KindError](err); err == nil || is {
		return err
	}
	return &fs.PathError{Op: op, Path: d.Path(name), Err: err}
}

// orKind returns a *KindError if the name belongs to something of another kind, and err otherwise.
func (d *Dir) orKind(dir int, base, name string, kind uint32, err error) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || uint32(st.Mode)&unix.S_IFMT == kind {
		return err
	}
	return &KindError{d.Path(name), kindOf(uint32(st.Mode))}
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a named pipe"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// openat retries after EINTR. Child processes do not inherit the descriptor.
func openat(dir int, name string, flag int, perm uint32) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, name, flag|unix.O_CLOEXEC, perm)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// ReadFile returns the content of a regular file.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	f, err := d.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	_, err = data.ReadFrom(f)
	return data.Bytes(), err
}

// Stat describes a file or a directory. It returns a *KindError for anything else.
func (d *Dir) Stat(name string) (info Info, err error) {
	err = d.in("stat", name, func(dir int, base string) error {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		kind := uint32(st.Mode) & unix.S_IFMT
		if kind != unix.S_IFREG && kind != unix.S_IFDIR {
			return &KindError{d.Path(name), kindOf(kind)}
		}
		info = Info{st.Size, time.Unix(st.Mtim.Unix()), kind == unix.S_IFDIR}
		return nil
	})
	return info, err
}

// List returns the names in a directory, sorted.
func (d *Dir) List(name string) ([]string, error) {
	f, err := d.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// SyncDir makes creations, renames and removals in a directory durable.
func (d *Dir) SyncDir(name string) error {
	f, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Mkdir creates a directory and its missing parents. It succeeds if the directory exists.
func (d *Dir) Mkdir(name string, perm os.FileMode) error {
	info, err := d.Stat(name)
	if err == nil && info.Dir {
		return nil
	}
	if err == nil {
		return &KindError{d.Path(name), "a file"}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.Mkdir(path.Dir(name), perm); err != nil {
		return err
	}
	err = d.in("mkdir", name, func(dir int, base string) error { return unix.Mkdirat(dir, base, uint32(perm.Perm())) })
	if errors.Is(err, fs.ErrExist) { // created concurrently
		return d.Mkdir(name, perm)
	}
	return err
}

// Rename renames a file or a directory, or anything else with that name.
func (d *Dir) Rename(from, to string) error {
	return d.in("rename", from, func(fromDir int, fromBase string) error {
		return d.in("rename", to, func(toDir int, toBase string) error {
			return unix.Renameat(fromDir, fromBase, toDir, toBase)
		})
	})
}

// Remove removes a file or an empty directory, or anything else with that name. The error for a directory with content
// is ENOTEMPTY or EEXIST.
func (d *Dir) Remove(name string) error {
	return d.in("remove", name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if err == unix.EISDIR || err == unix.EPERM {
			if asDir := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); asDir != unix.ENOTDIR {
				return asDir
			}
		}
		return err
	})
}

// RemoveAll removes a file or a directory with its content. It succeeds if there is nothing to remove.
func (d *Dir) RemoveAll(name string) error {
	// in refuses parents that are symbolic links; os.Root follows links whose targets lie below the directory.
	err := d.in("remove", name, func(int, string) error { return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.root.RemoveAll(name)
}
