//go:build postgres

package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A call whose file's bytes are gone, because its replica was cut off for too long, is rejected and not stored. Later
// calls proceed.
func TestCallWhoseDraftIsGone(t *testing.T) {
	stores, _ := opened(t, pgtest.NewDatabase(t), 1)
	n := team(t, stores[0])
	created(t, n, "sess_0")
	for i, id := range []string{"call_first", "call_second"} { // the second one is committed from the caches
		f, err := storetest.NewFile(n, agent.File{ID: "file_" + id, SessionID: "sess_0"}, strings.Repeat("x", 100))
		if err != nil {
			t.Fatal(err)
		}
		if err := sealDrafts([]store.NewFile{f}); err != nil {
			t.Fatal(err)
		}
		if _, err := stores[0].pool.Exec(t.Context(), "DELETE FROM blobs WHERE file IS NULL"); err != nil {
			t.Fatal(err)
		}
		c := storetest.NewCommit("sess_0", id, time.Now())
		c.Files = []store.NewFile{f}
		if err := n.CommitCall(t.Context(), c); !errors.Is(err, store.ErrGone) {
			t.Errorf("a call without its file's bytes: %v, want %v", err, store.ErrGone)
		}
		if _, err := n.Call(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s, which was refused, is there: %v", id, err)
		}
		whole := storetest.NewCommit("sess_0", id+"_whole", time.Now())
		if err := n.CommitCall(t.Context(), whole); err != nil || whole.Record.Seq != i+1 {
			t.Errorf("a call after one that was refused: record %d, %v, want %d", whole.Record.Seq, err, i+1)
		}
	}
}
