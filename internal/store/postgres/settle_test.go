//go:build postgres

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A call committed before a watcher began is in the stable part of the log read afterwards, although an older
// transaction was still running then. The watcher does not report that call.
func TestStableLogReachesWatchers(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	created(t, spaces[0], "sess_0")
	older, err := stores[0].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	if err := spaces[0].CommitCall(t.Context(), storetest.NewCommit("sess_0", "call_1", time.Now())); err != nil {
		t.Fatal(err)
	}
	stop, err := stores[1].Watch("", func(c store.Change) {
		if c.CallID == "call_1" {
			t.Error("the watcher reports what was there when it began")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ended := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { ended <- older.Rollback(context.Background()) })
	list, err := spaces[1].ListCalls(t.Context(), store.CallQuery{Stable: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].CallID != "call_1" {
		t.Errorf("the log has %d calls, want call_1", len(list))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A call committed while the log is read is not skipped: if it is not in the stable part, neither is any later call.
func TestStableLogHasNoHoles(t *testing.T) {
	t.Parallel()
	// makes the waiting below overlap with the query
	stores, spaces := opened(t, pgtest.NewDatabase(t)+"&options=-c%20plan_cache_mode%3Dforce_generic_plan", 2)
	created(t, spaces[0], "sess_0")
	commit := func(id string) {
		t.Helper()
		if err := spaces[0].CommitCall(t.Context(), storetest.NewCommit("sess_0", id, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(statement string) pgx.Tx {
		t.Helper()
		tx, err := stores[0].pool.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), statement)
		}
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	end := func(tx pgx.Tx) {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	commit("call_0")
	older := begin(`INSERT INTO calls SELECT (jsonb_populate_record(c, jsonb_build_object('call_id', 'call_1', 'n', pg_current_xact_id()::text::int8 << 20))).*
		FROM calls c WHERE call_id = 'call_0'`)
	commit("call_2")
	if _, err := spaces[1].ListCalls(t.Context(), store.CallQuery{Stable: true}); err != nil {
		t.Fatal(err)
	}
	holds := begin("LOCK TABLE era IN ACCESS EXCLUSIVE MODE")

	type answer struct {
		list []agent.LogEntry
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		list, err := spaces[1].ListCalls(t.Context(), store.CallQuery{Stable: true})
		read <- answer{list, err}
	}()
	for waits := false; !waits; {
		if err := stores[0].pool.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'era'::regclass AND NOT granted)").Scan(
			&waits); err != nil {
			t.Fatal(err)
		}
	}
	end(older)
	end(holds)
	got := <-read
	if got.err != nil {
		t.Fatal(got.err)
	}
	if n := len(got.list); n == 2 {
		t.Errorf("the stable part of the log has %d calls, want call_1 wherever call_2 is", n)
	}
}
