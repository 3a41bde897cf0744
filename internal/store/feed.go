package store

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
)

// Kinds of a Change.
const (
	ChangedArtifact   = "artifact"
	ChangedTool       = "tool"
	ChangedPolicy     = "policy"
	ChangedConnection = "connection"
	ChangedCall       = "call"      // it was committed
	ChangedCandidate  = "candidate" // one was put
	ChangedNamespace  = "namespace" // it was erased, or imported: nothing that was known of it holds

	// ChangedUnseen stands for changes of any kind and namespace that the feed does not have any more, as the watcher's process was stopped for
	// too long: whoever keeps something of the store reads it anew.
	ChangedUnseen = "unseen"
)

// Cursor is a place in the change feed. It is opaque. "" stands for now.
type Cursor string

// ImportedNamespace is the Name of a ChangedNamespace where the namespace was imported.
const ImportedNamespace = "imported"

// Change is one entry of the change feed.
type Change struct {
	Cursor       Cursor // Watch goes on behind this change from here
	Namespace    agent.Namespace
	Kind         string
	Role, Method string // of an artifact or a tool
	Name         string // of a connection; the key of a candidate; ImportedNamespace
	Revision     int64
	// an artifact: by ChangeArtifact with an entry of the audit trail, not by a call, and ArtifactChange.Renews
	Operated bool `json:",omitempty"`

	CallID, SessionID string // of a call
	// of a call; nil where the feed keeps only its id: see Calls.Call. It must not be changed
	Log *agent.LogEntry
}

// feedKept is how many changes a Feed keeps for watchers that come back.
const feedKept = 1024

// Feed is the change feed of a store that lives in one process. It keeps changes once somebody has watched: until then nobody has a cursor.
// The caller guards it.
type Feed struct {
	name     string // of this feed: cursors of others are gone
	watchers map[int]func(Change)
	next     int
	last     uint64   // the number of the last change
	kept     []Change // the newest, number n at n%feedKept; nil until somebody watches
	first    uint64   // the number of the oldest kept one
}

// Watch is as in Store. It takes mu, by which the caller guards the feed.
func (f *Feed) Watch(mu sync.Locker, from Cursor, changed func(Change)) (stop func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	if f.kept == nil {
		f.name, f.watchers, f.kept, f.first = ids.New("feed"), map[int]func(Change){}, make([]Change, feedKept),
			f.last+1
	}
	if from != "" {
		n, err := f.number(from)
		if err != nil {
			return nil, err
		}
		for n++; n <= f.last; n++ {
			changed(f.kept[n%feedKept])
		}
	}
	id := f.next
	f.next++
	f.watchers[id] = changed
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(f.watchers, id)
	}, nil
}

// number returns that of the change at the cursor.
func (f *Feed) number(at Cursor) (uint64, error) {
	name, digits, _ := strings.Cut(string(at), ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || name != f.name || n+1 < f.first || n > f.last {
		return 0, fmt.Errorf("%w: the place %q in the change feed", ErrGone, at)
	}
	return n, nil
}

// Send gives a change to the watchers, and keeps it.
func (f *Feed) Send(c Change) {
	if f.kept == nil {
		return
	}
	f.last++
	c.Cursor = Cursor(f.name + "." + strconv.FormatUint(f.last, 10))
	for _, changed := range f.watchers {
		changed(c)
	}
	c.Log = nil // it may be large
	f.kept[f.last%feedKept] = c
	if f.last-f.first >= feedKept {
		f.first = f.last - feedKept + 1
	}
}

// Watched reports whether anybody would see a change, now or later.
func (f *Feed) Watched() bool { return f.kept != nil }
