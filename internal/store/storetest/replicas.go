package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// replicas checks that a replica is listed while it is alive. Once its time is over it cannot renew, and another
// replica may use its id.
func replicas(t *testing.T, r *rig) {
	other, _ := r.another()
	a := store.Replica{ID: "a", Address: "127.0.0.1:1", Version: "1"}
	r.ok(r.store.Join(r.ctx, a, time.Minute))
	r.ok(other.Join(r.ctx, store.Replica{ID: "b", Address: "127.0.0.1:2"}, time.Hour))
	if err := other.Join(r.ctx, a, time.Minute); !errors.Is(err, store.ErrExists) {
		t.Errorf("a second one of that id: got %v, want ErrExists", err)
	}
	a.SessionsOwned, a.CallsInFlight, a.ForwardedIn, a.ForwardedOut = 1, 2, 3, 4
	r.ok(r.store.Renew(r.ctx, a, time.Minute))
	list, err := other.ListReplicas(r.ctx)
	r.ok(err)
	if len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" || list[0].Address != a.Address ||
		list[0].Version != "1" || list[0].SessionsOwned != 1 ||
		list[0].CallsInFlight != 2 || list[0].ForwardedIn != 3 || list[0].ForwardedOut != 4 ||
		list[0].ExpiresAt.Sub(list[0].StartedAt) < time.Minute {
		t.Errorf("got %+v, want a with its figures, and b", list)
	}
	r.elapse(2 * time.Minute)
	if err := r.store.Renew(r.ctx, a, time.Minute); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renewed when its time was over: got %v, want ErrFenced", err)
	}
	list, err = r.store.ListReplicas(r.ctx)
	r.ok(err)
	if len(list) != 1 || list[0].ID != "b" {
		t.Errorf("got %+v, want b alone", list)
	}
	r.ok(other.Join(r.ctx, a, time.Minute))
	r.ok(other.Leave(r.ctx, "a"))
	r.ok(other.Leave(r.ctx, "a"))
	r.ok(other.Leave(r.ctx, "b"))
	if list, err = r.store.ListReplicas(r.ctx); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v, want none", list, err)
	}
}

// joined adds replicas that live for a minute.
func (r *rig) joined(ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.ok(r.store.Join(r.ctx, store.Replica{ID: id, Address: "address of " + id}, time.Minute))
	}
}

// own takes the session for the replica, and checks that want owns it now.
func (r *rig) own(n store.Namespace, session, replica, want string) store.Ownership {
	r.Helper()
	o, err := n.Own(r.ctx, session, replica)
	r.ok(err)
	if o.Replica != want || o.Address != "address of "+want {
		r.Errorf("%s owned by %s: got %+v, want %s", session, replica, o, want)
	}
	return o
}

