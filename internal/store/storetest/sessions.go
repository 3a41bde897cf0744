package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// sessions checks that a session can be read back, and that odd ids are not found.
func sessions(t *testing.T, r *rig) {
	want := agent.Session{ID: "sess_1", Role: "calculator", Model: "m", Contract: &agent.Contract{Purpose: "sums"},
		Debug:    true,
		Metadata: map[string]string{"a": "b"}, Owner: "ann", CreatedAt: r.clock.now(), UpdatedAt: r.clock.now(),
		Revision: 1}
	r.ok(r.s.CreateSession(r.ctx, want, map[string]json.RawMessage{"k": json.RawMessage("1")}))
	if err := r.s.CreateSession(r.ctx, want, nil); !errors.Is(err, store.ErrExists) {
		t.Errorf("creating it twice: got %v, want ErrExists", err)
	}
	r.everyWay(func() {
		got, err := r.s.Session(r.ctx, "sess_1")
		r.ok(err)
		if !sameJSON(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := r.s.Session(r.ctx, "sess_2"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown session: got %v, want ErrNotFound", err)
		}
		for _, id := range []string{"", ".", "..", "../sess_1", "a/b", "a\x00b"} {
			if _, err := r.s.Session(r.ctx, id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("session %q: got %v, want ErrNotFound", id, err)
			}
		}
	})
}

// sessionsPage checks the pages of the list of sessions, newest first.
func sessionsPage(t *testing.T, r *rig) {
	for i := range 5 {
		r.session(fmt.Sprintf("sess_%d", i))
	}
	r.ok(r.s.DeleteSession(r.ctx, "sess_2", nil))
	r.everyWay(func() {
		var got []string
		after := ""
		for {
			page, err := r.s.ListSessions(r.ctx, after, 2)
			r.ok(err)
			if len(page) == 0 {
				break
			}
			for _, s := range page {
				got = append(got, s.ID)
			}
			after = page[len(page)-1].ID
		}
		if fmt.Sprint(got) != "[sess_4 sess_3 sess_1 sess_0]" {
			t.Errorf("got %v, want the four newest first", got)
		}
	})
}

// contexts checks that changes of a context, by itself or with a call, persist.
func contexts(t *testing.T, r *rig) {
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: "sess_1"},
		map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")}))
	got, err := r.s.ChangeContext(r.ctx, "sess_1", 0,
		agent.ContextChange{Set: map[string]json.RawMessage{"c": json.RawMessage(`{"x":[1]}`)}, Delete: []string{"a"}},
		nil)
	r.ok(err)
	want := map[string]json.RawMessage{"b": json.RawMessage("2"), "c": json.RawMessage(`{"x":[1]}`)}
	if !sameJSON(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	c := r.call("sess_1")
	c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"b": json.RawMessage("3")}}
	r.commit(c)
	want["b"] = json.RawMessage("3")
	r.everyWay(func() {
		if s, err := r.s.Session(r.ctx, "sess_1"); err != nil || s.Revision != 3 {
			t.Errorf("got revision %d, %v after a change and a call, want 3", s.Revision, err)
		}
		got, err := r.s.Context(r.ctx, "sess_1")
		r.ok(err)
		if !sameJSON(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	if _, err := r.s.Context(r.ctx, "sess_2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown session: got %v, want ErrNotFound", err)
	}
	if _, err := r.s.ChangeContext(r.ctx, "sess_2", 0, agent.ContextChange{Delete: []string{"x"}},
		nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("change of an unknown session: got %v, want ErrNotFound", err)
	}
}

// contextsAreTheCallers checks that callers may change the returned map without changing the store.
func contextsAreTheCallers(t *testing.T, r *rig) {
	r.session("sess_1")
	mine, err := r.s.ChangeContext(r.ctx, "sess_1", 0,
		agent.ContextChange{Set: map[string]json.RawMessage{"a": json.RawMessage("1")}}, nil)
	r.ok(err)
	maps.Copy(mine, map[string]json.RawMessage{"a": json.RawMessage("9"), "b": json.RawMessage("9")})
	got, err := r.s.Context(r.ctx, "sess_1")
	r.ok(err)
	if !sameJSON(got, map[string]int{"a": 1}) {
		t.Errorf("a caller's change went into the store: %s", got)
	}
}

// deleteErases checks that deleting a session erases its arguments and values everywhere.
func deleteErases(t *testing.T, r *rig) {
	for _, id := range []string{"sess_keep", "sess_gone"} {
		r.session(id)
		c := Forged(r.call(id), "package tool // "+id)
		c.Record.MethodName, c.Log.Method, c.Artifacts[0].MethodName = "both", "both", "both"
		c.Artifacts[0].Generation.ID = "gen-" + map[string]string{"sess_keep": "1", "sess_gone": "2"}[id]
		c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: id, Args: c.Record.Args,
			Kwargs: c.Record.Kwargs, Value: c.Outcome.Value}
		// a second artifact, which is archived when the session is deleted
		c.Artifacts = append(c.Artifacts, c.Artifacts[0])
		c.Artifacts[1].MethodName = "archived"
		c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: id, Role: "calculator", MethodName: "both"}
		c.Content = &store.Content{Ref: "content:" + id, Value: json.RawMessage(`"` + id + ` content"`)}
		c.Key = &store.Idempotent{Key: "key-" + id, CallID: c.Record.CallID}
		c.Reply = json.RawMessage(`{"reply":"` + id + `"}`)
		r.commit(c)
	}
	r.ok(r.s.Archive(r.ctx, []store.Target{{Role: "calculator", Method: "archived"}}, agent.AuditEntry{ID: "audit_1"}))
	r.ok(r.s.DeleteSession(r.ctx, "sess_gone", nil))
	r.ok(r.s.Restore(r.ctx, []store.Target{{Role: "calculator", Method: "archived"}}, agent.AuditEntry{ID: "audit_2"}))
	if err := r.s.DeleteSession(r.ctx, "sess_gone", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleting it twice: got %v, want ErrNotFound", err)
	}
	r.everyWay(func() {
		if _, err := r.s.Session(r.ctx, "sess_gone"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("session: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.History(r.ctx, "sess_gone", store.HistoryQuery{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("history: got %v, want ErrNotFound", err)
		}
		gone, err := r.s.Call(r.ctx, "call_000002")
		if err == nil && (gone.Outcome != nil || gone.Effects != nil || len(gone.Log.Args) > 0 ||
			len(gone.Log.Kwargs) > 4) {
			t.Errorf("call log still has %+v", gone)
		}
		kept, err := r.s.Call(r.ctx, "call_000001")
		r.ok(err)
		if kept.Outcome == nil || kept.Effects == nil || len(kept.Log.Args) != 1 {
			t.Errorf("the other session's call lost something: %+v", kept)
		}
		for _, method := range []string{"both", "archived"} {
			a, err := r.s.Artifact(r.ctx, "calculator", method)
			r.ok(err)
			fixtures := ""
			for _, g := range a.Generations {
				for _, f := range g.Fixtures {
					fixtures += f.SessionID + " "
				}
			}
			// the scorecard started again with the deleted session's generation
			if fixtures != "sess_keep " || fmt.Sprint(a.Scorecard.Sessions) != "[]" {
				t.Errorf("%s keeps fixtures of %sand sessions %v", method, fixtures, a.Scorecard.Sessions)
			}
		}
		events, err := r.s.Patterns(r.ctx, "calculator")
		r.ok(err)
		if len(events) != 1 || events[0].SessionID != "sess_keep" {
			t.Errorf("got patterns %+v", events)
		}
		if _, err := r.s.Content(r.ctx, "content:sess_gone"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("content: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Content(r.ctx, "content:sess_keep"); err != nil {
			t.Errorf("the other session's content: %v", err)
		}
		if _, err := r.s.Replay(r.ctx, "key-sess_gone"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("reply: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Replay(r.ctx, "key-sess_keep"); err != nil {
			t.Errorf("the other session's reply: %v", err)
		}
	})
}

// expire checks the retention by age since the last use, and by the number of sessions.
func expire(t *testing.T, r *rig) {
	for i := range 4 {
		r.session(fmt.Sprintf("sess_%d", i))
		r.clock.advance(24 * time.Hour)
	}
	r.commit(r.call("sess_0")) // uses the oldest one again
	r.clock.advance(time.Hour)
	p := agent.DefaultPolicy()
	p.Retention.SessionDays = 3
	r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, nil))
	if n, err := r.s.Expire(r.ctx, r.clock.now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("not older than three days: got %d, %v, want none gone", n, err)
	}
	p.Retention.SessionDays, p.Retention.MaxSessions = 2, 4
	r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, nil))
	n, err := r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	names := func() (out []string) {
		list, err := r.s.ListSessions(r.ctx, "", 10)
		r.ok(err)
		for _, s := range list {
			out = append(out, s.ID)
		}
		return out
	}
	if got := fmt.Sprint(n, names()); got != "2 [sess_3 sess_0]" {
		t.Errorf("by age: got %s, want 2 [sess_3 sess_0]", got)
	}
	p.Retention.SessionDays, p.Retention.MaxSessions = 0, 1
	r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, nil))
	n, err = r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	if got := fmt.Sprint(n, names()); got != "1 [sess_3]" {
		t.Errorf("by count: got %s, want 1 [sess_3]", got)
	}
	r.everyWay(func() {
		if got := fmt.Sprint(names()); got != "[sess_3]" {
			t.Errorf("got %s, want [sess_3]", got)
		}
	})
}

