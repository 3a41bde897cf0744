package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spaces holds the namespaces. It is guarded by shared.mu.
type spaces struct {
	loaded map[agent.Namespace]*namespace // namespaces in use, including those that were never written to
	// namespaces whose files were not needed since the start; the last checkpoint covers all their data
	idle map[agent.Namespace]*checkpointed
	// erased namespaces whose bytes may still be on disk, with the lsn of the entry that erased them
	erased map[agent.Namespace]uint64
}

// erasedSuffix ends the directory name of an erased namespace until it is removed. It is not valid in a namespace name.
const erasedSuffix = ".erased"

// Namespace is part of store.Store. The first call for an idle namespace reads its files.
func (s *Store) Namespace(name agent.Namespace) (store.Namespace, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	if n := s.namespace(name); n != nil {
		return n, nil
	}
	// Nothing is written meanwhile, and no other goroutine loads the namespace.
	s.flusher.mu.Lock()
	defer s.flusher.mu.Unlock()
	if n := s.namespace(name); n != nil {
		return n, nil
	}
	n, corrupt, err := s.load(name)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	if !corrupt {
		err = n.streams.sweep()
	}
	return n, err
}

// namespace returns the namespace if it is in use or does not exist, and nil if it is idle.
func (s *Store) namespace(name agent.Namespace) *namespace {
	s.mu.RLock()
	n := s.spaces.loaded[name]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The namespace may have been created meanwhile.
	if n = s.spaces.loaded[name]; n == nil && s.spaces.idle[name] == nil {
		n = newNamespace(s, name)
		n.stored.totaled = true
		s.spaces.loaded[name] = n
	}
	return n
}

// load reads the files of a namespace and puts it into use. It reports whether a document was corrupt. The caller holds
// flusher.mu or has not shared the store yet.
func (s *Store) load(name agent.Namespace) (n *namespace, corrupt bool, err error) {
	s.mu.RLock()
	at := s.spaces.idle[name]
	s.mu.RUnlock()
	n = newNamespace(s, name)
	if corrupt, err = n.open(at); err != nil {
		return nil, false, err
	}
	if s.opened {
		if err := n.stored.count(context.Background()); err != nil {
			return nil, false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces.idle[name] != at {
		return nil, false, errErased // erased meanwhile
	}
	idle, _ := at.taken()
	s.total.Add(n.taken().Minus(idle))
	n.stored.totaled = true
	delete(s.spaces.idle, name)
	s.spaces.loaded[name] = n
	return n, corrupt, nil
}

// loadAll loads all idle namespaces.
func (s *Store) loadAll() (err error) {
	s.mu.RLock()
	names := slices.Sorted(maps.Keys(s.spaces.idle))
	s.mu.RUnlock()
	for _, name := range names {
		_, one := s.Namespace(name)
		err = errors.Join(err, one)
	}
	return err
}

// all returns the namespaces in use, sorted by name.
func (s *shared) all() []*namespace {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*namespace, 0, len(s.spaces.loaded))
	for _, n := range s.spaces.loaded {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *namespace) int { return strings.Compare(string(a.name), string(b.name)) })
	return out
}

// ListNamespaces is part of store.Store.
func (s *Store) ListNamespaces(_ context.Context, after agent.Namespace, limit int) ([]store.NamespaceInfo, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := slices.Collect(maps.Keys(s.spaces.idle))
	for name, n := range s.spaces.loaded {
		if n.there() {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name agent.Namespace) bool { return name <= after })
	slices.Sort(names)
	out := []store.NamespaceInfo{}
	for _, name := range names[:min(len(names), max(limit, 0))] {
		out = append(out, s.info(name))
	}
	return out, nil
}

// info describes an existing namespace. The caller holds shared.mu.
func (s *Store) info(name agent.Namespace) store.NamespaceInfo {
	known := life{}
	if at := s.spaces.idle[name]; at != nil {
		known = at.life
	} else {
		known = s.spaces.loaded[name].life
	}
	info := store.NamespaceInfo{Name: name, CreatedAt: known.Created}
	if known.Due != nil {
		info.Due = *known.Due
	}
	return info
}

