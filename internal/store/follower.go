package store

import (
	"fmt"
	"maps"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Follower notes which tools and artifacts of one namespace change, for a view in memory that reads them when it is asked. It watches the
// store from its first use to Close. All its methods may be called concurrently.
type Follower struct {
	store     Store
	namespace agent.Namespace
	hint      func()

	// The store has locks of its own while it calls note, and takes them to begin and to end watching. So mu, which note takes, is not
	// held meanwhile.
	watching sync.Mutex
	stop     func() // ends watching; nil before the first use and after Close; guarded by watching

	mu      sync.Mutex
	changed map[Target]bool // without a method: the role's registry entry; guarded by mu
	all     bool            // everything has to be read; guarded by mu
}

// NewFollower returns a follower for which everything has changed. hint (nil: nobody waits for it) is called after each change of a tool, an artifact
// or the policy, and where changes went unseen. It must be quick, and must not use the store: the store calls it amid its own work.
func NewFollower(s Store, namespace agent.Namespace, hint func()) *Follower {
	return &Follower{store: s, namespace: namespace, hint: hint, changed: map[Target]bool{}, all: true}
}

// Follow begins to watch the store, unless the follower does.
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

// Take returns what has to be read anew, and forgets it: what changed, or all. It has every change that was acknowledged before.
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

// GiveBack notes again what was taken and could not be read.
func (f *Follower) GiveBack(changed map[Target]bool, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.changed, changed)
	f.all = f.all || all
}

// Close ends watching. For whoever takes afterwards everything has changed.
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

// note is called by the store for every change in it.
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
