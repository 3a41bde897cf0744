//go:build postgres

package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A database that was dumped and restored into another server, with lower transaction ids, works: new calls are the
// newest, readers see them, and the change feed reports them.
func TestRestoredFromADump(t *testing.T) {
	t.Parallel()
	from, to := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	url := from.CreateDatabase(t, "dumped")
	from.Exec(t, "dumped", "DO $$BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$")
	_, spaces := opened(t, url, 1)
	created(t, spaces[0], "sess_0")
	commit := func(n *Namespace, id string) {
		t.Helper()
		if err := n.CommitCall(t.Context(), storetest.NewCommit("sess_0", id, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	list := func(n *Namespace) string {
		t.Helper()
		found, err := n.ListCalls(t.Context(), store.CallQuery{Stable: true})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range found {
			ids = append(ids, e.CallID)
		}
		return strings.Join(ids, " ")
	}
	commit(spaces[0], "call_1")
	commit(spaces[0], "call_2")
	restored := from.CopyTo(t, to, "dumped")
	if ahead := to.Exec(t, "dumped", "SELECT max(n) > call_place() FROM calls"); ahead != "t" {
		t.Fatal("the calls of the dump do not lie ahead: the test shows nothing")
	}
	stores, spaces := opened(t, restored, 2)
	seen := make(chan store.Change, 8)
	stop, err := stores[1].Watch("", func(c store.Change) { seen <- c })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if got := list(spaces[0]); got != "call_2 call_1" {
		t.Errorf("the restored calls are %q", got)
	}
	commit(spaces[0], "call_3")
	if c := <-seen; c.CallID != "call_3" {
		t.Errorf("the feed reports %+v first", c)
	}
	commit(spaces[1], "call_4")
	<-seen
	if got := list(spaces[0]); got != "call_4 call_3 call_2 call_1" {
		t.Errorf("the calls are %q", got)
	}
	if _, err := stores[0].Watch("", func(store.Change) {}); err != nil {
		t.Error(err)
	}
	var first, again string
	for i, out := range []*string{&first, &again} {
		*out = to.Exec(t, "dumped", "SELECT added FROM era")
		if i == 0 {
			opened(t, restored, 1)
		}
	}
	if first != again {
		t.Errorf("each opening changes the era: %s, %s", first, again)
	}
	if r, err := stores[0].Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}
