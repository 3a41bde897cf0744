package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
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
	if s.spoiled.Load() != nil {
		return
	}
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
	if !closed && s.journal.Writable() && s.trouble.Swap(nil) != nil {
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
	if s.journal.Writable() {
		return nil
	}
	return s.journal.Rotate()
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
	if s.journal.Writable() {
		rotated = s.journal.Rotate() // a full disk must not keep the files behind: see below
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
	old := s.journal.Cut(w.lsn)
	s.seq.Unlock()
	return errors.Join(rotated, wal.Remove(s.fs, journalDir, old))
}

// syncLogs makes the line files durable and notes where they end.
func (s *Store) syncLogs(w *work) (err error) {
	cp := checkpointDoc{head: head{agent.SchemaVersion, w.lsn}, Sessions: w.sessionCount, Unarchived: w.unarchiving}
	if cp.Calls, err = s.callLog.Sync(); err != nil {
		return err
	}
	if cp.Values, err = s.values.Sync(); err != nil {
		return err
	}
	s.mu.RLock()
	cp.Audit = s.auditBytes
	s.mu.RUnlock()
	if cp.Audit > 0 {
		if err := jsonl.Sync(s.fs, auditFile); err != nil {
			return err
		}
	}
	return s.writeDoc(checkpointFile, cp)
}

// removeJournal leaves nothing to replay, after the last checkpoint.
func (s *Store) removeJournal() error {
	s.seq.Lock()
	defer s.seq.Unlock()
	segments, err := wal.Segments(s.fs, journalDir)
	if err != nil {
		return err
	}
	return wal.Remove(s.fs, journalDir, segments)
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
	if t := s.spoiled.Load(); t != nil { // it is set before the lock that gather waits for is released
		return nil, t.err
	}
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