// ownership checks that one replica owns a session until it gives the session back, leaves, or its time is over, and
// that each change of owner increases the epoch.
func ownership(t *testing.T, r *rig) {
	_, other := r.another()
	r.session("sess_1")
	r.session("sess_2")
	r.joined("a", "b")
	first := r.own(r.s, "sess_1", "a", "a")
	if again := r.own(r.s, "sess_1", "a", "a"); again != first {
		t.Errorf("taken twice: got %+v, want %+v", again, first)
	}
	if seen := r.own(other, "sess_1", "b", "a"); seen != first {
		t.Errorf("seen by another: got %+v, want %+v", seen, first)
	}
	r.own(other, "sess_2", "b", "b")
	if _, err := r.s.Own(r.ctx, "sess_3", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a session that is not there: got %v, want ErrNotFound", err)
	}
	if _, err := r.s.Own(r.ctx, "sess_1", "nobody"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("by a replica that is not there: got %v, want ErrFenced", err)
	}
	r.ok(r.s.Disown(r.ctx, map[string]store.Ownership{"sess_1": first}))
	second := r.own(other, "sess_1", "b", "b")
	r.ok(r.s.Disown(r.ctx, map[string]store.Ownership{"sess_1": first})) // no effect: it is not the owner any more
	r.own(r.s, "sess_1", "a", "b")
	r.ok(r.store.Leave(r.ctx, "b"))
	third := r.own(r.s, "sess_1", "a", "a")
	r.elapse(2 * time.Minute)
	r.joined("c")
	fourth := r.own(other, "sess_1", "c", "c")
	if first.Epoch <= 0 || second.Epoch <= first.Epoch || third.Epoch <= second.Epoch || fourth.Epoch <= third.Epoch {
		t.Errorf("got the epochs %d, %d, %d, %d; want them to grow", first.Epoch, second.Epoch, third.Epoch,
			fourth.Epoch)
	}
	r.ok(r.s.DeleteSession(r.ctx, "sess_1", nil))
	if _, err := r.s.Own(r.ctx, "sess_1", "c"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted session: got %v, want ErrNotFound", err)
	}
	made := agent.Session{ID: "sess_4", CreatedAt: r.clock.now(), UpdatedAt: r.clock.now()}
	if _, err := r.s.CreateOwned(r.ctx, made, nil, "nobody"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("made by a replica that is not there: got %v, want ErrFenced", err)
	}
	fifth, err := r.s.CreateOwned(r.ctx, made, map[string]json.RawMessage{"a": json.RawMessage("1")}, "c")
	if r.ok(err); fifth.Replica != "c" || fifth.Epoch <= fourth.Epoch || r.own(other, "sess_4", "c", "c") != fifth {
		t.Errorf("made by its owner: got %+v", fifth)
	}
	if _, err := r.s.CreateOwned(r.ctx, made, nil, "c"); !errors.Is(err, store.ErrExists) {
		t.Errorf("made twice: got %v, want ErrExists", err)
	}
	if memory, err := other.Context(r.ctx, "sess_4"); err != nil || string(memory["a"]) != "1" {
		t.Errorf("its context: %v, %v", memory, err)
	}
	n := r.in("acme")
	r.ok(n.CreateSession(r.ctx, agent.Session{ID: "sess_2", CreatedAt: r.clock.now(), UpdatedAt: r.clock.now()}, nil))
	r.own(n, "sess_2", "c", "c") // a session in another namespace
}

// yielding checks that an owner without an address, to which requests cannot be forwarded, loses its session to a
// replica that joined later, as after a crash. It never loses it to one that joined earlier, so two replicas cannot
// take it from each other in turn.
func yielding(t *testing.T, r *rig) {
	_, other := r.another()
	r.session("sess_1")
	join := func(id, address string) {
		r.ok(r.store.Join(r.ctx, store.Replica{ID: id, Address: address}, time.Minute))
		r.clock.advance(time.Second)
	}
	owner := func(n store.Namespace, replica, want string) store.Ownership {
		o, err := n.Own(r.ctx, "sess_1", replica)
		if r.ok(err); o.Replica != want {
			t.Errorf("asked by %s: got %+v, want %s", replica, o, want)
		}
		return o
	}
	commit := func(n store.Namespace, o store.Ownership) error {
		c := r.call("sess_1")
		c.Fence = o.Epoch
		return n.CommitCall(r.ctx, c)
	}
	join("first", "")
	join("second", "")
	join("reached", "127.0.0.1:1")
	join("last", "")
	first := owner(r.s, "first", "first")
	r.ok(commit(r.s, first))
	second := owner(other, "second", "second")
	if err := commit(r.s, first); !errors.Is(err, store.ErrFenced) || second.Epoch <= first.Epoch {
		t.Errorf("a call of before: got %v, epoch %d after %d; want ErrFenced", err, second.Epoch, first.Epoch)
	}
	r.ok(commit(other, second))
	owner(r.s, "first", "second")
	owner(r.s, "second", "second")
	owner(other, "reached", "reached")
	owner(r.s, "last", "reached")
	if n := len(r.records("sess_1")); n != 2 {
		t.Errorf("got %d records, want 2", n)
	}
}

