package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// recover reads the documents that are held whole and replays the journal onto the files.
func (s *Store) recover() error {
	if err := s.layOut(); err != nil {
		return err
	}
	var cp checkpointDoc
	cp.Sessions = -1
	if err := s.readOptional(checkpointFile, &cp, nil); err != nil {
		return err
	}
	if err := s.loadDocuments(); err != nil {
		return err
	}
	known := cp.SchemaVersion > 0 // there is a checkpoint, and it is sound
	s.applied, s.checkpointLSN, s.sessionCount = cp.LSN, cp.LSN, cp.Sessions
	var calls, values *jsonl.Place
	if known {
		calls, values = &cp.Calls, &cp.Values
	}
	if err := errors.Join(s.callLog.Open(calls), s.values.Open(values)); err != nil {
		return err
	}
	if err := s.openAudit(known, cp.Audit); err != nil {
		return err
	}
	if err := s.removeUnarchived(cp.Unarchived); err != nil {
		return err
	}
	s.recovering = true
	segments, replayed, err := s.replayJournal(!known)
	s.recovering = false
	if err != nil {
		return err
	}
	if s.sessionCount < 0 || !known {
		if err := s.loadIDs(); err != nil {
			return err
		}
	}
	err = s.journal.Continue(s.applied+1, segments)
	if err == nil && (replayed > 0 || !known || len(s.lost) > 0) {
		s.checkpointLSN = ^uint64(0) // there is something to write in any case
		err = s.checkpoint()
	}
	if isFull(err) { // what is there can be read, and the flusher gets it going again
		s.checkpointLSN = ^uint64(0)
		s.fail(err)
		return nil
	}
	return err
}

// isFull reports whether err is a lack of space, which may end by itself.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// layOut makes the directories and throws away what was written aside when the store last stopped.
func (s *Store) layOut() error {
	for _, dir := range []string{"tools", "sessions", "programs", "calls", "values", journalDir, vfs.TempDir} {
		if _, err := s.fs.Stat(dir); err == nil {
			continue
		}
		if err := s.makeDir(dir); err != nil {
			return err
		}
	}
	return s.files.Clean()
}

func (s *Store) openAudit(known bool, size int64) error {
	info, err := s.fs.Stat(auditFile)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	if known && size < info.Size {
		s.auditBytes = size
		return nil
	}
	if known && size > info.Size {
		s.reportLost(auditFile, size-info.Size)
	}
	s.auditBytes, err = jsonl.EndLine(s.fs, auditFile, info.Size)
	return err
}

// replay is the state of a recovery.
type replay struct {
	s       *Store
	entries int
	doubted bool            // the checkpoint is lost: the logs may have what comes again
	deleted map[string]bool // sessions that the journal deletes somewhere
	broken  map[string]bool // sessions and artifacts that an entry is missing for
}

func (s *Store) replayJournal(doubted bool) (segments []wal.Segment, entries int, err error) {
	segments, err = wal.Segments(s.fs, journalDir)
	if err != nil {
		return nil, 0, err
	}
	r := &replay{s: s, doubted: doubted, deleted: map[string]bool{}, broken: map[string]bool{}}
	next := s.applied + 1
	for pass := range 2 {
		for _, seg := range segments {
			end, err := r.segment(seg, pass == 0)
			if err != nil {
				return nil, 0, err
			}
			next = max(next, end)
		}
	}
	s.applied = next - 1
	if r.entries > 0 {
		s.log.Info().Int("entries", r.entries).Msg("replayed the journal")
	}
	return segments, r.entries, nil
}

// segment replays one segment; the first pass only looks for deletions. A damaged segment is moved aside.
func (r *replay) segment(seg wal.Segment, deletions bool) (next uint64, err error) {
	var unreadable error
	next, gaps, err := seg.Read(r.s.fs, func(lsn uint64, text []byte) error {
		if lsn <= r.s.checkpointLSN {
			return nil
		}
		e, err := decodeEntry(text)
		if err != nil {
			unreadable = fmt.Errorf("entry %d: %w", lsn, err)
			return nil
		}
		e.lsn = lsn
		if deletions {
			for _, id := range e.Delete {
				r.deleted[id] = true
			}
			return nil
		}
		r.entries++
		return r.entry(e)
	})
	if err != nil || deletions {
		return next, err
	}
	gaps = slices.DeleteFunc(gaps, func(g wal.Gap) bool { return g.To <= r.s.checkpointLSN+1 })
	if len(gaps) == 0 && unreadable == nil {
		return next, nil
	}
	for _, g := range gaps {
		r.s.log.Error().Str("segment", seg.Name).Uint64("from", g.From).Uint64("to", g.To-1).
			Msg("journal entries are damaged: what depends on them is not replayed, and the segment is moved aside")
	}
	if unreadable == nil {
		unreadable = errors.New("damaged entries")
	}
	if err := r.s.quarantine(seg.Name, unreadable); !errors.Is(err, errCorrupt) {
		return next, err
	}
	return next, nil
}

// entry replays an entry: what the files have of it already is left out.
func (r *replay) entry(e *entry) error {
	s := r.s
	if err := r.sessionPart(e); err != nil {
		return err
	}
	if err := r.artifactPart(e); err != nil {
		return err
	}
	if err := r.movePart(e); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.lsn > s.registryLSN {
		for i := range e.Tools {
			if t, ok := e.Tools[i].Apply(s.ranking.Tool(e.Tools[i].Role)); ok {
				e.tools = append(e.tools, t)
				s.setTool(t)
			}
		}
		if e.Put != nil {
			e.tools = append(e.tools, e.Put)
		}
	}
	if e.lsn <= s.patternsLSN {
		e.Pattern = nil
	}
	if e.lsn <= s.contentLSN {
		e.Content = nil
	}
	if e.lsn <= s.policyLSN {
		e.Policy = nil
	}
	s.apply(e)
	s.contractDirty = s.contractDirty || len(e.tools) > 0
	return nil
}

