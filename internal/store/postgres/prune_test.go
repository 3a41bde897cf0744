//go:build postgres

package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A program without an artifact is removed once the call log does not reach back to its last reference. Programs of
// artifacts in use, of displaced ones and of archived ones stay, and so does one that is adopted again.
func TestProgramsArePruned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	o := DefaultOptions(pgtest.NewDatabase(t))
	o.Now = func() time.Time { return now }
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	n, err := s.Space(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	created(t, n, "sess_1")
	text := func(method string) string { return "package tool // " + method }
	calls := 0
	adopt := func(method string) {
		t.Helper()
		calls++
		c := storetest.NewCommit("sess_1", fmt.Sprint("call_", calls), now)
		c.Log.Timestamp = now.Format(time.RFC3339Nano)
		if method != "" {
			c.Artifacts = []agent.ArtifactChange{{Role: "r", MethodName: method, At: now, Result: agent.ClassOK,
				Generation: storetest.NewGeneration("gen-1", text(method), now)}}
		}
		if err := n.CommitCall(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, method := range []string{"used", "archived", "removed", "back"} {
		adopt(method)
	}
	audit := agent.AuditEntry{ID: "audit_1"}
	if err := n.Archive(t.Context(), []store.Target{{Role: "r", Method: "archived"}}, audit); err != nil {
		t.Fatal(err)
	}
	if err := n.Remove(t.Context(), []store.Target{{Role: "r", Method: "removed"}, {Role: "r", Method: "back"}},
		audit); err != nil {
		t.Fatal(err)
	}
	want := func(when string, kept ...string) {
		t.Helper()
		if _, err := n.Expire(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, method := range kept {
			there[method] = true
		}
		for _, method := range []string{"used", "archived", "removed", "back"} {
			_, err := n.Program(t.Context(), agent.Checksum(text(method)))
			if there[method] != (err == nil) || err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: the program of %s: %v", when, method, err)
			}
		}
	}
	want("while the log has its call", "used", "archived", "removed", "back")
	adopt("back")
	now = now.Add(24 * time.Hour) // what was removed is gone for good
	want("a day later", "used", "archived", "removed", "back")
	now = now.Add(24 * time.Hour)
	if _, err := s.pool.Exec(t.Context(), "DELETE FROM calls"); err != nil { // as the limit of the log does
		t.Fatal(err)
	}
	adopt("")
	want("when the log begins later", "used", "archived", "back")
	if r, err := s.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}
