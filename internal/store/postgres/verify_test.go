//go:build postgres

package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// filled opens a store that holds something in every table that Verify looks at.
func filled(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), DefaultOptions(pgtest.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	n := storetest.Default(t, s)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	ok(n.CreateSession(t.Context(), agent.Session{ID: "sess_1", CreatedAt: now, UpdatedAt: now}, nil))
	for _, id := range []string{"call_1", "call_2", "call_3"} {
		c := storetest.Forged(storetest.NewCommit("sess_1", id, now), "package tool // "+id)
		c.Tools = []store.ToolChange{{Role: "calculator", At: now, Register: &agent.Contract{Purpose: "sums"}, Used: 1}}
		ok(n.CommitCall(t.Context(), c))
		ok(n.AppendAudit(t.Context(), agent.AuditEntry{ID: "audit_" + id, Action: "test"}))
	}
	f, err := storetest.NewFile(n, agent.File{ID: "file_1", SessionID: "sess_1"}, strings.Repeat("x", pieceBytes+1))
	ok(err)
	ok(n.AddFile(t.Context(), f))
	return s
}

// Each damage is found, and named with its table.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := filled(t)
	r, err := s.Verify(t.Context())
	if err != nil || len(r.Problems) > 0 || r.Sessions != 1 || r.Records != 3 || r.Calls != 3 || r.Artifacts != 1 || r.Tools != 1 || len(r.Audit) != 1 {
		t.Fatalf("of a sound store: got %+v, %v", r, err)
	}
	for _, damage := range []struct{ sql, table string }{
		{"DELETE FROM records WHERE seq = 2", "records"},
		{"DELETE FROM sessions", "records"},
		{"DELETE FROM artifact_bodies", "artifacts"},
		{"UPDATE artifacts SET role = 'other'", "artifacts"},
		{"UPDATE ranks SET success = success + 1", "ranks"},
		{"UPDATE ranks SET candidate = candidate + 1", "ranks"},
		{"DELETE FROM tools", "ranks"},
		{"UPDATE programs SET code = 'x'", "programs"},
		{"DELETE FROM programs", "programs"},
		{"DELETE FROM pieces WHERE n = 1", "files"},
		{"DELETE FROM files", "blobs"},
		{"DELETE FROM blobs", "pieces"},
		{"DELETE FROM audit WHERE n = 2", "audit"},
		{"DELETE FROM audit WHERE n = 3", "audit"},
		{"UPDATE audit SET line = replace(encode(line, 'escape'), 'test', 'best')::bytea WHERE n = 1", "audit"},
		{"UPDATE audit_heads SET hash = 'x'", "audit"},
		{"UPDATE evidence SET ns = 99", "evidence"},
		{"UPDATE spend_rows SET warm = -1", "spend_rows"},
		{"UPDATE file_bytes SET bytes = bytes + 1", "file_bytes"},
		{"UPDATE file_totals SET bytes = bytes - 1", "file_totals"},
		{"UPDATE calls SET corrected_by = 'call_9' WHERE call_id = 'call_3'", "calls"},
	} {
		if found := s.damaged(t, damage.sql); !strings.Contains("\n"+found, "\n"+damage.table+": ") {
			t.Errorf("after %s: got %q, want a problem of %s", damage.sql, found, damage.table)
		}
	}
}

// damaged returns the problems of the store after the statement, which is taken back.
func (s *Store) damaged(t *testing.T, sql string) string {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // the end of the damage
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := (&verifier{Tx: tx, r: &r}).all(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.Problems, "\n")
}
