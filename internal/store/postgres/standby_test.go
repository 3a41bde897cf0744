//go:build postgres

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A commit that gave up waiting for the standby is visible, and would be lost with the primary. Neither a repeated
// commit nor its idempotency key is answered before the standby has it.
func TestNothingIsAnsweredWithoutTheStandby(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Standby: true})
	o := DefaultOptions(c.CreateDatabase(t, "waits"))
	o.Retry = 0
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	n, err := s.Space(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	created(t, n, "sess_0")
	commit := func() *store.CallCommit {
		call := storetest.NewCommit("sess_0", "call_1", time.Now())
		call.Key, call.Reply = &store.Idempotent{Key: "k", BodyHash: "h", CallID: "call_1"}, json.RawMessage(`{}`)
		return call
	}
	c.KillStandby(t)
	givenUp := make(chan error, 1)
	go func() { givenUp <- n.CommitCall(t.Context(), commit()) }()
	for c.Exec(t, "waits", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
	}
	if err := <-givenUp; err == nil {
		t.Fatal("a commit was acknowledged although there is no standby")
	}
	if got := c.Exec(t, "waits", "SELECT count(*) FROM replies"); got != "1" {
		t.Fatalf("%s replies are visible, want the one that nobody was answered", got)
	}
	for what, ask := range map[string]func(context.Context) error{
		"a key": func(ctx context.Context) error { _, err := n.Replay(ctx, "k"); return err },
		"the commit": func(ctx context.Context) error {
			again := commit()
			again.Repeated = true
			return n.CommitCall(ctx, again)
		},
	} {
		asked, stop := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() { answered <- ask(asked) }()
		for waits := false; !waits; {
			select {
			case err := <-answered:
				t.Fatalf("%s was answered without the standby: %v", what, err)
			default:
				waits = c.Exec(t, "waits", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "1"
			}
		}
		c.Exec(t, "waits", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		stop()
		<-answered
	}
	c.RestartStandby(t)
	if got, err := n.Replay(t.Context(), "k"); err != nil || got.CallID != "call_1" {
		t.Errorf("with the standby the key brings %+v, %v", got, err)
	}
}

// overlasts kills the standby, so it lacks what meanwhile does, then kills the primary and promotes the standby. The
// watcher started in meanwhile must be notified of a later call, or of unseen changes.
func overlasts(t *testing.T, meanwhile func(c *pgtest.Cluster, n *Namespace, watch func(), heard <-chan store.Change)) {
	t.Helper()
	c := pgtest.Start(t, pgtest.Options{Standby: true})
	stores, spaces := opened(t, c.CreateDatabase(t, "fails"), 1)
	created(t, spaces[0], "sess_0")
	heard := make(chan store.Change, 64)
	stop := func() {}
	c.KillStandby(t)
	meanwhile(c, spaces[0], func() {
		var err error
		if stop, err = stores[0].Watch("", func(x store.Change) {
			if x.CallID != "" || x.Kind == store.ChangedUnseen {
				heard <- x
			}
		}); err != nil {
			t.Fatal(err)
		}
	}, heard)
	defer func() { stop() }()
	c.Kill(t)
	c.RestartStandby(t)
	c.Promote(t)
	commit := func(id string) {
		if err := spaces[0].CommitCall(t.Context(), storetest.NewCommit("sess_0", id, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	commit("call_1")
	for {
		select {
		case x := <-heard:
			if x.CallID == "call_1" || x.CallID == "call_2" {
				return
			}
			if x.Kind == store.ChangedUnseen { // call_1 may be among what is there
				commit("call_2")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the watcher does not hear of a call that was committed after a failover")
		}
	}
}

// waste uses up transaction ids that the standby does not receive.
func waste(t *testing.T, c *pgtest.Cluster) {
	t.Helper()
	c.Exec(t, "fails", `DO $do$ BEGIN FOR i IN 1..50 LOOP
		BEGIN PERFORM pg_current_xact_id(); RAISE EXCEPTION 'back'; EXCEPTION WHEN raise_exception THEN NULL; END;
	END LOOP; RAISE EXCEPTION 'back'; EXCEPTION WHEN raise_exception THEN NULL; END $do$`)
}

// A promoted standby reuses transaction ids that it did not receive. Their changes are reported nonetheless: to
// watchers that began before, and to those that saw a change that was lost because its commit gave up waiting for the
// standby.
func TestWatchersOverlastAFailover(t *testing.T) {
	t.Parallel()
	t.Run("numbers that nothing has", func(t *testing.T) {
		t.Parallel()
		overlasts(t, func(c *pgtest.Cluster, _ *Namespace, watch func(), _ <-chan store.Change) {
			waste(t, c)
			watch()
		})
	})
	t.Run("a change that is lost", func(t *testing.T) {
		t.Parallel()
		overlasts(t, func(c *pgtest.Cluster, n *Namespace, watch func(), heard <-chan store.Change) {
			watch()
			waste(t, c)
			ended := make(chan error, 1)
			go func() { ended <- n.CommitCall(t.Context(), storetest.NewCommit("sess_0", "call_lost", time.Now())) }()
			t.Cleanup(func() { <-ended }) // it is retried until then
			for c.Exec(t, "fails", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
			}
			if x := <-heard; x.CallID != "call_lost" {
				t.Errorf("the watcher hears of %+v", x)
			}
		})
	})
}

// giveUp ends the waits for the standby, once there are any.
func giveUp(t *testing.T, c *pgtest.Cluster) {
	t.Helper()
	for c.Exec(t, "fails", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
	}
}

// Values lost with a primary have no effect. Its numbers are reused, even those of sequences, but whoever has seen them
// is neither in another namespace nor the owner of another session, and waits for none of them.
func TestLostNumbers(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Standby: true})
	stores, spaces := opened(t, c.CreateDatabase(t, "fails"), 2)
	created(t, spaces[0], "sess_0")
	for _, id := range []string{"a", "b"} {
		if err := stores[0].Join(t.Context(), store.Replica{ID: id, Address: id}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	c.KillStandby(t)
	// the next one is written to the log
	c.Exec(t, "fails", "SELECT max(nextval(pg_get_serial_sequence('namespaces', 'id'))) FROM generate_series(1, 32)")
	owns := make(chan store.Ownership, 1)
	go func() {
		// the wait for the standby is given up, or the retry sees it
		o, _ := spaces[0].Own(t.Context(), "sess_0", "a")
		owns <- o
	}()
	giveUp(t, c)
	<-owns
	lostOwner, err := spaces[0].Own(t.Context(), "sess_0", "a")
	if err != nil {
		t.Fatal(err)
	}
	lost, err := stores[0].Space("lost")
	if err != nil {
		t.Fatal(err)
	}
	tries, enough := context.WithCancel(t.Context())
	defer enough()
	go func() { // it is retried until the context ends
		_ = lost.CreateSession(tries, agent.Session{ID: "sess_lost", Role: "calculator", CreatedAt: time.Now(),
			UpdatedAt: time.Now()}, nil)
	}()
	giveUp(t, c)
	lostID := none
	for lostID == none {
		if lostID, err = lost.key(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	enough()
	waste(t, c)
	go func() { _ = spaces[0].CommitCall(t.Context(), storetest.NewCommit("sess_0", "call_lost", time.Now())) }()
	giveUp(t, c)
	for c.Exec(t, "fails", "SELECT count(*) FROM calls") == "0" {
	}
	stop, err := stores[0].Watch("", func(store.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c.Kill(t)
	c.RestartStandby(t)
	c.Promote(t)

	for _, n := range spaces { // after such a long outage reads may be rejected at once
		for _, _, err := n.Policy(t.Context()); err != nil; _, _, err = n.Policy(t.Context()) {
			if !errors.Is(err, store.ErrAway) {
				t.Fatal(err)
			}
		}
	}
	read, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	if _, err := spaces[0].ListCalls(read, store.CallQuery{Stable: true}); err != nil {
		t.Errorf("the stable part of the log: %v", err)
	}
	if o, err := spaces[1].Own(t.Context(), "sess_0", "b"); err != nil || o.Replica == "b" &&
		o.Epoch == lostOwner.Epoch {
		t.Errorf("a owned the session as %+v, which is lost, and b owns it as %+v, %v", lostOwner, o, err)
	}
	fenced := storetest.NewCommit("sess_0", "call_a", time.Now())
	if fenced.Fence = lostOwner.Epoch; !errors.Is(spaces[0].CommitCall(t.Context(), fenced), store.ErrFenced) {
		t.Error("a commits what b owns")
	}
	beta, err := stores[1].Space("beta")
	if err != nil {
		t.Fatal(err)
	}
	created(t, beta, "sess_of_beta")
	if id := beta.id.Load(); id == lostID {
		t.Errorf("two namespaces have the id %d, one of which is lost", id)
	}
}

// A change that would create its namespace and is not committed leaves it neither existing nor deleted.
func TestNotMadeByAChangeThatFails(t *testing.T) {
	t.Parallel()
	stores, _ := opened(t, pgtest.NewDatabase(t), 1)
	n, err := stores[0].Space("acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.SetPolicy(t.Context(), agent.DefaultPolicy(), 7, nil); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("a policy of another revision: %v", err)
	}
	created(t, n, "sess_0")
}
