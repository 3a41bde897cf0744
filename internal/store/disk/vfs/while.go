package vfs

// While returns f for as long as broken returns nil. While broken returns an error, operations on files and directories
// fail with it. Files that are open are not affected, nor are Lock, Free and SyncAll.
func While(f FS, broken func() error) FS { return &whileFS{f, broken} }

type whileFS struct {
	FS
	broken func() error
}

func (w *whileFS) Open(name string, create bool) (File, error) {
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.FS.Open(name, create)
}

func (w *whileFS) ReadFile(name string) ([]byte, error) {
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.FS.ReadFile(name)
}

func (w *whileFS) List(dir string) ([]string, error) {
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.FS.List(dir)
}

func (w *whileFS) Stat(name string) (Info, error) {
	if err := w.broken(); err != nil {
		return Info{}, err
	}
	return w.FS.Stat(name)
}

func (w *whileFS) do(operation func() error) error {
	if err := w.broken(); err != nil {
		return err
	}
	return operation()
}

func (w *whileFS) Rename(from, to string) error {
	return w.do(func() error { return w.FS.Rename(from, to) })
}

func (w *whileFS) Remove(name string) error {
	return w.do(func() error { return w.FS.Remove(name) })
}

func (w *whileFS) RemoveAll(name string) error {
	return w.do(func() error { return w.FS.RemoveAll(name) })
}

func (w *whileFS) Mkdir(name string) error {
	return w.do(func() error { return w.FS.Mkdir(name) })
}

func (w *whileFS) SyncDir(dir string) error {
	return w.do(func() error { return w.FS.SyncDir(dir) })
}
