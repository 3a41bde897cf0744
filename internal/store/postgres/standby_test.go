//go:build postgres

package postgres

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A commit whose wait for the standby was given up is there for all to see, and would be lost with the primary: neither the same commit again
// nor its idempotency key is answered before the standby has it.
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
