//go:build postgres

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A call that was committed before a watcher began is in the stable part of the log that is read afterwards, though an older transaction still ran then: the
// watcher does not report it.
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