// fences checks that a call commits only under the epoch of its owner, and that a rejected one leaves nothing behind.
func fences(t *testing.T, r *rig) {
	_, other := r.another()
	r.session("sess_1")
	r.joined("a", "b")
	first := r.own(r.s, "sess_1", "a", "a")
	under := func(n store.Namespace, o store.Ownership) error {
		c := Forged(r.call("sess_1"), "package tool")
		c.Fence = o.Epoch
		return n.CommitCall(r.ctx, c)
	}
	r.ok(under(r.s, first))
	r.ok(r.s.Disown(r.ctx, map[string]store.Ownership{"sess_1": first}))
	if err := under(r.s, first); !errors.Is(err, store.ErrFenced) {
		t.Errorf("given back: got %v, want ErrFenced", err)
	}
	second := r.own(other, "sess_1", "b", "b")
	if err := under(r.s, first); !errors.Is(err, store.ErrFenced) {
		t.Errorf("another owns it: got %v, want ErrFenced", err)
	}
	r.ok(under(other, second))
	r.elapse(2 * time.Minute)
	r.ok(under(other, second)) // its time is over, but nobody took the session
	r.joined("c")
	third := r.own(r.s, "sess_1", "c", "c")
	if err := under(other, second); !errors.Is(err, store.ErrFenced) {
		t.Errorf("taken from a dead owner: got %v, want ErrFenced", err)
	}
	r.ok(under(r.s, third))
	r.commit(r.call("sess_1")) // without a fence
	patch := func(n store.Namespace, fence int64, value string) error {
		_, err := n.ChangeContext(r.ctx, "sess_1", fence,
			agent.ContextChange{Set: map[string]json.RawMessage{"patched": json.RawMessage(value)}},
			&agent.AuditEntry{ID: "audit_" + value, Actor: "ann", Action: "context.patch", SessionID: "sess_1"})
		return err
	}
	r.ok(patch(r.s, third.Epoch, "1"))
	if err := patch(other, second.Epoch, "2"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a context, under an earlier epoch: got %v, want ErrFenced", err)
	}
	r.everyWay(func() {
		if got := r.records("sess_1"); len(got) != 5 {
			t.Errorf("got %d records, want 5", len(got))
		}
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		if r.ok(err); a.SuccessCount != 4 {
			t.Errorf("got %d successes, want 4", a.SuccessCount)
		}
		memory, err := r.s.Context(r.ctx, "sess_1")
		if r.ok(err); string(memory["patched"]) != "1" {
			t.Errorf("got %s in the context, want 1", memory["patched"])
		}
		if trail, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10}); err != nil || len(trail) != 1 {
			t.Errorf("got %d entries in the audit trail, %v; want 1", len(trail), err)
		}
	})
}

// repeats checks that a repeated commit counts once and returns the same assigned values.
func repeats(t *testing.T, r *rig) {
	r.session("sess_1")
	make := func() *store.CallCommit {
		c := Forged(NewCommit("sess_1", "call_repeated", r.clock.now()), "package tool")
		c.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.now(), Used: 1, Register: &agent.Contract{},
			IfAbsent: true}}
		c.Repeated = true
		return c
	}
	first := r.commit(make()) // as if the first one did not arrive
	r.commit(r.call("sess_1"))
	r.everyWay(func() {
		ordered := false
		again := make()
		again.Fence, again.Ordered = 99, func() { ordered = true }
		r.commit(again)
		if !ordered || again.Record.Seq != 1 || again.Log.ConversationHistorySize != 1 ||
			again.Log.ArtifactSuccessCount != first.Log.ArtifactSuccessCount {
			t.Errorf("got seq %d, size %d, successes %d, ordered %v; want 1, 1, %d, true", again.Record.Seq,
				again.Log.ConversationHistorySize,
				again.Log.ArtifactSuccessCount, ordered, first.Log.ArtifactSuccessCount)
		}
		if got := r.records("sess_1"); len(got) != 2 {
			t.Errorf("got %d records, want 2", len(got))
		}
		list, err := r.s.ListCalls(r.ctx, store.CallQuery{})
		r.ok(err)
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		tool, err := r.s.Tool(r.ctx, "calculator")
		r.ok(err)
		if len(list) != 2 || a.SuccessCount != 1 || a.Sequence != 1 || tool.UsageCount != 0 && tool.UsageCount != 1 {
			t.Errorf("got %d calls, %d successes, sequence %d, %d uses; want 2, 1, 1, at most 1", len(list),
				a.SuccessCount, a.Sequence, tool.UsageCount)
		}
	})
}

