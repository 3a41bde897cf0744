package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// eraseGone erases what deleted sessions left: in the logs, the archive, files set aside and backups. Their own
// directories go last, so that a crash in between finds them and erases again.
func (s *Store) eraseGone(w *work) error {
	if len(w.gone) == 0 {
		return nil
	}
	since := time.Time{}
	for _, created := range w.gone {
		if since.IsZero() || created.Before(since) {
			since = created
		}
	}
	const slack = time.Minute // the files' clock is not the daemon's
	since = since.Add(-slack)
	match := func(line []byte) bool {
		_, gone := w.gone[jsonl.Member(line, "session_id")]
		return gone
	}
	if err := s.callLog.Erase(match, eraseLogLine, since); err != nil {
		return err
	}
	if err := s.values.Erase(match, func([]byte) []byte { return []byte("{}") }, since); err != nil {
		return err
	}
	if err := s.eraseFiles(w.gone); err != nil {
		return err
	}
	for id := range w.gone {
		if err := s.fs.RemoveAll(sessionDir(id)); err != nil {
			return err
		}
		delete(s.dirs, sessionDir(id))
	}
	if err := s.fs.SyncDir("sessions"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range w.gone {
		delete(s.gone, id)
	}
	return nil
}

// eraseLogLine keeps of a call what says nothing of its arguments and values.
func eraseLogLine(line []byte) []byte {
	var e agent.LogEntry
	if json.Unmarshal(line, &e) != nil {
		return []byte("{}")
	}
	store.EraseLog(&e)
	out, err := appendLog(nil, &e, false)
	if err != nil {
		return []byte("{}")
	}
	return out
}

// eraseFiles goes through the files that may hold a fixture of a deleted session beside its artifact: archived
// artifacts lose it, files set aside and backups go when they name the session.
func (s *Store) eraseFiles(gone map[string]time.Time) error {
	names := []string{}
	list := func(dir string, pick func(name string) bool) error {
		found, err := s.fs.List(dir)
		if vfs.NotExist(err) {
			return nil
		}
		for _, name := range found {
			if pick(name) {
				names = append(names, path.Join(dir, name))
			}
		}
		return err
	}
	every := func(string) bool { return true }
	if err := errors.Join(list(backupDir, every), list(journalDir, isCorruptName), list("calls", isCorruptName), list(".", isCorruptName)); err != nil {
		return err
	}
	for _, parent := range []string{"tools", "tools/archive"} {
		dirs, err := s.fs.List(parent)
		if err != nil && !vfs.NotExist(err) {
			return err
		}
		for _, dir := range dirs {
			pick := isCorruptName
			if parent == "tools/archive" {
				pick = every
			}
			if info, err := s.fs.Stat(path.Join(parent, dir)); err != nil || !info.Dir || dir == "archive" {
				continue
			}
			if err := list(path.Join(parent, dir), pick); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if err := s.eraseFile(name, gone); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) eraseFile(name string, gone map[string]time.Time) error {
	data, err := s.fs.ReadFile(name)
	if err != nil {
		return err
	}
	doc := artifactDoc{}
	named := []string{}
	for id := range gone {
		if bytes.Contains(data, []byte(id)) {
			named = append(named, id)
		}
	}
	switch {
	case len(named) == 0:
		return nil
	case strings.HasPrefix(name, "tools/archive/") && !isCorruptName(name) && json.Unmarshal(data, &doc) == nil && doc.Artifact != nil:
		for _, id := range named {
			doc.Artifact = doc.Apply(agent.ArtifactChange{Role: doc.Role, MethodName: doc.MethodName, ForgetSession: id})
		}
		return s.writeDoc(name, doc)
	}
	if err := s.fs.Remove(name); err != nil {
		return err
	}
	return s.fs.SyncDir(path.Dir(name))
}

var checksums = regexp.MustCompile(`sha256:([0-9a-f]{64})`)

// referenced collects the program texts that artifacts, in use or archived, refer to, by the digits of their sums.
func (s *Store) referenced(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	note := func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := s.fs.ReadFile(name)
		if vfs.NotExist(err) {
			return nil
		}
		for _, m := range checksums.FindAllSubmatch(data, -1) {
			used[string(m[1])] = true
		}
		return err
	}
	if err := s.eachArtifactFile(note); err != nil {
		return nil, err
	}
	dirs, err := s.fs.List("tools/archive")
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	for _, dir := range dirs {
		names, err := s.fs.List("tools/archive/" + dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := note("tools/archive/" + dir + "/" + name); err != nil {
				return nil, err
			}
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, x := range s.dirty {
		if x.a == nil {
			continue
		}
		for _, g := range x.a.Held() {
			used[strings.TrimPrefix(g.CodeChecksum, "sha256:")] = true
		}
	}
	return used, nil
}
