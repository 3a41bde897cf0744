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
	ChangedCall       = "call"      // a call was committed
	ChangedCandidate  = "candidate" // a candidate was put
	ChangedNamespace  = "namespace" // a namespace was erased or imported: nothing known about it is valid any more

	// ChangedUnseen stands for changes of any kind and namespace that the feed no longer has, because the watcher's
	// process was stopped for too long. A watcher that caches data of the store must read it again.
	ChangedUnseen = "unseen"
)

// Cursor is a position in the change feed. It is opaque. "" stands for now.
type Cursor string

// ImportedNamespace is the Name of a ChangedNamespace for an imported namespace. An erased one has "".
const ImportedNamespace = "imported"

// Change is one entry of the change feed.
type Change struct {
	Cursor       Cursor // position of this change: Watch continues after it
	Namespace    agent.Namespace
	Kind         string
	Role, Method string // of an artifact or a tool
	Name         string // a connection's name, a candidate's key, or ImportedNamespace
	Revision     int64
	// Operated marks an artifact changed by ChangeArtifact with an audit entry, if ArtifactChange.Renews reports true.
	Operated bool `json:",omitempty"`

	CallID, SessionID string // of a call
	// Log is the entry of a call and must not be changed. It is nil if the feed only has the id; see Calls.Call.
	Log *agent.LogEntry
}

// feedKept is the number of changes that a Feed keeps for watchers that come back.
const feedKept = 1024

// Feed is the change feed of a store within one process. It starts to keep changes with the first Watch, because nobody
// can have a cursor before. The caller guards it with a lock.
type Feed struct {
	name     string // random: cursors of other feeds, such as those before a restart, are rejected
	watchers map[int]func(Change)
	next     int
	last     uint64   // number of the last change
	kept     []Change // ring buffer: change n is at n%feedKept; nil until the first Watch
	first    uint64   // number of the oldest kept change
}

// Watch implements Store.Watch. It locks mu, the lock with which the caller guards the feed. While it holds mu, it
// calls changed for the kept changes.
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

// number returns the number of the change at the cursor. ErrGone.
func (f *Feed) number(at Cursor) (uint64, error) {
	name, digits, _ := strings.Cut(string(at), ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || name != f.name || n+1 < f.first || n > f.last {
		return 0, fmt.Errorf("%w: the place %q in the change feed", ErrGone, at)
	}
	return n, nil
}

// Send delivers a change to the watchers and keeps it. The kept copy lacks Log.
func (f *Feed) Send(c Change) {
	if f.kept == nil {
		return
	}
	f.last++
	c.Cursor = Cursor(f.name + "." + strconv.FormatUint(f.last, 10))
	for _, changed := range f.watchers {
		changed(c)
	}
	c.Log = nil // kept entries would pin large values in memory
	f.kept[f.last%feedKept] = c
	if f.last-f.first >= feedKept {
		f.first = f.last - feedKept + 1
	}
}

// Watched reports whether anybody sees changes, now or later through a cursor.
func (f *Feed) Watched() bool { return f.kept != nil }
