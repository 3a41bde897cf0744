package vfs

import (
	"io/fs"
	"path"
)

// Sub returns the file system below a directory of f. Lock, Free and SyncAll are those of f.
func Sub(f FS, dir string) FS {
	if dir == "." {
		return f
	}
	return &subFS{f, dir}
}

type subFS struct {
	FS
	dir string
}

// in returns the name in the outer file system. A name that leads out of the directory becomes "", which the outer file
// system rejects.
func (s *subFS) in(name string) string {
	if !fs.ValidPath(name) {
		return ""
	}
	return path.Join(s.dir, name)
}

func (s *subFS) Open(name string, create bool) (File, error) { return s.FS.Open(s.in(name), create) }
func (s *subFS) Rename(from, to string) error                { return s.FS.Rename(s.in(from), s.in(to)) }
func (s *subFS) ReadFile(name string) ([]byte, error)        { return s.FS.ReadFile(s.in(name)) }
func (s *subFS) Remove(name string) error                    { return s.FS.Remove(s.in(name)) }
func (s *subFS) RemoveAll(name string) error                 { return s.FS.RemoveAll(s.in(name)) }
func (s *subFS) Mkdir(name string) error                     { return s.FS.Mkdir(s.in(name)) }
func (s *subFS) List(dir string) ([]string, error)           { return s.FS.List(s.in(dir)) }
func (s *subFS) Stat(name string) (Info, error)              { return s.FS.Stat(s.in(name)) }
func (s *subFS) SyncDir(dir string) error                    { return s.FS.SyncDir(s.in(dir)) }
