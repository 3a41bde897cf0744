//go:build postgres

package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// opened opens that many stores on one new database, and returns their default namespaces.
func opened(t *testing.T, url string, count int) (stores []*Store, spaces []*Namespace) {
	t.Helper()
	for range count {
		s, err := Open(t.Context(), DefaultOptions(url))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		n, err := s.Space(agent.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		stores, spaces = append(stores, s), append(spaces, n)
	}
	return stores, spaces
}

func created(t *testing.T, n *Namespace, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := n.CreateSession(t.Context(), agent.Session{ID: id, Role: "calculator", CreatedAt: time.Now(),
			UpdatedAt: time.Now()}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// counting commits calls of that many writers to the namespaces in turn. All are in two sessions, and count on one
// artifact and one tool.
func counting(t *testing.T, spaces []*Namespace, writers, each int) {
	t.Helper()
	created(t, spaces[0], "sess_0", "sess_1")
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				c := countedCall(w, i)
				if err := spaces[(w+i)%len(spaces)].CommitCall(t.Context(), c); err != nil {
					t.Errorf("%s: %v", c.Log.CallID, err)
				}
			}
		})
	}
	group.Wait()
	checkCounts(t, spaces[len(spaces)-1], writers*each)
}

// countedCall is call i of a writer. It counts everywhere.
func countedCall(w, i int) *store.CallCommit {
	c := storetest.NewCommit(fmt.Sprint("sess_", (w+i)%2), fmt.Sprintf("call_%02d_%03d", w, i), time.Now())
	c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{c.Log.CallID: json.RawMessage("1")}}
	change := agent.ArtifactChange{Role: "calculator", MethodName: "add", At: time.Now(), Result: agent.ClassOK,
		SessionID: c.SessionID}
	if i == 0 { // the first one creates it
		change.Generation = storetest.NewGeneration(fmt.Sprint("gen-", w), fmt.Sprint("package tool // ", w),
			time.Now())
	}
	c.Artifacts = []agent.ArtifactChange{change}
	c.Tools = []store.ToolChange{{Role: "calculator", At: time.Now(), Used: 1, Register: &agent.Contract{},
		IfAbsent: true}}
	return c
}

// checkCounts checks that each call counts exactly once everywhere.
func checkCounts(t *testing.T, n *Namespace, want int) {
	t.Helper()
	seen, kept := map[string]bool{}, 0
	for _, id := range []string{"sess_0", "sess_1"} {
		for _, r := range storetest.Records(t, n, id) { // which are gapless and in order
			seen[r.CallID] = true
			kept++
		}
		values, err := n.Context(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := n.Session(t.Context(), id); err != nil || s.HistorySize != len(values) ||
			s.Revision != int64(len(values))+1 {
			t.Errorf("%s has %d keys of its calls, %+v, %v", id, len(values), s, err)
		}
	}
	a, err := n.Artifact(t.Context(), "calculator", "add")
	if err != nil {
		t.Fatal(err)
	}
	tool, err := n.Tool(t.Context(), "calculator")
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := n.Evidence(t.Context(), "calculator", "add")
	if err != nil {
		t.Fatal(err)
	}
	spent, err := n.Spent(t.Context(), 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	days, spending := map[agent.Day]bool{}, int64(0)
	for _, row := range spent.Rows { // midnight may have passed meanwhile
		if days[row.Day] {
			t.Errorf("got the rows %+v, want one a day", spent.Rows)
		}
		days[row.Day] = true
		spending += row.Calls
	}
	got := fmt.Sprint(kept, len(seen), a.SuccessCount, tool.UsageCount, evidence.Calls, spending)
	if want := fmt.Sprint(want, want, want, want, want, want); got != want {
		t.Errorf("records, calls, successes, uses, evidence, spending: got %s, want %s", got, want)
	}
}

// Two replicas lose no calls of each other, whatever they share.
func TestTwoStoresCount(t *testing.T) {
	_, spaces := opened(t, pgtest.NewDatabase(t), 2)
	counting(t, spaces, 8, 15)
}

// Calls whose connections break while they are committed count once, and are answered.
func TestConnectionsBreak(t *testing.T) {
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killed := 0
	killer.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		committed := func() int64 { return stores[0].commits.calls.Load() + stores[1].commits.calls.Load() }
		for before := committed(); ctx.Err() == nil; <-tick.C {
			if committed() < before+10 {
				continue // some calls succeed between two breaks, whatever the speed of the machine
			}
			before = committed()
			var n int
			if err := stores[0].pool.QueryRow(ctx,
				"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n); err == nil {
				killed += n
			}
		}
	})
	counting(t, spaces, 8, 15)
	stop()
	killer.Wait()
	if killed == 0 {
		t.Error("no connection was broken")
	}
}