// there reports whether the namespace exists. The caller holds shared.mu.
func (n *namespace) there() bool { return n.exists.Load() || !n.life.Created.IsZero() }

// NamespaceInfo is part of store.Store.
func (s *Store) NamespaceInfo(_ context.Context, name agent.Namespace) (store.NamespaceInfo, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.spaces.have(name) {
		return store.NamespaceInfo{}, fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
	}
	return s.info(name), nil
}

// have reports whether the namespace exists. The caller holds shared.mu.
func (x *spaces) have(name agent.Namespace) bool {
	n := x.loaded[name]
	return x.idle[name] != nil || n != nil && n.there()
}

// CreateNamespace is part of store.Store. The journal entry is durable before the directory exists.
func (s *Store) CreateNamespace(ctx context.Context, name agent.Namespace,
	audit *agent.AuditEntry) (store.NamespaceInfo, error) {
	if err := name.Validate(); err != nil {
		return store.NamespaceInfo{}, err
	}
	s.flusher.archive.Lock()
	defer s.flusher.archive.Unlock()
	if err := s.flusher.finishErasing(name); err != nil {
		return store.NamespaceInfo{}, err
	}
	n := s.namespace(name)
	err := s.commitFor(ctx, name, audit, func(e *entry) error {
		if e.Make = name; n == nil || s.have(name) {
			return fmt.Errorf("%w: namespace %s", store.ErrExists, name)
		}
		return nil
	})
	if err != nil {
		return store.NamespaceInfo{}, err
	}
	// The next checkpoint creates the directory.
	if err := s.flusher.createLocked(n); err != nil {
		s.health.fail(err)
	}
	return s.NamespaceInfo(ctx, name)
}

// EraseNamespace is part of store.Store. The journal entry is durable before anything is removed; after a crash the
// next start removes the rest. A checkpoint always lies between the entry and the first entry of a new namespace with
// the same name: see finishErasing.
func (s *Store) EraseNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	s.flusher.archive.Lock()
	defer s.flusher.archive.Unlock()
	if s.have(name) {
		// The check below needs its spending.
		if _, err := s.Namespace(name); err != nil {
			return err
		}
	}
	err := s.commitFor(ctx, name, audit, func(e *entry) error {
		if e.Erase = name; !s.have(name) {
			return fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
		}
		e.Spent = s.namespace(name).spending.usedOn(agent.DayOf(e.at()))
		return nil
	})
	if err != nil {
		return err
	}
	// The checkpoint also removes its entries from the journal.
	if err := s.flusher.writeCheckpoint(); err != nil {
		s.health.fail(err)
	}
	return nil
}

// have reports whether the namespace exists.
func (s *Store) have(name agent.Namespace) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.spaces.have(name)
}

// commitFor commits the creation or the erasure of a namespace, which is an entry of the default namespace.
func (s *Store) commitFor(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry,
	check func(*entry) error) error {
	n := s.namespace(agent.DefaultNamespace)
	e := n.newEntry()
	e.Audit = audit
	return n.commit(ctx, &commit{entry: e, alone: true, check: func() error { return check(e) }})
}

// applySpaces applies the creation or the erasure of a namespace. The caller holds sequencer.mu and shared.mu.
func (s *shared) applySpaces(e *entry) {
	if n := s.spaces.loaded[e.Make]; n != nil {
		n.life.Created = e.at()
	}
	if e.Erase == "" {
		return
	}
	if n := s.spaces.loaded[e.Erase]; n != nil {
		n.forget()
	}
	idle, _ := s.spaces.idle[e.Erase].taken()
	s.total = s.total.Minus(idle)
	delete(s.spaces.loaded, e.Erase)
	delete(s.spaces.idle, e.Erase)
	s.spaces.erased[e.Erase] = e.lsn
	s.feed.add(store.Change{Namespace: e.Erase, Kind: store.ChangedNamespace})
}
