package disk

import (
	"bytes"
	"maps"
	"path"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// finishErasing returns when the files and the journal hold nothing of an erased namespace of that name. The caller holds flusher.archive.
func (f *flusher) finishErasing(name agent.Namespace) error {
	f.shared.mu.RLock()
	_, erased := f.spaces.erased[name]
	f.shared.mu.RUnlock()
	if !erased {
		return nil
	}
	return f.writeCheckpoint()
}

// removeErased removes the files of erased namespaces. A directory is renamed first: so what has the name of a namespace is whole. The caller
// holds mu.
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

// removeAside removes segments of the journal that were moved aside and hold the mark.
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
			continue // moved aside for that
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

// removeTree removes a directory below another one, durably on both sides: after a power cut it is there with its content, without, or not at
// all.
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

// forgetErased forgets the namespaces of which the checkpoint at lsn took the last bytes. The caller holds mu.
func (f *flusher) forgetErased(lsn uint64) {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	maps.DeleteFunc(f.spaces.erased, func(_ agent.Namespace, at uint64) bool { return at <= lsn })
}
