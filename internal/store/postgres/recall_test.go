//go:build postgres

package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A replica commits from its caches, and reads rows that another replica has changed. Whatever was changed, calls count
// once.
func TestKnownRowsChangeElsewhere(t *testing.T) {
	stores, _ := opened(t, pgtest.NewDatabase(t), 2)
	n, other := team(t, stores[0]), team(t, stores[1])
	created(t, n, "sess_0", "sess_1")
	calls := 0
	call := func(n *Namespace, session string) (*store.CallCommit, error) {
		calls++
		c := storetest.NewCommit(session, fmt.Sprintf("call_%03d", calls), time.Now())
		if calls == 1 {
			storetest.Forged(c, "package tool")
		} else {
			c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: time.Now(),
				Result: agent.ClassOK, SessionID: session}}
		}
		c.Tools = []store.ToolChange{{Role: "calculator", At: time.Now(), Used: 1, Register: &agent.Contract{},
			IfAbsent: true}}
		c.Content = &store.Content{Ref: "content:" + session, Value: []byte("1")}
		return c, n.CommitCall(t.Context(), c)
	}
	must := func(n *Namespace, session string, seq int) *store.CallCommit {
		t.Helper()
		c, err := call(n, session)
		if err != nil || c.Record.Seq != seq || c.Log.ArtifactSuccessCount != int64(calls) {
			t.Fatalf("call %d: record %d, %d successes, %v; want record %d", calls, c.Record.Seq,
				c.Log.ArtifactSuccessCount, err, seq)
		}
		return c
	}
	known := func(want int64) {
		t.Helper()
		if got := stores[0].commits.known.Load(); got != want {
			t.Errorf("after %d calls %d transactions asked for nothing, want %d", calls, got, want)
		}
	}
	must(n, "sess_0", 1)
	must(n, "sess_0", 2)
	again := must(n, "sess_0", 3)
	known(2)
	must(other, "sess_1", 1) // counts on the same artifact
	must(n, "sess_0", 4)
	known(2)
	must(n, "sess_0", 5) // the last group was surprised, so this one reads
	must(n, "sess_0", 6)
	known(3)
	if err := n.CommitCall(t.Context(), again); err != nil || again.Record.Seq != 3 {
		t.Errorf("a call again: record %d, %v", again.Record.Seq, err)
	}
	policy := agent.DefaultPolicy()
	policy.Retention.ContentEntries = 1
	if err := other.SetPolicy(t.Context(), policy, 0, nil); err != nil {
		t.Fatal(err)
	}
	must(n, "sess_0", 7)
	must(n, "sess_1", 2)
	if _, err := n.Content(t.Context(), "content:sess_0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what the new policy has no room for: %v", err)
	}
	if err := other.DeleteSession(t.Context(), "sess_0", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := call(n, "sess_0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a call in a session that was deleted: %v", err)
	}
	if tool, err := n.Tool(t.Context(), "calculator"); err != nil || tool.UsageCount != int64(calls-1) {
		t.Errorf("the tool was used %d times, want %d: %v", tool.UsageCount, calls-1, err)
	}
	if err := stores[1].EraseNamespace(t.Context(), "team", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := call(n, "sess_1"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a call in a namespace that was erased: %v", err)
	}
}

// A role that nobody registered has no tool to cache.
func TestKnownRowsOfRoleWithoutTool(t *testing.T) {
	stores, _ := opened(t, pgtest.NewDatabase(t), 1)
	n := team(t, stores[0])
	created(t, n, "sess_0")
	for i := range 4 {
		c := storetest.NewCommit("sess_0", fmt.Sprint("call_", i), time.Now())
		if i == 0 {
			storetest.Forged(c, "package tool")
		} else {
			c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: time.Now(),
				Result: agent.ClassOK, SessionID: "sess_0"}}
		}
		if err := n.CommitCall(t.Context(), c); err != nil || c.Log.ArtifactSuccessCount != int64(i+1) {
			t.Fatalf("call %d: %d successes, %v", i, c.Log.ArtifactSuccessCount, err)
		}
	}
	if got := stores[0].commits.known.Load(); got != 3 {
		t.Errorf("of 4 calls %d asked for nothing, want 3", got)
	}
}

func team(t *testing.T, s *Store) *Namespace {
	t.Helper()
	n, err := s.Space("team")
	if err != nil {
		t.Fatal(err)
	}
	return n
}