func (r *replay) sessionPart(e *entry) error {
	s := r.s
	if e.Create != nil {
		if _, err := s.fs.Stat(sessionFile(e.Session)); vfs.NotExist(err) {
			return nil // whatever else its directory has, a history among it, comes again
		}
		_, err := s.session(e.Session)
		if err == nil {
			e.Create = nil // its file is there; it counts
			s.sessionCount++
			return nil
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	if e.log.CallID != "" {
		e.log.ConversationHistorySize = e.Seq
		n := e.Counters
		e.log.ArtifactSuccessCount, e.log.ArtifactFailureCount = n[0], n[1]
		e.log.ArtifactIntrinsicFailureCount, e.log.ArtifactAdaptiveFailureCount, e.log.ArtifactExtrinsicFailureCount = n[2], n[3], n[4]
		if r.deleted[e.Session] {
			r.forget(e)
		}
		if r.doubted {
			if c, err := s.Call(context.Background(), e.log.CallID); err == nil && c.Log.CallID != "" {
				e.skipLog = true
			}
		}
	}
	if e.Record == nil && e.Context == nil {
		return nil
	}
	x, err := s.session(e.Session)
	if errors.Is(err, store.ErrNotFound) {
		if !r.deleted[e.Session] {
			r.miss("session "+e.Session, e.lsn)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if e.Record != nil && e.Seq > x.size+1 || r.broken["session "+e.Session] {
		r.miss("session "+e.Session, e.lsn)
		return nil
	}
	e.planned.session = x
	if e.Record == nil {
		return nil
	}
	e.meta.Seq = e.Seq
	e.record, err = withSeq(e.Record, e.Seq)
	return err
}

// forget takes out of an entry what a deleted session's call said: its lines may have been erased already, and the
// files they would come from are gone.
func (r *replay) forget(e *entry) {
	store.EraseLog(&e.log)
	e.Outcome, e.Effects, e.Reply, e.Key, e.Content = nil, nil, nil, nil, nil
}

// miss says, once, that something cannot be replayed because an entry before it is damaged.
func (r *replay) miss(what string, lsn uint64) {
	if !r.broken[what] {
		r.broken[what] = true
		r.s.log.Error().Str("what", what).Uint64("entry", lsn).Msg("an entry it depends on is lost: it stays as it was before")
	}
}

func (r *replay) artifactPart(e *entry) error {
	for i, change := range e.Artifacts {
		k := artifactKey{change.Role, change.MethodName}
		var old *agent.Artifact
		x, err := r.artifactNow(e, k)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case x.lsn >= e.lsn && !slices.Contains(e.artifacts, x):
			if err := r.noteFigures(restored{artifact: x}); err != nil {
				return err
			}
			continue
		default:
			old = x.a
		}
		want := int64(0)
		if i < len(e.Revisions) {
			want = e.Revisions[i]
		}
		if want == 0 || old == nil && change.Generation == nil {
			continue // there was none then, or it was taken away since
		}
		next := old.Apply(change)
		if next.Revision != want {
			if old != nil {
				r.miss("artifact "+next.String(), e.lsn)
			}
			continue
		}
		e.artifacts = append(e.artifacts, &artifact{a: next, key: k, lsn: e.lsn})
	}
	return nil
}

// artifactNow is the artifact with what the entry's earlier changes made of it.
func (r *replay) artifactNow(e *entry, k artifactKey) (*artifact, error) {
	for _, x := range slices.Backward(e.artifacts) {
		if x.key == k {
			return x, nil
		}
	}
	return r.s.artifact(k)
}

func (r *replay) movePart(e *entry) error {
	s := r.s
	if e.Move == nil {
		return nil
	}
	if e.Move.Kind != "restore" {
		if err := s.planAway(e); err != nil {
			return err
		}
		if e.lsn <= s.registryLSN {
			e.away = slices.DeleteFunc(e.away, func(x archiving) bool { return x.tool != nil })
		}
		return nil
	}
	s.flushMu.Lock()
	_, err := s.flush(false) // what was archived is in its files
	s.flushMu.Unlock()
	if err != nil {
		return err
	}
	for _, name := range e.Move.Files {
		x, err := s.readArchived(name)
		if vfs.NotExist(err) || errors.Is(err, errCorrupt) {
			continue // set aside, or restored from and gone: the checkpoint is lost
		}
		if err != nil {
			return err
		}
		if _, exists := s.exists(x); exists || x.tool != nil && e.lsn <= s.registryLSN {
			if err := r.noteFigures(x); err != nil {
				return err
			}
			x.tool, x.artifact = nil, nil // it is in its place: only the archive's file is to go
		}
		e.restored = append(e.restored, x)
	}
	return nil
}

// noteFigures puts into the index what an artifact's file has and the index, which follows later, may not.
func (r *replay) noteFigures(x restored) error {
	if x.artifact == nil {
		return nil
	}
	now, err := r.s.artifact(x.artifact.key)
	if err != nil {
		return err
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.ranking.SetArtifact(now.key.role, now.key.method, store.FiguresOf(now.a))
	r.s.indexDirty = true
	return nil
}
