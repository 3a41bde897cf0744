package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// follow writes the files behind the journal until ctx ends, and tries to get a store that cannot write going again.
func (s *Store) follow(ctx context.Context) {
	defer close(s.done)
	if s.o.Flush < 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(s.o.Flush)
	defer tick.Stop()
	for {
		full := false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.flushMu.Lock()
			full = time.Since(s.lastCut) >= s.o.Checkpoint
			s.flushMu.Unlock()
		case <-s.kick:
			full = true
		}
		s.tick(full)
	}
}

// tick is one round of the flusher.
func (s *Store) tick(full bool) {
	err := s.checkSpace()
	if err == nil {
		err = s.reopenJournal()
	}
	var late error
	if full {
		late = s.checkpoint()
	} else {
		late = s.Sync()
	}
	if err = errors.Join(err, late); err != nil {
		s.fail(err)
		return
	}
	s.seq.Lock()
	defer s.seq.Unlock()
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if !closed && s.journal.active != nil && s.trouble.Swap(nil) != nil {
		s.log.Info().Msg("the store can write again")
	}
}

// checkSpace reports a disk with less than the reserve free, or a fiftieth of a small one: before it is so full that
// what is under way cannot be written to the end.
func (s *Store) checkSpace() error {
	free, total, err := s.fs.Free()
	if err != nil {
		return err
	}
	if reserve := min(s.o.Reserve, total/50); free < reserve {
		return fmt.Errorf("the disk is full: %d bytes free, %d are kept in reserve", free, reserve)
	}
	return nil
}

// reopenJournal gives the journal a new segment after one failed.
func (s *Store) reopenJournal() error {
	s.seq.Lock()
	defer s.seq.Unlock()
	if s.journal.active != nil {
		return nil
	}
	return s.journal.rotate()
}

// Sync brings the files to where they are at most a second behind: histories, logs, sessions, artifacts and contracts.
func (s *Store) Sync() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	_, err := s.flush(false)
	return err
}

// checkpoint brings all files up to the journal, durably, and cuts the journal.
func (s *Store) checkpoint() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.exporting > 0 {
		_, err := s.flush(false)
		return err
	}
	s.mu.RLock()
	idle := s.applied == s.checkpointLSN
	s.mu.RUnlock()
	if idle {
		s.lastCut = time.Now()
		return nil
	}
	s.seq.Lock()
	var rotated error
	if s.journal.active != nil {
		rotated = s.journal.rotate() // a full disk must not keep the files behind: see below
	}
	s.seq.Unlock()
	w, err := s.flush(true)
	if err != nil {
		return errors.Join(err, rotated)
	}
	if err := s.syncLogs(w); err != nil {
		return err
	}
	if err := s.removeUnarchived(w.unarchiving); err != nil {
		return err
	}
	s.mu.Lock()
	s.unarchiving = s.unarchiving[len(w.unarchiving):]
	s.mu.Unlock()
	s.checkpointLSN = w.lsn
	s.lastCut = time.Now()
	s.seq.Lock()
	old := s.journal.cut(w.lsn)
	s.seq.Unlock()
	for _, seg := range old {
		if err := s.fs.Remove(seg.name); err != nil && !notExist(err) {
			return err
		}
	}
	if len(old) > 0 {
		return errors.Join(rotated, s.fs.SyncDir(journalDir))
	}
	return rotated
}

// syncLogs makes the line files durable and notes where they end.
func (s *Store) syncLogs(w *work) (err error) {
	cp := checkpointDoc{head: head{agent.SchemaVersion, w.lsn}, Sessions: w.sessionCount, Unarchived: w.unarchiving}
	if cp.Calls, err = s.callLog.sync(); err != nil {
		return err
	}
	if cp.Values, err = s.values.sync(); err != nil {
		return err
	}
	s.mu.RLock()
	cp.Audit = s.auditBytes
	s.mu.RUnlock()
	if cp.Audit > 0 {
		if err := s.syncFile(auditFile); err != nil {
			return err
		}
	}
	return s.writeDoc(checkpointFile, cp)
}

func (s *Store) syncFile(name string) error {
	f, err := s.fs.Open(name, false)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return s.fs.SyncDir(path.Dir(name))
}

// removeJournal leaves nothing to replay, after the last checkpoint.
func (s *Store) removeJournal() error {
	s.seq.Lock()
	defer s.seq.Unlock()
	names, err := s.fs.List(journalDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := segmentFirst(name); ok {
			if err := s.fs.Remove(journalDir + "/" + name); err != nil {
				return err
			}
		}
	}
	return s.fs.SyncDir(journalDir)
}

// work is what one round of the flusher has to write: the state at one moment.
type work struct {
	full         bool // everything, durably; else what people look at
	lsn          uint64
	sessions     []*session
	artifacts    []*artifact
	programs     map[string]string
	archiving    []archiving
	unarchiving  []string
	calls        []*pendingCall
	audits       []*agent.AuditEntry
	gone         map[string]time.Time
	sessionCount int64
}

