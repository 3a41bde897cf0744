package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// watchResumes checks that a watcher that comes back with a cursor receives all later changes, once and in order. An
// unknown cursor is gone.
func watchResumes(t *testing.T, r *rig) {
	another, _ := r.another()
	put := func(role string) {
		t.Helper()
		_, err := r.s.PutTool(r.ctx, agent.Tool{Role: role}, store.AnyRevision, nil)
		r.ok(err)
	}
	seen := map[string]store.Cursor{}
	follow := func(s store.Store, from store.Cursor, roles string) {
		t.Helper()
		got := make(chan store.Change, 100)
		defer r.watch(s, from, func(c store.Change) { got <- c })()
		put(roles[len(roles)-1:])
		for _, role := range roles {
			c := <-got
			if c.Kind != store.ChangedTool || c.Role != string(role) || c.Cursor == "" {
				t.Fatalf("from %q: got %+v, want the tool %c and a cursor", from, c, role)
			}
			seen[c.Role] = c.Cursor
		}
	}
	follow(another, "", "a")
	follow(r.store, "", "b")
	put("c")
	follow(another, seen["a"], "bcd")
	follow(r.store, seen["b"], "cde")
	follow(another, seen["e"], "f")
	if _, err := r.store.Watch("nonsense", func(store.Change) {}); !errors.Is(err, store.ErrGone) {
		t.Errorf("got %v, want ErrGone", err)
	}
}

// watchCalls checks that the feed has each committed call once, of every writer, in the order of the stable part of the
// log.
func watchCalls(t *testing.T, r *rig) {
	const writers, each = 4, 10
	another, other := r.another()
	r.session("sess_1")
	got := make(chan store.Change, 1000)
	defer r.watch(another, "", func(c store.Change) { got <- c })()
	var group sync.WaitGroup
	for w := range writers {
		n := []store.Namespace{r.s, other}[w%2]
		group.Go(func() {
			for i := range each {
				if err := n.CommitCall(r.ctx, NewCommit("sess_1", fmt.Sprintf("call_%d_%d", w, i),
					r.clock.now())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	order := []string{}
	for len(order) < writers*each {
		c := <-got
		if c.Kind != store.ChangedCall || c.SessionID != "sess_1" || c.Namespace != agent.DefaultNamespace {
			t.Fatalf("got %+v, want a call of sess_1", c)
		}
		if c.Log != nil && c.Log.CallID != c.CallID {
			t.Errorf("got the log of %s for the call %s", c.Log.CallID, c.CallID)
		}
		if _, err := r.s.Call(r.ctx, c.CallID); err != nil {
			t.Errorf("the call %s is in the feed, but: %v", c.CallID, err)
		}
		order = append(order, c.CallID)
	}
	list, err := r.s.ListCalls(r.ctx, store.CallQuery{Limit: 1000, Stable: true})
	r.ok(err)
	if len(list) != len(order) {
		t.Fatalf("got %d calls, want %d", len(list), len(order))
	}
	for i, e := range list {
		if want := order[len(order)-1-i]; e.CallID != want {
			t.Fatalf("at place %d of the log: got %s, want %s as in the feed", i, e.CallID, want)
		}
	}
}

// watchOperations checks which changes of an artifact are marked as operations: those with an audit entry, not those by
// calls.
func watchOperations(t *testing.T, r *rig) {
	another, _ := r.another()
	r.session("sess_1")
	revision := r.forge("calculator", "add", "package tool").Revision
	got := make(chan store.Change, 100)
	defer r.watch(another, "", func(c store.Change) {
		if c.Kind == store.ChangedArtifact {
			got <- c
		}
	})()
	reason := "odd"
	change := agent.ArtifactChange{Role: "calculator", MethodName: "add", At: r.clock.now(), Quarantine: &reason}
	for i, do := range []func() error{
		func() error { _, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, change, nil); return err },
		func() error {
			_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, change, &agent.AuditEntry{ID: "aud_1"})
			return err
		},
		func() error {
			allowed := agent.ArtifactChange{Role: "calculator", MethodName: "add", At: r.clock.now(),
				Manifest: &agent.Manifest{ApprovedBy: "op"}}
			_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, allowed, &agent.AuditEntry{ID: "aud_2"})
			return err
		},
		func() error {
			c := r.call("sess_1")
			c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(),
				Result: agent.ClassOK, SessionID: "sess_1"}}
			return r.s.CommitCall(r.ctx, c)
		},
	} {
		r.ok(do())
		revision++
		if c := <-got; c.Role != "calculator" || c.Method != "add" || c.Revision != revision || c.Operated != (i == 1) {
			t.Errorf("change %d: got %+v, want revision %d", i, c, revision)
		}
	}
}
