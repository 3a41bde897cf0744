package vfstest

import "io"

type simFile struct {
	fs *FS
	x  *inode
}

func (s *simFile) ReadAt(p []byte, off int64) (int, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	n := s.x.read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *simFile) WriteAt(p []byte, off int64) (int, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	if err := s.fs.do(Op{Kind: "write", Inode: s.x.id, Off: off, Data: kept(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *simFile) Truncate(size int64) error {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return s.fs.do(Op{Kind: "truncate", Inode: s.x.id, Size: size})
}

func (s *simFile) Sync() error {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return s.fs.do(Op{Kind: "sync", Inode: s.x.id})
}

func (s *simFile) Preallocate(int64) error { return nil }

func (s *simFile) Close() error { return nil }

func (s *simFile) Size() (int64, error) {
	s.fs.mu.Lock()
	defer s.fs.mu.Unlock()
	return s.x.size(), nil
}
