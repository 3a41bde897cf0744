package disk

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// makeDir makes a directory, durably, once.
func (s *Store) makeDir(dir string) error {
	if s.dirs[dir] {
		return nil
	}
	if err := s.fs.Mkdir(dir); err != nil {
		return err
	}
	for d := dir; d != "."; d = path.Dir(d) {
		if err := s.fs.SyncDir(path.Dir(d)); err != nil {
			return err
		}
	}
	if len(s.dirs) > 10_000 { // only what is written to again and again is worth remembering
		clear(s.dirs)
	}
	s.dirs[dir] = true
	return nil
}

func (s *Store) writePrograms(w *work) error {
	if len(w.programs) == 0 {
		return nil
	}
	if err := s.makeDir("programs"); err != nil {
		return err
	}
	for sum, code := range w.programs {
		name, ok := programFile(sum)
		if !ok {
			continue // a generation with a checksum of another kind has no file
		}
		if _, err := s.fs.Stat(name); err == nil {
			continue
		}
		if err := s.files.ReplaceUnsynced(name, []byte(code)); err != nil {
			return err
		}
	}
	if err := s.fs.SyncDir("programs"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for sum := range w.programs {
		delete(s.programs, sum)
	}
	return nil
}

func (s *Store) writeArchive(w *work) error {
	for _, x := range w.archiving {
		var text []byte
		var err error
		if x.tool != nil {
			text, err = json.MarshalIndent(toolDoc{agent.SchemaVersion, *x.tool}, "", "  ")
		} else {
			text, err = x.artifact.encode()
		}
		if err != nil {
			return err
		}
		if err := s.makeDir(path.Dir(x.name)); err != nil {
			return err
		}
		if err := s.files.Replace(x.name, text); err != nil {
			return err
		}
	}
	if len(w.archiving) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.archiving = s.archiving[len(w.archiving):]
	}
	return nil
}

func (s *Store) writeArtifacts(w *work) error {
	dirs := map[string]bool{}
	for _, x := range w.artifacts {
		name := x.key.file()
		dir := path.Dir(name)
		if x.a == nil {
			if err := s.fs.Remove(name); err != nil && !vfs.NotExist(err) {
				return err
			}
			if !s.dirs[dir] {
				if _, err := s.fs.Stat(dir); vfs.NotExist(err) {
					continue
				}
			}
			dirs[dir] = true
			continue
		}
		text, err := x.encode()
		if err != nil {
			return err
		}
		if err := s.makeDir(dir); err != nil {
			return err
		}
		if err := s.files.ReplaceUnsynced(name, text); err != nil {
			return err
		}
		dirs[dir] = true
	}
	for dir := range dirs {
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	for _, x := range w.artifacts {
		s.settle(x)
	}
	return nil
}

// settle moves an artifact whose file has it from the changed ones to the cache, unless it changed again.
func (s *Store) settle(x *artifact) {
	lock := s.stripe(x.key.role, x.key.method)
	lock.Lock()
	defer lock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty[x.key] != x {
		return
	}
	if x.text != nil {
		plain := *x
		plain.text = nil
		x = &plain
	}
	delete(s.dirty, x.key)
	if x.a == nil {
		s.artifacts.Invalidate(x.key)
		return
	}
	s.artifacts.Set(x.key, x)
}

func (s *Store) writeCalls(w *work) error {
	if len(w.calls) == 0 {
		return nil
	}
	var logs, values [][]byte
	for _, c := range w.calls {
		line, err := appendLog(nil, &c.log, true)
		if err != nil {
			return err
		}
		logs = append(logs, line)
		if c.value.empty() {
			continue
		}
		if line, err = c.value.encode(); err != nil {
			return err
		}
		values = append(values, line)
	}
	turn := (*jsonl.Log).Rotate
	if s.exporting > 0 {
		turn = (*jsonl.Log).SyncNames
	}
	if err := errors.Join(turn(s.callLog), turn(s.values)); err != nil {
		return err
	}
	valuesGrown, err := s.values.Append(values)
	if err != nil {
		return err
	}
	logsGrown, err := s.callLog.Append(logs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values.Publish(values, valuesGrown)
	s.callLog.Publish(logs, logsGrown)
	s.calls = s.calls[len(w.calls):]
	if len(s.calls) == 0 {
		s.calls = nil
	}
	for _, c := range w.calls {
		delete(s.callByID, c.log.CallID)
		delete(s.corrections, c.log.UserCorrectionReferenceCallID)
		if c.value.Key != nil {
			delete(s.callByKey, c.value.Key.Key)
		}
	}
	return nil
}

func (s *Store) writeAudit(w *work) error {
	if len(w.audits) == 0 {
		return nil
	}
	lines := make([][]byte, 0, len(w.audits))
	for _, a := range w.audits {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	n, err := jsonl.Append(s.fs, auditFile, s.auditBytes, lines) // only the flusher changes auditBytes
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auditBytes += n
	s.audits = s.audits[len(w.audits):]
	return nil
}

// writeDocuments replaces the documents that are held whole: the policy and changed contracts at once, figures with a
// checkpoint.
func (s *Store) writeDocuments(w *work) error {
	now := head{SchemaVersion: agent.SchemaVersion}
	for _, d := range []struct {
		name   string
		behind []*bool
		when   func() bool
		render func() any
	}{
		{policyFile, []*bool{&s.policyDirty}, func() bool { return s.policyDirty }, func() any {
			text, err := json.Marshal(s.policy)
			if err != nil {
				return err
			}
			return policyDoc{now, s.policyRevision, text}
		}},
		{registryFile, []*bool{&s.contractDirty, &s.usageDirty}, func() bool { return s.contractDirty || w.full && s.usageDirty }, func() any { return s.registry() }},
		{indexFile, []*bool{&s.indexDirty}, func() bool { return w.full && s.indexDirty }, func() any { return s.index() }},
		{patternsFile, []*bool{&s.patternsDirty}, func() bool { return w.full && s.patternsDirty }, func() any {
			return patternsDoc{now, maps.Clone(s.patterns)}
		}},
		{contentFile, []*bool{&s.contentDirty}, func() bool { return w.full && s.contentDirty }, func() any {
			return contentDoc{now, slices.Clone(s.content.Entries)}
		}},
	} {
		s.mu.Lock()
		if !d.when() {
			s.mu.Unlock()
			continue
		}
		was := make([]bool, len(d.behind))
		for i, flag := range d.behind {
			was[i], *flag = *flag, false
		}
		now.LSN = s.applied
		doc := d.render()
		s.mu.Unlock()
		err, failed := doc.(error)
		if !failed {
			err = s.writeDoc(d.name, doc)
		}
		if err != nil {
			s.mu.Lock()
			for i, flag := range d.behind {
				*flag = *flag || was[i]
			}
			s.mu.Unlock()
			return err
		}
	}
	return nil
}

// removeUnarchived removes the archive's files of what came back. They stay until a checkpoint has the entry that
// brought it back: before, replaying that entry needs them, as what came back has the lsn that it went with.
func (s *Store) removeUnarchived(names []string) error {
	for _, name := range names {
		if err := s.fs.Remove(name); err != nil && !vfs.NotExist(err) {
			return err
		}
		if err := s.fs.SyncDir(path.Dir(name)); err != nil && !vfs.NotExist(err) {
			return err
		}
	}
	return nil
}
