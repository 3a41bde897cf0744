package disk

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// erase erases from the files what deleted sessions left: in the logs, the archive, files moved aside and backups. The
// sessions' own directories go last, so that the next start after a crash finds them and erases again. gone holds when
// each session was created, or zero.
func (n *namespace) erase(gone map[string]time.Time) error {
	if len(gone) == 0 {
		return nil
	}
	if err := n.eraseLines(gone); err != nil {
		return err
	}
	if err := n.auditTrail.erase(func(session string) bool { _, erased := gone[session]; return erased }); err != nil {
		return err
	}
	names, err := n.filesWithFixtures()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := n.eraseFile(n.files, name, gone); err != nil {
			return err
		}
	}
	if err := n.eraseJournal(gone); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		if err := n.files.RemoveAll(sessionDir(id)); err != nil {
			return err
		}
		delete(n.files.made, sessionDir(id))
	}
	if err := n.files.SyncDir("sessions"); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range gone {
		delete(n.sessions.gone, id)
	}
	return nil
}

// eraseLines erases the lines of the sessions' calls from the call log and the values. Segments that ended before the
// oldest session was created are not read.
func (n *namespace) eraseLines(gone map[string]time.Time) error {
	since := time.Time{}
	for _, created := range gone {
		if since.IsZero() || created.Before(since) {
			since = created
		}
	}
	const slack = time.Minute // times of files come from another clock than the daemon's
	since = since.Add(-slack)
	match := func(line []byte) bool {
		_, gone := gone[jsonl.Member(line, "session_id")]
		return gone
	}
	if err := n.calls.entries.Erase(match, eraseLogLine, since); err != nil {
		return err
	}
	var erased freed
	if err := n.calls.values.Erase(match, func(line []byte) []byte { erased.line(line); return []byte("{}") },
		since); err != nil {
		n.stored.anew.values = true
		return err
	}
	n.stored.drop(&erased)
	return nil
}

// eraseLogLine returns the line of a call without its arguments and values.
func eraseLogLine(line []byte) []byte {
	var e agent.LogEntry
	if json.Unmarshal(line, &e) != nil {
		return []byte("{}")
	}
	store.EraseLog(&e)
	out, err := encodeShortLog(&e)
	if err != nil {
		return []byte("{}")
	}
	return out
}

// filesWithFixtures returns the files, other than artifacts in use, that may hold a fixture of a deleted session: those
// of the archive, those that were moved aside, and backups.
func (n *namespace) filesWithFixtures() (names []string, err error) {
	list := func(dir string, pick func(name string) bool) error {
		found, err := n.files.list(dir)
		for _, name := range found {
			if info, err := n.files.Stat(path.Join(dir, name)); pick(name) && err == nil && !info.Dir {
				names = append(names, path.Join(dir, name))
			}
		}
		return err
	}
	every := func(string) bool { return true }
	if err := list(backupDir, every); err != nil {
		return nil, err
	}
	for _, dir := range []string{"calls", "values", "."} {
		if err := list(dir, isCorruptName); err != nil {
			return nil, err
		}
	}
	if err := n.files.eachDir("tools", func(dir string) error {
		if dir == archiveDir {
			return nil
		}
		return list(dir, isCorruptName)
	}); err != nil {
		return nil, err
	}
	err = n.files.eachDir(archiveDir, func(dir string) error { return list(dir, every) })
	return names, err
}

// eraseJournal removes journal segments that were moved aside and name a deleted session.
func (n *namespace) eraseJournal(gone map[string]time.Time) error {
	names, err := n.root.list(journalDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if isCorruptName(name) {
			if err := n.eraseFile(n.root, path.Join(journalDir, name), gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// eraseFile removes deleted sessions from an archived artifact. Any other file that names one is removed.
func (n *namespace) eraseFile(f *files, name string, gone map[string]time.Time) error {
	data, err := f.ReadFile(name)
	if vfs.WrongKind(err) {
		return nil // it was moved aside for its kind and holds no data
	}
	if err != nil {
		return err
	}
	named := []string{}
	for id := range gone {
		if bytes.Contains(data, []byte(id)) {
			named = append(named, id)
		}
	}
	if len(named) == 0 {
		return nil
	}
	doc := artifactDoc{}
	if !strings.HasPrefix(name, archiveDir+"/") || isCorruptName(name) || json.Unmarshal(data, &doc) != nil ||
		doc.Artifact == nil {
		return f.removeAll([]string{name})
	}
	for _, id := range named {
		doc.Artifact = doc.Apply(agent.ArtifactChange{Role: doc.Role, MethodName: doc.MethodName, ForgetSession: id})
	}
	return f.writeDoc(name, doc)
}

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
