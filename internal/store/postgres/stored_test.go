//go:build postgres

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// Concurrent commits and deletions in several replicas all count.
func TestStoredOfManyAtOnce(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	const writers, each = 6, 8
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			n, session := spaces[w%2], fmt.Sprint("sess_", w)
			err := n.CreateSession(t.Context(), agent.Session{ID: session, Role: "calculator",
				Owner: fmt.Sprint("owner", w%3), CreatedAt: time.Now(), UpdatedAt: time.Now()}, nil)
			for i := range each {
				c := storetest.NewCommit(session, fmt.Sprintf("call_%d_%d", w, i), time.Now())
				c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{fmt.Sprint("k",
					i%3): json.RawMessage(fmt.Sprint(i))}}
				if err == nil {
					err = n.CommitCall(t.Context(), storetest.Forged(c, fmt.Sprint("package tool // ", w, i)))
				}
				if err == nil {
					_, err = n.Stored(t.Context(), fmt.Sprint("owner", i%3)) // folds meanwhile
				}
			}
			if err == nil && w < 2 {
				err = n.DeleteSession(t.Context(), session, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, folded := range []bool{false, true} {
		if r, err := stores[0].Verify(t.Context()); err != nil || len(r.Problems) > 0 {
			t.Errorf("folded %v: %v, %v", folded, r.Problems, err)
		}
		if _, err := spaces[0].ListStored(t.Context(), "", 10); err != nil {
			t.Error(err)
		}
	}
}

// Warm calls query the sums of their owner only occasionally. Deletions by this replica are visible to it at once.
func TestStoredIsKept(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, n := stores[0], spaces[0]
	s.o.StoredLag = time.Hour
	if err := n.CreateSession(t.Context(), agent.Session{ID: "sess_1", Role: "r", Owner: "ann", CreatedAt: time.Now(),
		UpdatedAt: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	first, err := n.Stored(t.Context(), "ann")
	if err != nil || first.Own.Contexts == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE stored, stored_changes IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), attemptLimit)
	defer cancel()
	if again, err := n.Stored(ctx, "ann"); err != nil || again != first {
		t.Errorf("got %+v, %v", again, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.DeleteSession(t.Context(), "sess_1", nil); err != nil {
		t.Fatal(err)
	}
	if now, err := n.Stored(t.Context(), "ann"); err != nil || now.Own != (store.Bytes{}) {
		t.Errorf("after the deletion: %+v, %v", now, err)
	}
}

// A migration counts the data from before there were sums.
func TestStoredOfBefore(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("schema_version"))
	if err != nil {
		t.Fatal(err)
	}
	const before = 6
	if _, err := p.UpTo(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	a := (*agent.Artifact)(nil).Apply(agent.ArtifactChange{Role: "calculator", MethodName: "add",
		Generation: storetest.NewGeneration("gen-1", "package tool", time.Now())})
	tool := agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: "sums"}}
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{"INSERT INTO sessions (ns, id, owner, ephemeral, updated_at, doc) VALUES (1, 's', 'ann', false, now(), '12')",
			nil},
		{"INSERT INTO session_context (ns, session, hash, name, value) VALUES (1, 's', 'a', 'a', '123')", nil},
		{"INSERT INTO records (ns, session, seq, call_id, role, method, status, depth, doc) VALUES (1, 's', 1, 'c', 'r', 'm', 'ok', 0, '12345')", nil},
		{"INSERT INTO call_values (ns, call_id, session, at, outcome, effects) VALUES (1, 'c', 's', now(), '123456', '1'), (1, 'd', '', now(), '123', NULL)", nil},
		{"INSERT INTO replies (ns, key, session, at, call_id, body_hash, reply) VALUES (1, 'k', 's', now(), 'c', '', '12')", nil},
		{"INSERT INTO files (ns, id, owner, session, internal, bytes, blob, doc) VALUES (1, 'f', 'ann', '', false, 4, 1, ''), (1, 'p', 'ann', 's', true, 8, 2, '')", nil},
		{"INSERT INTO artifacts (ns, role, method, version, body_version, state, head) VALUES (1, 'calculator', 'add', 1, 1, 'candidate', $1)", []any{[]byte(agent.Encoded(headOf(a)))}},
		{"INSERT INTO artifact_bodies (ns, role, method, body) VALUES (1, 'calculator', 'add', $1)",
			[]any{[]byte(agent.Encoded(bodyOf(a)))}},
		{"INSERT INTO tools (ns, role, revision, usage_count, last_used, doc) VALUES (1, 'calculator', 1, 0, '', $1)",
			[]any{[]byte(agent.Encoded(tool))}},
	} {
		if _, err := db.ExecContext(t.Context(), q.sql, q.args...); err != nil {
			t.Fatal(err)
		}
	}
	_, spaces := opened(t, url, 1)
	got, err := spaces[0].ListStored(t.Context(), "", 10)
	var sums store.Sums
	store.ArtifactBytes(a, sums.Add)
	store.ToolBytes(&tool, sums.Add)
	sums.Add("ann", store.Bytes{Files: 4 + 512, Contexts: 6 + 4096, Histories: 13, Values: 9})
	sums.Add("", store.Bytes{Values: 3})
	want := sums.List()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
