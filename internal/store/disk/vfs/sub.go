package vfs

import "path"

// Sub returns the file system below a directory of another one. Lock and Free are those of the other one.
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

func (s *subFS) Open(name string, create bool) (File, error) {
	return s.FS.Open(path.Join(s.dir, name), create)
}

func (s *subFS) Rename(from, to string) error {
	return s.FS.Rename(path.Join(s.dir, from), path.Join(s.dir, to))
}

func (s *subFS) ReadFile(name string) ([]byte, error) { return s.FS.ReadFile(path.Join(s.dir, name)) }
func (s *subFS) Remove(name string) error             { return s.FS.Remove(path.Join(s.dir, name)) }
func (s *subFS) RemoveAll(name string) error          { return s.FS.RemoveAll(path.Join(s.dir, name)) }
func (s *subFS) Mkdir(name string) error              { return s.FS.Mkdir(path.Join(s.dir, name)) }
func (s *subFS) List(dir string) ([]string, error)    { return s.FS.List(path.Join(s.dir, dir)) }
func (s *subFS) Stat(name string) (Info, error)       { return s.FS.Stat(path.Join(s.dir, name)) }
func (s *subFS) SyncDir(dir string) error             { return s.FS.SyncDir(path.Join(s.dir, dir)) }