// expireEphemeral checks that ephemeral sessions are deleted ValueHours after their last use. Others stay, and 0 keeps
// both.
func expireEphemeral(t *testing.T, r *rig) {
	old, used, plain := ids.NewSession(true), ids.NewSession(true), ids.NewSession(false)
	for _, id := range []string{old, used, plain} {
		r.session(id)
	}
	r.clock.advance(3 * time.Hour)
	young := ids.NewSession(true)
	r.session(young)
	r.commit(r.call(used))
	p := agent.DefaultPolicy()
	for _, step := range []struct {
		hours, gone int
		left        []string
	}{{0, 0, []string{young, plain, used, old}}, {4, 0, []string{young, plain, used, old}},
		{2, 1, []string{young, plain, used}}} {
		p.Retention.ValueHours = step.hours
		r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, nil))
		n, err := r.s.Expire(r.ctx, r.clock.now())
		r.ok(err)
		list, err := r.s.ListSessions(r.ctx, "", 10)
		r.ok(err)
		var left []string
		for _, s := range list {
			left = append(left, s.ID)
		}
		if n != step.gone || !slices.Equal(left, step.left) {
			t.Errorf("value_hours %d: %d gone, %v left; want %d, %v", step.hours, n, left, step.gone, step.left)
		}
	}
}
