package store

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// watched is a store with Watch only. Like a real store, it calls changed with a lock held, and the end of watching
// takes the same lock.
type watched struct {
	Store
	mu      sync.Mutex
	changed func(Change)
	fails   error
	before  func() // called before watching ends
}

func (w *watched) Watch(_ Cursor, changed func(Change)) (stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails != nil {
		return nil, w.fails
	}
	w.changed = changed
	return func() {
		if w.before != nil {
			w.before()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed = nil
	}, nil
}

func (w *watched) send(c Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		w.changed(c)
	}
}

// want takes the changes and compares them: roles, "all", or nothing.
func want(t *testing.T, f *Follower, names ...string) {
	t.Helper()
	changed, all, err := f.Take()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range slices.Collect(maps.Keys(changed)) {
		got = append(got, x.String())
	}
	if all {
		got = append(got, "all")
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		t.Errorf("to be read: %q, want %q", got, names)
	}
}

// A follower returns what changed in its namespace since it was last asked. It returns everything at first, after
// unseen changes, and after Close.
func TestFollower(t *testing.T) {
	t.Parallel()
	hints := 0
	w := &watched{fails: errors.New("away")}
	f := NewFollower(w, "acme", func() { hints++ })
	f.Close() // nothing is followed yet
	if _, _, err := f.Take(); !errors.Is(err, w.fails) {
		t.Errorf("got %v, want %v", err, w.fails)
	}
	w.fails = nil
	want(t, f, "all")
	for range 2 {
		for _, kind := range []string{ChangedArtifact, ChangedCall, ChangedCandidate, ChangedConnection,
			ChangedNamespace} {
			w.send(Change{Namespace: "acme", Kind: kind, Role: "tax", Method: "net"})
		}
	}
	w.send(Change{Namespace: "acme", Kind: ChangedTool, Role: "mail"})
	w.send(Change{Namespace: "acme", Kind: ChangedPolicy})
	w.send(Change{Namespace: "other", Kind: ChangedTool, Role: "theirs"})
	if hints != 4 {
		t.Errorf("%d hints, want one for each change of an artifact, a tool and the policy", hints)
	}
	want(t, f, "mail", "tax.net")
	want(t, f)
	f.GiveBack(map[Target]bool{{Role: "lost"}: true}, false)
	want(t, f, "lost")
	w.send(Change{Kind: ChangedUnseen})
	want(t, f, "all")
	f.Close()
	f.Close()
	w.send(Change{Namespace: "acme", Kind: ChangedTool, Role: "unseen"})
	want(t, f, "all")
	w.send(Change{Namespace: "acme", Kind: ChangedTool, Role: "seen"})
	want(t, f, "seen")
}

// A change and the end of watching do not deadlock.
func TestFollowerEndsAmidChanges(t *testing.T) {
	t.Parallel()
	w := &watched{}
	f := NewFollower(w, agent.DefaultNamespace, nil)
	want(t, f, "all")
	w.before = func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.send(Change{Namespace: agent.DefaultNamespace, Kind: ChangedTool, Role: "late"})
		}()
		<-done
	}
	f.Close()
	want(t, f, "all", "late")
}
