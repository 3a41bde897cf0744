package disk

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// recover reads the documents that are held in memory, replays the journal onto the files and continues the journal.
func (s *Store) recover() error {
	if err := errors.Join(s.root.Mkdir(journalDir), s.root.SyncDir(".")); err != nil {
		return err
	}
	var cp checkpointDoc
	corrupt, err := readOptional(s.root, checkpointFile, &cp, nil)
	if err != nil {
		return err
	}
	known := cp.SchemaVersion > 0
	s.applied, s.flusher.checkpoint = cp.LSN, cp.LSN
	names, err := s.namespaceNames(&cp)
	if err != nil {
		return err
	}
	bad, err := s.loadUnsure(&cp, names)
	if err != nil {
		return err
	}
	corrupt = corrupt || bad
	s.recovering = true
	r := newReplay(s, cp)
	segments, err := r.run()
	s.recovering = false
	if err != nil {
		return err
	}
	corrupt = corrupt || r.corrupt
	for _, n := range s.all() {
		if err := n.recovered(r, &cp, corrupt); err != nil {
			return err
		}
	}
	s.opened = true
	s.flusher.inherited = r.entries > 0
	s.flusher.forced = s.flusher.inherited || !known || corrupt
	// Deleted data must be erased before the first read.
	s.flusher.behind = known && !corrupt && !r.damaged && len(r.deleted)+len(r.erased) == 0
	err = s.startJournal(segments)
	if isFull(err) { // stored data can be read meanwhile; the flusher tries again
		s.flusher.forced = true
		s.health.fail(err)
		return nil
	}
	return err
}

// recovered removes what a replay made obsolete and counts again what it left unsure.
func (n *namespace) recovered(r *replay, cp *checkpointDoc, corrupt bool) error {
	// Otherwise the metadata of files may be lost while their bytes are not.
	if !corrupt && !r.damaged {
		if err := n.streams.sweep(); err != nil {
			return err
		}
	}
	if n.sessions.count < 0 || cp.of(n.name) == nil { // they were never counted
		if err := n.sessions.loadIDs(); err != nil {
			return err
		}
	}
	n.stored.anew.all = n.stored.anew.all || corrupt || r.damaged || len(r.broken) > 0 || n.stored.unsure.Load()
	n.stored.anew.values = n.stored.anew.values || r.deletes(n.name) // their lines may have been erased already
	return n.stored.count(context.Background())
}

// loadUnsure loads the default namespace and those whose checkpoint lacks something that must be known of an idle
// namespace.
func (s *Store) loadUnsure(cp *checkpointDoc, names []agent.Namespace) (corrupt bool, err error) {
	for _, name := range names {
		at := cp.of(name)
		taken, known := at.taken()
		if at != nil {
			s.spaces.idle[name] = at
			s.total.Add(taken)
		}
		if name != agent.DefaultNamespace && known && at.Sessions >= 0 && !s.o.recount {
			continue // it is loaded on first use
		}
		_, bad, err := s.load(name)
		if err != nil {
			return false, err
		}
		corrupt = corrupt || bad
	}
	return corrupt, nil
}

// startJournal starts a new segment and writes a checkpoint if one is needed at once. If the journal has everything
// that the files lack, the checkpoint can wait until the store serves: after another crash the same entries would be
// replayed again.
func (s *Store) startJournal(segments []wal.Segment) error {
	if err := s.sequencer.journal.Continue(s.applied+1, segments); err != nil {
		return err
	}
	// Remove what the last checkpoint was about to remove. It may belong to erased data.
	if err := wal.Remove(s.root, journalDir, s.sequencer.cut(s.flusher.checkpoint)); err != nil {
		return err
	}
	if !s.flusher.forced || s.flusher.behind {
		return nil
	}
	return s.flusher.writeCheckpoint()
}

// namespaceNames returns the names of all namespaces, the default one first. It removes directories of erased
// namespaces.
func (s *Store) namespaceNames(cp *checkpointDoc) ([]agent.Namespace, error) {
	found, err := s.root.list(namespacesDir)
	if err != nil {
		return nil, err
	}
	names := []agent.Namespace{}
	for _, name := range found {
		if strings.HasSuffix(name, erasedSuffix) {
			if err := s.root.removeTree(path.Join(namespacesDir, name)); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, agent.Namespace(name))
	}
	for name := range cp.Namespaces {
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name agent.Namespace) bool {
		if err := name.Validate(); err != nil || name == agent.DefaultNamespace {
			s.log.Warn().Str("directory", namespacesDir+"/"+
				string(name)).Msg("a directory is not that of a namespace and is left alone")
			return true
		}
		return false
	})
	return append([]agent.Namespace{agent.DefaultNamespace}, names...), nil
}

// open creates the missing directories of the namespace and reads its files; see load.
func (n *namespace) open(at *checkpointed) (corrupt bool, err error) {
	if err := n.layOut(); err != nil {
		return false, err
	}
	n.exists.Store(true)
	return n.load(at)
}

// isFull reports whether err means a lack of space, which may pass without action by the store.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
