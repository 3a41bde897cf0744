//go:build postgres

package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// filled opens a store with data in every table that Verify checks.
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
	ok(n.CreateSession(t.Context(), agent.Session{ID: "sess_1", CreatedAt: now, UpdatedAt: now},
		map[string]json.RawMessage{"note": json.RawMessage(`1`)}))
	for _, id := range []string{"call_1", "call_2", "call_3"} {
		c := storetest.Forged(storetest.NewCommit("sess_1", id, now), "package tool // "+id)
		c.Tools = []store.ToolChange{{Role: "calculator", At: now, Register: &agent.Contract{Purpose: "sums"}, Used: 1}}
		ok(n.CommitCall(t.Context(), c))
		ok(n.AppendAudit(t.Context(), agent.AuditEntry{ID: "audit_" + id, Action: "test"}))
	}
	text := strings.Repeat("x", pieceBytes+1)
	f, err := storetest.NewFile(n, agent.File{ID: "file_1", SessionID: "sess_1",
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}, text)
	ok(err)
	ok(n.AddFile(t.Context(), f))
	ok(n.SetPolicy(t.Context(), agent.DefaultPolicy(), 0, nil))
	_, err = n.PutConnection(t.Context(), agent.Connection{Name: "news"}, 0, nil)
	ok(err)
	_, err = n.PutTool(t.Context(), agent.Tool{Role: "old"}, 0, nil)
	ok(err)
	ok(n.Archive(t.Context(), []store.Target{{Role: "old"}}, agent.AuditEntry{ID: "audit_archive", Action: "test"}))
	return s
}

// Each kind of damage is found and reported with its table.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := filled(t)
	r, err := s.Verify(t.Context())
	if err != nil || len(r.Problems) > 0 || r.Sessions != 1 || r.Records != 3 || r.Calls != 3 || r.Artifacts != 1 ||
		r.Tools != 1 || len(r.Audit) != 1 {
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
		{"UPDATE pieces SET data = set_byte(data, 0, 121) WHERE n = 1", "files"},
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
		{"UPDATE sessions SET doc = 'x'", "sessions"},
		{"UPDATE sessions SET owner = 'eve'", "sessions"},
		{"UPDATE session_context SET value = '{'", "session_context"},
		{"UPDATE records SET doc = 'x' WHERE seq = 2", "records"},
		{"UPDATE records SET status = 'error' WHERE seq = 2", "records"},
		{"UPDATE calls SET doc = 'x' WHERE call_id = 'call_2'", "calls"},
		{"UPDATE calls SET call_id = 'call_9' WHERE call_id = 'call_2'", "calls"},
		{"UPDATE calls SET doc = (SELECT doc FROM calls WHERE call_id = 'call_1') WHERE call_id = 'call_2'", "calls"},
		{"UPDATE call_values SET outcome = '{' WHERE call_id = 'call_1'", "call_values"},
		{"UPDATE artifacts SET state = 'durable'", "artifacts"},
		{"UPDATE evidence SET doc = 'x'", "evidence"},
		{"UPDATE tools SET doc = 'x'", "tools"},
		{"UPDATE policies SET doc = 'x'", "policies"},
		{"UPDATE connections SET name = 'other'", "connections"},
		{"UPDATE archive SET doc = 'x'", "archive"},
		{"UPDATE files SET doc = '{}'", "files"},
		{"UPDATE spend_rows SET models = 'x'", "spend_rows"},
		{"INSERT INTO spend_forges (ns, hash, doc) SELECT id, 'x', '{}' FROM namespaces", "spend_forges"},
		{"INSERT INTO spend_open (ns, id, doc) SELECT id, 'x', '{}' FROM namespaces", "spend_open"},
		{"UPDATE calls SET corrected_by = 'call_9' WHERE call_id = 'call_3'", "calls"},
	} {
		if found := s.damaged(t, damage.sql); !strings.Contains("\n"+found, "\n"+damage.table+": ") {
			t.Errorf("after %s: got %q, want a problem of %s", damage.sql, found, damage.table)
		}
	}
}

// damaged returns the problems of the store after the statement, which is rolled back.
func (s *Store) damaged(t *testing.T, sql string) string {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) // the end of the damage
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := (&verifier{Tx: tx, r: &r}).all(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.Problems, "\n")
}
