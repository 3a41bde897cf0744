// Package vfstest provides an in-memory file system for crash tests. It loses unsynced data and fails operations as
// disks do.
package vfstest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// FS is an in-memory file system that records every operation. A test can ask what a power cut after any of them may
// have left: of each file, what was synced and any part of what was not, written in any order and with writes torn
// anywhere; of each directory, what was synced and any of the later creations, renames and removals. Fail makes
// operations fail. An FS may be used concurrently.
type FS struct {
	// Fail, if set, is called before operation n, counted from 1; reads are not counted. An error makes the operation
	// fail. If short is set as well, a write still writes the first half of its bytes.
	Fail func(n int, op Op) (err error, short bool)

	mu    sync.Mutex
	ops   []Op
	names map[string]*inode // files
	files map[int]*inode    // the named files, by id
	dirs  map[string]bool
	held  bool // the lock of Lock
	inode int  // id of the latest file
	n     int  // operations counted for Fail
}

// Op is a recorded operation. Only the fields that its kind needs are set.
type Op struct {
	Kind  string // write, truncate, sync, create, remove, removeall, rename, renamedir, mkdir, syncdir, syncall, mark
	Name  string
	To    string // of renames
	Inode int
	Off   int64
	Data  []byte
	Size  int64
	Mark  int
}

func (op Op) String() string {
	return fmt.Sprintf("%s %s%s inode %d, %d bytes at %d", op.Kind, op.Name, op.To, op.Inode, len(op.Data), op.Off)
}

// ErrInjected is an error for Fail to return.
var ErrInjected = fmt.Errorf("injected: %w", syscall.EIO)

// New returns an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, files: map[int]*inode{}, dirs: map[string]bool{".": true}}
}

// Ops returns the operations so far.
func (f *FS) Ops() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ops)
}

// do records and applies an operation, unless Fail makes it fail. The caller holds mu.
func (f *FS) do(op Op) error {
	if f.Fail != nil && op.Kind != "mark" {
		f.n++
		if err, short := f.Fail(f.n, op); err != nil {
			if short && op.Kind == "write" {
				op.Data = op.Data[:len(op.Data)/2]
				f.apply(op)
				f.ops = append(f.ops, op)
			}
			return err
		}
	}
	f.ops = append(f.ops, op)
	f.apply(op)
	return nil
}

// apply applies an operation to the current state. The caller holds mu.
func (f *FS) apply(op Op) {
	switch op.Kind {
	case "write", "truncate":
		if x := f.files[op.Inode]; x != nil {
			x.write(op)
		}
	case "create":
		f.link(op.Name, &inode{id: op.Inode})
	case "remove":
		f.unlink(op.Name)
	case "removeall":
		for name := range f.names {
			if name == op.Name || strings.HasPrefix(name, op.Name+"/") {
				f.unlink(name)
			}
		}
		for dir := range f.dirs {
			if dir == op.Name || strings.HasPrefix(dir, op.Name+"/") {
				delete(f.dirs, dir)
			}
		}
	case "rename":
		x := f.names[op.Name]
		f.unlink(op.Name)
		f.link(op.To, x)
	case "renamedir":
		f.moveDir(op.Name, op.To)
	case "mkdir":
		f.dirs[op.Name] = true
	}
}

// link gives a file a name, which another file loses.
func (f *FS) link(name string, x *inode) {
	f.unlink(name)
	f.names[name], f.files[x.id] = x, x
}

// unlink removes a name if it exists.
func (f *FS) unlink(name string) {
	if x := f.names[name]; x != nil {
		delete(f.names, name)
		delete(f.files, x.id)
	}
}

// moveDir moves a directory and its content.
func (f *FS) moveDir(from, to string) {
	for name, x := range maps.Clone(f.names) {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(f.names, name)
			f.names[to+"/"+rest] = x
		}
	}
	for dir := range maps.Clone(f.dirs) {
		if rest, ok := strings.CutPrefix(dir+"/", from+"/"); ok {
			delete(f.dirs, dir)
			f.dirs[path.Clean(to+"/"+rest)] = true
		}
	}
}

// Mark records n among the operations, as a point of the test to refer to. It is not counted for Fail.
func (f *FS) Mark(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, Op{Kind: "mark", Mark: n})
}

// Text lists the files with their sizes, for test failures.
func (f *FS) Text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []string{}
	for name, x := range f.names {
		out = append(out, fmt.Sprintf("%s %d", name, x.size()))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (f *FS) Open(name string, create bool) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirs[path.Dir(name)] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	x := f.names[name]
	if x == nil {
		if !create {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		if err := f.do(Op{Kind: "create", Name: name, Inode: f.inode + 1}); err != nil {
			return nil, err
		}
		f.inode++
		x = f.names[name]
	}
	return &simFile{f, x}, nil
}

func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.names[name]; x != nil {
		return x.content(), nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dirs[from] && f.dirs[path.Dir(to)] {
		if _, err := f.list(to); err == nil {
			return &fs.PathError{Op: "rename", Path: to, Err: syscall.ENOTEMPTY}
		}
		return f.do(Op{Kind: "renamedir", Name: from, To: to})
	}
	x := f.names[from]
	if x == nil || !f.dirs[path.Dir(to)] {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	return f.do(Op{Kind: "rename", Name: from, To: to, Inode: x.id})
}

func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	return f.do(Op{Kind: "remove", Name: name})
}

func (f *FS) RemoveAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do(Op{Kind: "removeall", Name: name})
}

func (f *FS) Mkdir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mkdir(name)
}

func (f *FS) mkdir(name string) error {
	if f.dirs[name] {
		return nil
	}
	if err := f.mkdir(path.Dir(name)); err != nil {
		return err
	}
	return f.do(Op{Kind: "mkdir", Name: name})
}

func (f *FS) List(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list(dir)
}

// list is List with mu held.
func (f *FS) list(dir string) ([]string, error) {
	if !f.dirs[dir] {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	out := []string{}
	for name := range f.names {
		if path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	for name := range f.dirs {
		if path.Dir(name) == dir && name != "." {
			out = append(out, path.Base(name))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (f *FS) Stat(name string) (vfs.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.names[name]; x != nil {
		return vfs.Info{Size: x.size(), ModTime: time.Unix(0, 0)}, nil
	}
	if f.dirs[name] {
		return vfs.Info{Dir: true}, nil
	}
	return vfs.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirs[dir] {
		return &fs.PathError{Op: "sync", Path: dir, Err: fs.ErrNotExist}
	}
	return f.do(Op{Kind: "syncdir", Name: dir})
}

func (f *FS) SyncAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do(Op{Kind: "syncall"})
}

func (f *FS) Lock(string) (func() error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held {
		return nil, errors.New("held")
	}
	f.held = true
	return func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = false
		return nil
	}, nil
}

func (f *FS) Free() (free, total uint64, err error) { return 1 << 40, 1 << 40, nil }
