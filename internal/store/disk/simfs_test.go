package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// simFS is a file system in memory that remembers every operation, so that a test can ask what a power cut after any
// of them may have left: of each file what was synced and any part of what was not, written in any order, writes torn
// anywhere; of each directory what was synced and any of the later makings, renamings and removals. It can also fail
// operations.
type simFS struct {
	mu    sync.Mutex
	ops   []simOp
	names map[string]*inode // files
	dirs  map[string]bool
	held  bool
	inode int

	// fail, when set, is asked before operation n (reads are not counted): an error fails it, and short keeps only
	// half of a write's bytes.
	fail func(n int, op simOp) (err error, short bool)
	n    int
}

type inode struct {
	id   int
	data []byte
}

// simOp is one operation.
type simOp struct {
	kind  string // write, truncate, sync, create, remove, removeall, rename, mkdir, syncdir, mark
	name  string
	to    string
	inode int
	off   int64
	data  []byte
	size  int64
	mark  int
}

func newSimFS() *simFS {
	return &simFS{names: map[string]*inode{}, dirs: map[string]bool{".": true}}
}

// do notes an operation, or fails it. The caller holds mu.
func (f *simFS) do(op simOp) error {
	if f.fail != nil && op.kind != "mark" {
		f.n++
		if err, short := f.fail(f.n, op); err != nil {
			if short && op.kind == "write" {
				op.data = op.data[:len(op.data)/2]
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

func (f *simFS) apply(op simOp) {
	switch op.kind {
	case "write", "truncate":
		for _, x := range f.names {
			if x.id == op.inode {
				x.data = applyWrite(x.data, op)
			}
		}
	case "create":
		f.names[op.name] = &inode{id: op.inode}
	case "remove":
		delete(f.names, op.name)
	case "removeall":
		for name := range f.names {
			if strings.HasPrefix(name, op.name+"/") {
				delete(f.names, name)
			}
		}
		for dir := range f.dirs {
			if dir == op.name || strings.HasPrefix(dir, op.name+"/") {
				delete(f.dirs, dir)
			}
		}
	case "rename":
		f.names[op.to] = f.names[op.name]
		delete(f.names, op.name)
	case "mkdir":
		f.dirs[op.name] = true
	}
}

func applyWrite(data []byte, op simOp) []byte {
	size := op.size
	if op.kind == "write" {
		size = max(int64(len(data)), op.off+int64(len(op.data)))
	}
	next := make([]byte, size)
	copy(next, data)
	if op.kind == "write" {
		copy(next[op.off:], op.data)
	}
	return next
}

// mark notes a moment of the test among the operations.
func (f *simFS) mark(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, simOp{kind: "mark", mark: n})
}

// crashMode says what becomes of what was not synced.
type crashMode int

const (
	loseAll crashMode = iota
	keepAll
	anyOf
)

// crash returns a file system as a power cut after the first n operations may have left it.
func (f *simFS) crash(n int, mode crashMode, random *rand.Rand) *simFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return crashed(f.ops[:n], mode, random)
}

func crashed(ops []simOp, mode crashMode, random *rand.Rand) *simFS {
	syncedFile, syncedDir := map[int]int{}, map[string]int{} // the last sync of each
	for i, op := range ops {
		switch op.kind {
		case "sync":
			syncedFile[op.inode] = i
		case "syncdir":
			syncedDir[op.name] = i
		}
	}
	stays := func(synced bool) bool {
		return synced || mode == keepAll || mode == anyOf && random.IntN(2) == 0
	}
	out := newSimFS()
	content := map[int][]byte{}
	for i, op := range ops {
		switch op.kind {
		case "write", "truncate":
			synced := syncedFile[op.inode] > i
			if !stays(synced) {
				continue
			}
			if !synced && mode == anyOf && op.kind == "write" && random.IntN(3) == 0 && len(op.data) > 1 {
				from := random.IntN(len(op.data))
				to := from + random.IntN(len(op.data)-from) // a torn write: some of it, not always from its start
				op.off, op.data = op.off+int64(from), op.data[from:to]
			}
			content[op.inode] = applyWrite(content[op.inode], op)
		case "create":
			if stays(syncedDir[path.Dir(op.name)] > i) && out.dirs[path.Dir(op.name)] {
				out.names[op.name] = &inode{id: op.inode}
			}
		case "remove":
			if stays(syncedDir[path.Dir(op.name)] > i) {
				delete(out.names, op.name)
			}
		case "removeall":
			if stays(syncedDir[path.Dir(op.name)] > i) {
				out.apply(op)
			} else if mode == anyOf { // some of what it holds may be gone
				for name := range out.names {
					if strings.HasPrefix(name, op.name+"/") && random.IntN(2) == 0 {
						delete(out.names, name)
					}
				}
			}
		case "rename":
			if stays(syncedDir[path.Dir(op.to)] > i || syncedDir[path.Dir(op.name)] > i) && out.dirs[path.Dir(op.to)] {
				// It moves its file, also one whose making in the other directory nobody synced.
				if x := out.names[op.name]; x != nil && x.id == op.inode {
					delete(out.names, op.name)
				}
				out.names[op.to] = &inode{id: op.inode}
			}
		case "mkdir":
			if stays(syncedDir[path.Dir(op.name)] > i) {
				out.dirs[op.name] = true
			}
		}
	}
	for _, x := range out.names {
		x.data = content[x.id]
	}
	for _, op := range ops {
		out.inode = max(out.inode, op.inode)
	}
	// What a power cut left is on disk: it is where the next one starts from.
	for dir := range out.dirs {
		out.ops = append(out.ops, simOp{kind: "mkdir", name: dir})
	}
	slices.SortFunc(out.ops, func(a, b simOp) int { return strings.Compare(a.name, b.name) })
	for name, x := range out.names {
		out.ops = append(out.ops, simOp{kind: "create", name: name, inode: x.id}, simOp{kind: "write", inode: x.id, data: x.data}, simOp{kind: "sync", inode: x.id})
	}
	for dir := range out.dirs {
		out.ops = append(out.ops, simOp{kind: "syncdir", name: dir})
	}
	return out
}

// text renders the files' names and sizes, for messages.
func (f *simFS) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []string{}
	for name, x := range f.names {
		out = append(out, fmt.Sprintf("%s %d", name, len(x.data)))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (f *simFS) Open(name string, create bool) (File, error) {
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
		if err := f.do(simOp{kind: "create", name: name, inode: f.inode + 1}); err != nil {
			return nil, err
		}
		f.inode++
		x = f.names[name]
	}
	return &simFile{f, x}, nil
}

func (f *simFS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.names[name]; x != nil {
		return slices.Clone(x.data), nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

func (f *simFS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.names[from]
	if x == nil || !f.dirs[path.Dir(to)] {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	return f.do(simOp{kind: "rename", name: from, to: to, inode: x.id})
}

func (f *simFS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	return f.do(simOp{kind: "remove", name: name})
}

func (f *simFS) RemoveAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do(simOp{kind: "removeall", name: name})
}

func (f *simFS) Mkdir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if parent := path.Dir(name); !f.dirs[parent] {
		if err := f.do(simOp{kind: "mkdir", name: parent}); err != nil {
			return err
		}
	}
	if f.dirs[name] {
		return nil
	}
	return f.do(simOp{kind: "mkdir", name: name})
}

func (f *simFS) List(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

func (f *simFS) Stat(name string) (FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.names[name]; x != nil {
		return FileInfo{Size: int64(len(x.data)), ModTime: time.Unix(0, 0)}, nil
	}
	if f.dirs[name] {
		return FileInfo{Dir: true}, nil
	}
	return FileInfo{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (f *simFS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirs[dir] {
		return &fs.PathError{Op: "sync", Path: dir, Err: fs.ErrNotExist}
	}
	return f.do(simOp{kind: "syncdir", name: dir})
}

func (f *simFS) Lock(string) (func() error, error) {
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

func (f *simFS) Free() (free, total uint64, err error) { return 1 << 40, 1 << 40, nil }

type simFile struct {
	fs *simFS
	x  *inode
}

func (s *simFile) ReadAt(p []byte, off int64) (int, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	if off >= int64(len(s.x.data)) {
		return 0, io.EOF
	}
	n := copy(p, s.x.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *simFile) WriteAt(p []byte, off int64) (int, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	if err := s.fs.do(simOp{kind: "write", inode: s.x.id, off: off, data: slices.Clone(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *simFile) Truncate(size int64) error {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return s.fs.do(simOp{kind: "truncate", inode: s.x.id, size: size})
}

func (s *simFile) Sync() error {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return s.fs.do(simOp{kind: "sync", inode: s.x.id})
}

func (s *simFile) Preallocate(int64) error { return nil }
func (s *simFile) Close() error            { return nil }

func (s *simFile) Size() (int64, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return int64(len(s.x.data)), nil
}

var errSim = fmt.Errorf("simulated: %w", syscall.EIO)