// repeatsConcurrently checks that of concurrent commits of one call only one counts.
func repeatsConcurrently(t *testing.T, r *rig) {
	_, other := r.another()
	r.session("sess_1")
	var group sync.WaitGroup
	errs := make(chan error, 32)
	for i := range 32 {
		n := []store.Namespace{r.s, other}[i%2]
		group.Go(func() {
			c := Forged(NewCommit("sess_1", fmt.Sprint("call_", i/8), r.clock.now()), "package tool")
			c.Repeated = true
			errs <- n.CommitCall(r.ctx, c)
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		r.ok(err)
	}
	r.everyWay(func() {
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if n := len(r.records("sess_1")); n != 4 || a.SuccessCount != 4 {
			t.Errorf("got %d records and %d successes, want 4 of each", n, a.SuccessCount)
		}
	})
}

// adoptions checks that a generation is adopted only if the artifact is in the state that was decided on; otherwise the
// whole commit leaves nothing behind. Counters do not matter for that.
func adoptions(t *testing.T, r *rig) {
	r.session("sess_1")
	adopt := func(decided int64, id string) error {
		c := r.call("sess_1")
		c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(),
			Decided: &decided, Result: agent.ClassOK,
			Generation: NewGeneration(id, "package tool // "+id, r.clock.now())}}
		return r.s.CommitCall(r.ctx, c)
	}
	revision := func() int64 {
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		return a.AdoptionRevision()
	}
	if err := adopt(1, "gen-1"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("of no artifact: got %v, want ErrConflict", err)
	}
	r.ok(adopt(0, "gen-1"))
	was := revision()
	if err := adopt(0, "gen-1"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("decided when there was none: got %v, want ErrConflict", err)
	}
	c := r.call("sess_1")
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(),
		Result: agent.ClassOK}}
	r.commit(c)
	r.ok(adopt(was, "gen-2"))
	was = revision()
	pinned := true
	_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, agent.ArtifactChange{Role: "calculator", MethodName: "add",
		At: r.clock.now(), Pin: &pinned}, nil)
	r.ok(err)
	if err := adopt(was, "gen-3"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("decided before it was pinned: got %v, want ErrConflict", err)
	}
	r.everyWay(func() {
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if n := len(r.records("sess_1")); n != 3 || a.CurrentID != "gen-2" || a.SuccessCount != 3 || a.Sequence != 2 ||
			a.AdoptionRevision() <= was {
			t.Errorf("got %d records, %s, %d successes, sequence %d, adoption revision %d", n, a.CurrentID,
				a.SuccessCount, a.Sequence, a.AdoptionRevision())
		}
	})
}

// adoptionRaces checks that only one of several concurrent adoptions based on the same state succeeds.
func adoptionRaces(t *testing.T, r *rig) {
	_, other := r.another()
	r.session("sess_1")
	r.forge("calculator", "add", "package tool")
	a, err := r.s.Artifact(r.ctx, "calculator", "add")
	r.ok(err)
	decided := a.AdoptionRevision()
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		n := []store.Namespace{r.s, other}[i%2]
		group.Go(func() {
			c := NewCommit("sess_1", fmt.Sprint("call_", i), r.clock.now())
			c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(),
				Decided:    &decided,
				Generation: NewGeneration("gen-2", fmt.Sprint("package tool // ", i), r.clock.now())}}
			errs <- n.CommitCall(r.ctx, c)
		})
	}
	group.Wait()
	close(errs)
	made := 0
	for err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, store.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	a, err = r.s.Artifact(r.ctx, "calculator", "add")
	r.ok(err)
	if made != 1 || len(a.Generations) != 2 || len(r.records("sess_1")) != 1 {
		t.Errorf("got %d adoptions, %d generations, %d records; want 1, 2, 1", made, len(a.Generations),
			len(r.records("sess_1")))
	}
}