// The change of a long transaction is reported when it is committed. Changes of later transactions wait for it: the
// feed has one order for everybody.
func TestFeedWaitsForTheOldest(t *testing.T) {
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	got := make(chan store.Change, 10)
	stop, err := stores[1].Watch("", func(c store.Change) { got <- c })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	tx, err := stores[0].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) // committed below
	if _, err := publish(t.Context(), tx, spaces[0].id.Load(),
		[]store.Change{{Kind: store.ChangedTool, Role: "early"}}); err != nil {
		t.Fatal(err)
	}
	if err := spaces[1].PutCandidate(t.Context(), "late", []byte("x"), time.Hour); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-got:
		t.Fatalf("got %+v before the oldest transaction ended", c)
	default:
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := <-got, <-got
	if first.Role != "early" || second.Name != "late" {
		t.Errorf("got %+v, then %+v", first, second)
	}
	if _, err := stores[0].Watch("99999999999.1", func(store.Change) {}); !errors.Is(err, store.ErrGone) {
		t.Errorf("a cursor of another database: got %v, want ErrGone", err)
	}
}

// All bytes of a call come back unchanged, even those that PostgreSQL's own types would reject or change.
func TestBytesAreKept(t *testing.T) {
	_, spaces := opened(t, pgtest.NewDatabase(t), 2)
	n, other := spaces[0], spaces[1]
	created(t, n, "sess_1")
	values := []string{`"\u0000"`, `"a\u0000b"`, `1.0`, `1e400`, `-0`, `12345678901234567890.12345678901234567890`,
		"\"\xff\xfe\"", `{"b":1,"a":2,"b":3}`, `" "`, "\"\u2028<&>\"",
		`"` + strings.Repeat("x", 3<<20) + `"`, strings.Repeat("[", 500) + strings.Repeat("]", 500)}
	for i, v := range values {
		c := storetest.NewCommit("sess_1", fmt.Sprint("call_", i), time.Now())
		name := fmt.Sprint("k\x00\xff", i)
		c.Effects, c.Reply = json.RawMessage(v), json.RawMessage(v)
		c.Key = &store.Idempotent{Key: "key\x00\xff" + fmt.Sprint(i), BodyHash: "h\x00", CallID: c.Log.CallID}
		c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{name: json.RawMessage(v)}}
		c.Log.TraceID, c.Log.OutcomeErrorType = "trace\x00"+strings.Repeat("ä", 5000), "type\x00\xff"
		c.Log.OutcomeStatus = agent.StatusError
		if len(v) < 1<<20 {
			c.Content = &store.Content{Ref: fmt.Sprint("content:\x00", i), Value: json.RawMessage(v)}
		}
		if err := n.CommitCall(t.Context(), c); err != nil {
			t.Fatalf("%.40q: %v", v, err)
		}
		same := func(what string, got []byte, err error) {
			t.Helper()
			if err != nil || !bytes.Equal(got, []byte(v)) {
				t.Errorf("%s of %.40q: got %.40q, %v", what, v, got, err)
			}
		}
		call, err := other.Call(t.Context(), c.Log.CallID)
		same("effects", call.Effects, err)
		reply, err := other.Replay(t.Context(), c.Key.Key)
		same("reply", reply.Reply, err)
		if reply.BodyHash != "h\x00" {
			t.Errorf("got the hash %q", reply.BodyHash)
		}
		held, err := other.Context(t.Context(), "sess_1")
		same("context", held[name], err)
		if c.Content != nil {
			got, err := other.Content(t.Context(), c.Content.Ref)
			same("content", got, err)
		}
		list, err := other.ListCalls(t.Context(), store.CallQuery{TraceID: c.Log.TraceID,
			ErrorType: c.Log.OutcomeErrorType, Limit: 1})
		if err != nil || len(list) != 1 || list[0].CallID != c.Log.CallID {
			t.Errorf("by trace and error type: got %d calls, %v", len(list), err)
		}
	}
	if _, err := n.Session(t.Context(), "sess\x00"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// With Existing, Open neither creates nor migrates tables: the database stays unchanged.
func TestExistingIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	o := DefaultOptions(pgtest.NewDatabase(t))
	refused := func(what, why string) {
		t.Helper()
		o.Existing = true
		if s, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %q", what, err, why)
			if err == nil {
				_ = s.Close(t.Context())
			}
		}
	}
	refused("an empty database", "there is no store")
	if got := pgtest.Query(t, o.URL, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); got != "0" {
		t.Errorf("an empty database has %s tables afterwards", got)
	}
	o.Existing = false
	open := func() {
		t.Helper()
		s, err := Open(t.Context(), o)
		if err == nil {
			err = s.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open()
	o.Existing = true
	open()
	pgtest.Query(t, o.URL, "DELETE FROM schema_version WHERE version_id = (SELECT max(version_id) FROM schema_version)")
	forms := pgtest.Query(t, o.URL, "SELECT count(*) FROM schema_version")
	refused("an earlier form", "an earlier recurgentd")
	if got := pgtest.Query(t, o.URL, "SELECT count(*) FROM schema_version"); got != forms {
		t.Errorf("an earlier form: %s rows of forms, %s before", got, forms)
	}
	pgtest.Query(t, o.URL, "INSERT INTO schema_version (version_id, is_applied) VALUES (999, true)")
	refused("a later form", "a newer recurgentd")
}

// A database of a later version is rejected and stays unchanged.
func TestNewerTablesRefused(t *testing.T) {
	url := pgtest.NewDatabase(t)
	stores, _ := opened(t, url, 1)
	if _, err := stores[0].pool.Exec(t.Context(),
		"INSERT INTO schema_version (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), DefaultOptions(url)); err == nil ||
		!strings.Contains(err.Error(), "knows versions up to") {
		t.Errorf("got %v, want that it names the versions", err)
	}
}
