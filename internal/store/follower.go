package store

import (
	"fmt"
	"maps"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Follower records which tools and artifacts of one namespace change, for an in-memory view that reads them when it
// is asked. It watches the store from its first use until Close. Its methods may be called concurrently.
type Follower struct {
	store     Store
	namespace agent.Namespace
	hint      func()

	// watching guards stop. It is separate from mu because of lock order: the store calls note, which locks mu, while
	// it holds its own locks, and takes those locks to start and stop watching. So mu must not be held during Watch and
	// stop.
	watching sync.Mutex
	stop     func() // ends watching; nil before the first use and after Close; guarded by watching

	mu      sync.Mutex
	changed map[Target]bool // an empty method stands for the role's registry entry; guarded by mu
	all     bool            // everything must be read again; guarded by mu
}

// NewFollower returns a follower that first reports everything as changed. hint, unless nil, is called after each
// change of a tool, an artifact or the policy, and after missed changes. It must be quick and must not use the store,
// because the store calls it while holding locks.
func NewFollower(s Store, namespace agent.Namespace, hint func()) *Follower {
	return &Follower{store: s, namespace: namespace, hint: hint, changed: map[Target]bool{}, all: true}
}

// Follow starts watching the store, unless the follower already does.
func (f *Follower) Follow() (err error) {
	f.watching.Lock()
	defer f.watching.Unlock()
	if f.stop == nil {
		if f.stop, err = f.store.Watch("", f.note); err != nil {
			return fmt.Errorf("follow the store: %w", err)
		}
	}
	return nil
}

// Take returns what must be read again, either the changed targets or everything, and resets it. It includes every
// change acknowledged before the call.
func (f *Follower) Take() (changed map[Target]bool, all bool, err error) {
	if err := f.Follow(); err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, all = f.changed, f.all
	f.changed, f.all = map[Target]bool{}, false
	return changed, all, nil
}

// GiveBack records again what was taken but could not be read.
func (f *Follower) GiveBack(changed map[Target]bool, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.changed, changed)
	f.all = f.all || all
}

// Close stops watching. A later Take starts again and reports everything as changed.
func (f *Follower) Close() {
	f.watching.Lock()
	defer f.watching.Unlock()
	if f.stop == nil {
		return
	}
	f.stop()
	f.stop = nil
	f.GiveBack(nil, true)
}

// note receives every change from the store.
func (f *Follower) note(x Change) {
	if x.Kind != ChangedUnseen && x.Namespace != f.namespace {
		return
	}
	switch x.Kind {
	case ChangedUnseen, ChangedArtifact, ChangedTool:
		f.mark(x)
	case ChangedPolicy:
	default:
		return
	}
	if f.hint != nil {
		f.hint()
	}
}

func (f *Follower) mark(x Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.Kind == ChangedUnseen {
		f.all = true
	} else {
		f.changed[Target{Role: x.Role, Method: x.Method}] = true
	}
}