// flush writes what changed. The caller holds flushMu. After an error all that was not written stays to be written.
func (s *Store) flush(full bool) (*work, error) {
	w := s.gather(full)
	steps := []func(*work) error{s.writePrograms, s.writeArchive, s.writeArtifacts, s.writeSessions, s.writeCalls, s.writeAudit, s.writeDocuments, s.eraseGone}
	for _, step := range steps {
		if err := step(w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (s *Store) gather(full bool) *work {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := &work{
		full: full, lsn: s.applied, artifacts: slices.Collect(maps.Values(s.dirty)), programs: maps.Clone(s.programs),
		archiving: slices.Clone(s.archiving), unarchiving: slices.Clone(s.unarchiving), calls: slices.Clone(s.calls), audits: slices.Clone(s.audits),
		gone: maps.Clone(s.gone), sessionCount: s.sessionCount,
	}
	for _, x := range s.touched {
		if full || x.behind() {
			w.sessions = append(w.sessions, x)
		}
	}
	return w
}

func (x *session) behind() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dirty
}

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
		if err := s.writeAside(name, []byte(code)); err != nil {
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
		if err := s.write(x.name, text); err != nil {
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
			if err := s.fs.Remove(name); err != nil && !notExist(err) {
				return err
			}
			if !s.dirs[dir] {
				if _, err := s.fs.Stat(dir); notExist(err) {
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
		if err := s.writeAside(name, text); err != nil {
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

func (s *Store) writeSessions(w *work) error {
	for _, x := range w.sessions {
		if x.isGone() {
			continue
		}
		if err := s.writeSession(x, w.full); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeSession(x *session, full bool) error {
	dir := sessionDir(x.id)
	if err := s.makeDir(dir); err != nil {
		return err
	}
	if err := s.appendHistory(x); err != nil {
		return err
	}
	if full {
		if err := s.syncHistory(x); err != nil {
			return err
		}
	}
	x.mu.Lock()
	behind := x.dirty
	x.dirty = false
	x.mu.Unlock()
	if behind {
		err := s.writeDoc(sessionFile(x.id), x.doc())
		if err != nil {
			x.mu.Lock()
			x.dirty = true
			x.mu.Unlock()
			return err
		}
	}
	if !full {
		return nil
	}
	lock := s.stripe("session", x.id)
	lock.Lock()
	defer lock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	x.mu.RLock()
	settled := !x.dirty && !x.gone && len(x.pending) == 0 && s.touched[x.id] == x
	x.mu.RUnlock()
	if settled {
		delete(s.touched, x.id)
		s.sessions.Set(x.id, x)
		delete(s.dirs, dir)
	}
	return nil
}

// appendHistory writes the pending lines behind those that the file has.
func (s *Store) appendHistory(x *session) error {
	x.mu.RLock()
	lines, off := x.pending, x.bytes
	x.mu.RUnlock()
	if len(lines) == 0 {
		return nil
	}
	n, err := s.appendLines(historyFile(x.id), off, lines)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		return nil
	}
	if x.pending = x.pending[len(lines):]; len(x.pending) == 0 {
		x.pending = nil
	}
	x.bytes += n
	return nil
}

// appendLines writes lines at off, where the file ends; what an earlier attempt left there is cut off.
func (s *Store) appendLines(name string, off int64, lines [][]byte) (int64, error) {
	f, err := s.fs.Open(name, true)
	if err != nil {
		return 0, err
	}
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	size, err := f.Size()
	if err == nil && size > off {
		err = f.Truncate(off)
	}
	if err == nil {
		_, err = f.WriteAt(text, off)
	}
	return int64(len(text)), errors.Join(err, f.Close())
}

func (s *Store) syncHistory(x *session) error {
	x.mu.RLock()
	size, synced, records := x.bytes, x.synced, x.size-len(x.pending)
	x.mu.RUnlock()
	if size == synced {
		return nil
	}
	if err := s.syncFile(historyFile(x.id)); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.synced, x.sure, x.dirty = size, records, true
	return nil
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
	turn := (*lineLog).rotate
	if s.exporting > 0 {
		turn = (*lineLog).settle
	}
	if err := errors.Join(turn(&s.callLog), turn(&s.values)); err != nil {
		return err
	}
	valuesGrown, err := s.values.append(values)
	if err != nil {
		return err
	}
	logsGrown, err := s.callLog.append(logs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values.publish(values, valuesGrown)
	s.callLog.publish(logs, logsGrown)
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
	n, err := s.appendLines(auditFile, s.auditBytes, lines) // only the flusher changes auditBytes
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
		if err := s.fs.Remove(name); err != nil && !notExist(err) {
			return err
		}
		if err := s.fs.SyncDir(path.Dir(name)); err != nil && !notExist(err) {
			return err
		}
	}
	return nil
}
