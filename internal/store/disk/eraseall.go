package disk

import (
	"bytes"
	"maps"
	"path"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// finishErasing writes a checkpoint if the files or the journal may still hold data of an erased namespace with that
// name. The caller holds flusher.archive.
func (f *flusher) finishErasing(name agent.Namespace) error {
	f.shared.mu.RLock()
	_, erased := f.spaces.erased[name]
	f.shared.mu.RUnlock()
	if !erased {
		return nil
	}
	return f.writeCheckpoint()
}

// removeErased removes the files of erased namespaces. A directory is renamed first, so a directory with the name of a
// namespace is always complete. The caller holds mu.
func (f *flusher) removeErased() error {
	f.shared.mu.RLock()
	names := slices.Sorted(maps.Keys(f.spaces.erased))
	f.shared.mu.RUnlock()
	for _, name := range names {
		dir := namespaceDir(name)
		if err := f.root.Rename(dir, dir+erasedSuffix); err != nil && !vfs.NotExist(err) {
			return err
		}
		if err := f.root.removeTree(dir + erasedSuffix); err != nil {
			return err
		}
		delete(f.root.made, dir)
		if err := f.removeAside([]byte(`"ns":"` + string(name) + `"`)); err != nil {
			return err
		}
	}
	return nil
}

// removeAside removes journal segments that were moved aside and contain the mark.
func (f *flusher) removeAside(mark []byte) error {
	names, err := f.root.list(journalDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isCorruptName(name) {
			continue
		}
		data, err := f.root.ReadFile(path.Join(journalDir, name))
		if vfs.WrongKind(err) {
			continue // it was moved aside for its kind
		}
		if err != nil {
			return err
		}
		if bytes.Contains(data, mark) {
			if err := f.root.removeAll([]string{path.Join(journalDir, name)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTree durably removes a directory. After a power cut it is complete, partly empty or gone.
func (f *files) removeTree(dir string) error {
	if _, err := f.Stat(dir); vfs.NotExist(err) {
		return nil
	}
	if err := f.SyncDir(path.Dir(dir)); err != nil {
		return err
	}
	if err := f.RemoveAll(dir); err != nil {
		return err
	}
	return f.SyncDir(path.Dir(dir))
}

// forgetErased forgets the erased namespaces whose last bytes the checkpoint at lsn has removed. The caller holds mu.
func (f *flusher) forgetErased(lsn uint64) {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	maps.DeleteFunc(f.spaces.erased, func(_ agent.Namespace, at uint64) bool { return at <= lsn })
}
