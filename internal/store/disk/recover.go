package disk

import (
	"errors"
	"slices"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// recover reads what is held in memory whole, replays the journal onto the files, and has the journal go on.
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
	for _, name := range names {
		n := newNamespace(s, name)
		bad, err := n.open(cp.of(name))
		if err != nil {
			return err
		}
		s.namespaces[name] = n
		corrupt = corrupt || bad
	}
	s.recovering = true
	r := newReplay(s, cp)
	segments, err := r.run()
	s.recovering = false
	if err != nil {
		return err
	}
	for _, n := range s.all() {
		if !corrupt && !r.damaged { // else what is known of files may be lost, and their bytes are not
			if err := n.streams.sweep(); err != nil {
				return err
			}
		}
		if n.sessions.count < 0 || cp.of(n.name) == nil { // nobody has counted them
			if err := n.sessions.loadIDs(); err != nil {
				return err
			}
		}
	}
	s.flusher.inherited = r.entries > 0
	s.flusher.forced = s.flusher.inherited || !known || corrupt
	// Deleted data must be erased before the first read.
	s.flusher.behind = known && !corrupt && !r.damaged && len(r.deleted) == 0
	err = s.startJournal(segments)
	if isFull(err) { // what is there can be read, and the flusher gets it going again
		s.flusher.forced = true
		s.health.fail(err)
		return nil
	}
	return err
}

// startJournal begins a new segment, and writes a checkpoint if one is needed at once. If the journal has everything that the files lack, the
// checkpoint waits until the store serves: after a crash the same entries are replayed again.
func (s *Store) startJournal(segments []wal.Segment) error {
	if err := s.sequencer.journal.Continue(s.applied+1, segments); err != nil || !s.flusher.forced || s.flusher.behind {
		return err
	}
	return s.flusher.writeCheckpoint()
}

// namespaceNames lists the namespaces: the default one first.
func (s *Store) namespaceNames(cp *checkpointDoc) ([]agent.Namespace, error) {
	found, err := s.root.list(namespacesDir)
	if err != nil {
		return nil, err
	}
	names := []agent.Namespace{}
	for _, name := range found {
		names = append(names, agent.Namespace(name))
	}
	for name := range cp.Namespaces {
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name agent.Namespace) bool {
		if err := name.Validate(); err != nil || name == agent.DefaultNamespace {
			s.log.Warn().Str("directory", namespacesDir+"/"+string(name)).Msg("a directory is not that of a namespace and is left alone")
			return true
		}
		return false
	})
	return append([]agent.Namespace{agent.DefaultNamespace}, names...), nil
}

// open makes the namespace's directories and reads its files; see load.
func (n *namespace) open(at *checkpointed) (corrupt bool, err error) {
	if err := n.layOut(); err != nil {
		return false, err
	}
	n.exists.Store(true)
	return n.load(at)
}

// isFull reports whether err is a lack of space, which may end by itself.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
