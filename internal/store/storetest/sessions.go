package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func sessions(t *testing.T, r *rig) {
	want := agent.Session{ID: "sess_1", Role: "calculator", Model: "m", Contract: &agent.Contract{Purpose: "sums"}, Debug: true,
		Metadata: map[string]string{"a": "b"}, Owner: "ann", CreatedAt: r.clock.now(), UpdatedAt: r.clock.now(), Revision: 1}
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

func sessionsPage(t *testing.T, r *rig) {
	for i := range 5 {
		r.session(fmt.Sprintf("sess_%d", i))
	}
	r.ok(r.s.DeleteSession(r.ctx, "sess_2"))
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

func contexts(t *testing.T, r *rig) {
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: "sess_1"}, map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")}))
	got, err := r.s.ChangeContext(r.ctx, "sess_1", agent.ContextChange{Set: map[string]json.RawMessage{"c": json.RawMessage(`{"x":[1]}`)}, Delete: []string{"a"}})
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
		got, err := r.s.Context(r.ctx, "sess_1")
		r.ok(err)
		if !sameJSON(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	if _, err := r.s.Context(r.ctx, "sess_2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown session: got %v, want ErrNotFound", err)
	}
	if _, err := r.s.ChangeContext(r.ctx, "sess_2", agent.ContextChange{Delete: []string{"x"}}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("change of an unknown session: got %v, want ErrNotFound", err)
	}
}

func contextsAreTheCallers(t *testing.T, r *rig) {
	r.session("sess_1")
	mine, err := r.s.ChangeContext(r.ctx, "sess_1", agent.ContextChange{Set: map[string]json.RawMessage{"a": json.RawMessage("1")}})
	r.ok(err)
	maps.Copy(mine, map[string]json.RawMessage{"a": json.RawMessage("9"), "b": json.RawMessage("9")})
	got, err := r.s.Context(r.ctx, "sess_1")
	r.ok(err)
	if !sameJSON(got, map[string]int{"a": 1}) {
		t.Errorf("a caller's change went into the store: %s", got)
	}
}

func historyPages(t *testing.T, r *rig) {
	r.session("sess_1")
	for range 10 {
		r.commit(r.call("sess_1"))
	}
	seqs := func(q store.HistoryQuery) (out []int, next int) {
		page, err := r.s.History(r.ctx, "sess_1", q)
		r.ok(err)
		if page.Size != 10 {
			t.Errorf("got size %d, want 10", page.Size)
		}
		for _, raw := range page.Records {
			var rec agent.Record
			r.ok(json.Unmarshal(raw, &rec))
			out = append(out, rec.Seq)
		}
		return out, page.Next
	}
	r.everyWay(func() {
		for _, c := range []struct {
			q    store.HistoryQuery
			want string
			next int
		}{
			{store.HistoryQuery{}, "[1 2 3 4 5 6 7 8 9 10]", 0},
			{store.HistoryQuery{Limit: 3}, "[1 2 3]", 3},
			{store.HistoryQuery{Limit: 3, After: 3}, "[4 5 6]", 6},
			{store.HistoryQuery{Limit: 3, After: 7}, "[8 9 10]", 0},
			{store.HistoryQuery{Limit: 3, After: 10}, "[]", 0},
			{store.HistoryQuery{Limit: 3, After: 99}, "[]", 0},
			{store.HistoryQuery{Limit: 3, Desc: true}, "[10 9 8]", 8},
			{store.HistoryQuery{Limit: 3, Desc: true, After: 8}, "[7 6 5]", 5},
			{store.HistoryQuery{Limit: 3, Desc: true, After: 4}, "[3 2 1]", 0},
			{store.HistoryQuery{Limit: 3, Desc: true, After: 1}, "[]", 0},
			{store.HistoryQuery{Limit: 3, Desc: true, After: 99}, "[10 9 8]", 8},
		} {
			if got, next := seqs(c.q); fmt.Sprint(got) != c.want || next != c.next {
				t.Errorf("%+v: got %v next %d, want %s next %d", c.q, got, next, c.want, c.next)
			}
		}
	})
}

func historyFilters(t *testing.T, r *rig) {
	r.session("sess_1")
	start := r.clock.now()
	for i := range 12 {
		c := r.call("sess_1")
		c.Record.Depth = i % 2
		if i%3 == 0 {
			c.Record.MethodName = "sub"
		}
		if i%4 == 0 {
			c.Record.OutcomeSummary.Status = agent.StatusError
			c.Record.Role = "ö<t>h\"er"
		}
		r.commit(c)
		r.clock.advance(time.Minute)
	}
	seqs := func(q store.HistoryQuery) (out []int) {
		for {
			page, err := r.s.History(r.ctx, "sess_1", q)
			r.ok(err)
			for _, raw := range page.Records {
				var rec agent.Record
				r.ok(json.Unmarshal(raw, &rec))
				out = append(out, rec.Seq)
			}
			if page.Next == 0 {
				return out
			}
			q.After = page.Next
		}
	}
	r.everyWay(func() {
		for _, c := range []struct {
			q    store.HistoryQuery
			want string
		}{
			{store.HistoryQuery{Depth0: true}, "[1 3 5 7 9 11]"},
			{store.HistoryQuery{Method: "sub"}, "[1 4 7 10]"},
			{store.HistoryQuery{Method: "sub", Desc: true, Limit: 1}, "[10 7 4 1]"},
			{store.HistoryQuery{Status: "error"}, "[1 5 9]"},
			{store.HistoryQuery{Role: "ö<t>h\"er", Method: "sub"}, "[1]"},
			{store.HistoryQuery{Role: "calculator", Method: "sub", Depth0: true, Desc: true, Limit: 1}, "[7]"},
			{store.HistoryQuery{Role: "calculator", Method: "mul", Depth0: true, Desc: true, Limit: 1}, "[]"},
			{store.HistoryQuery{Since: start.Add(10 * time.Minute)}, "[11 12]"},
			{store.HistoryQuery{Since: start.Add(10 * time.Minute), Desc: true, Limit: 1}, "[12 11]"},
			{store.HistoryQuery{Until: start.Add(2 * time.Minute)}, "[1 2]"},
			{store.HistoryQuery{Until: start.Add(2 * time.Minute), Desc: true}, "[2 1]"},
			{store.HistoryQuery{Method: "sub", Scan: 2}, "[1 4 7 10]"},
			{store.HistoryQuery{Method: "sub", Scan: 1, Desc: true}, "[10 7 4 1]"},
			{store.HistoryQuery{Method: "never", Scan: 5}, "[]"},
			{store.HistoryQuery{Scan: 5, Limit: 3}, "[1 2 3 4 5 6 7 8 9 10 11 12]"},
			{store.HistoryQuery{Bytes: 1}, "[1 2 3 4 5 6 7 8 9 10 11 12]"},
			{store.HistoryQuery{Bytes: 2000, Method: "sub", Desc: true}, "[10 7 4 1]"},
		} {
			if got := seqs(c.q); fmt.Sprint(got) != c.want {
				t.Errorf("%+v: got %v, want %s", c.q, got, c.want)
			}
		}
	})
}

// A page ends where its bytes end, but for one record that alone has more of them.
func historyBytes(t *testing.T, r *rig) {
	r.session("sess_1")
	for _, size := range []int{1000, 1000, 5000, 1000} {
		c := r.call("sess_1")
		c.Record.Args = []json.RawMessage{json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
		r.commit(c)
	}
	r.everyWay(func() {
		for _, c := range []struct {
			q    store.HistoryQuery
			want []int // records in a page
		}{
			{store.HistoryQuery{Bytes: 4000}, []int{2, 1, 1}},
			{store.HistoryQuery{Bytes: 4000, Desc: true}, []int{1, 1, 2}},
			{store.HistoryQuery{Bytes: 4000, Limit: 1}, []int{1, 1, 1, 1}},
			{store.HistoryQuery{Bytes: 100_000}, []int{4}},
		} {
			q, got := c.q, []int{}
			for more := true; more; more = q.After > 0 {
				page, err := r.s.History(r.ctx, "sess_1", q)
				r.ok(err)
				got = append(got, len(page.Records))
				q.After = page.Next
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: pages of %v records, want %v", c.q, got, c.want)
			}
		}
	})
}

// A page that looked at enough records ends with the place to go on, found or not: no page costs more than that.
func historyLooks(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 12 {
		c := r.call("sess_1")
		if i == 5 {
			c.Record.MethodName = "rare"
		}
		r.commit(c)
	}
	r.everyWay(func() {
		for _, c := range []struct {
			q     store.HistoryQuery
			found int
			more  bool
		}{
			{store.HistoryQuery{Method: "rare", Scan: 5}, 0, true},
			{store.HistoryQuery{Method: "rare", Scan: 6}, 1, true},
			{store.HistoryQuery{Method: "rare", Scan: 7, After: 4}, 1, true},
			{store.HistoryQuery{Method: "rare", Scan: 12}, 1, false},
			{store.HistoryQuery{Method: "rare", Scan: 6, Desc: true}, 0, true},
			{store.HistoryQuery{Method: "rare", Scan: 7, Desc: true}, 1, true},
			{store.HistoryQuery{Method: "rare", Scan: 6, Desc: true, After: 7}, 1, false},
		} {
			page, err := r.s.History(r.ctx, "sess_1", c.q)
			r.ok(err)
			if len(page.Records) != c.found || (page.Next > 0) != c.more {
				t.Errorf("%+v: %d records, next %d; want %d, more: %v", c.q, len(page.Records), page.Next, c.found, c.more)
			}
		}
	})
}

// Timestamps are the starts of calls and records are in the order of their ends, up to two hours later: a search by time finds
// every record all the same, in both directions.
func historyTimes(t *testing.T, r *rig) {
	r.session("sess_1")
	start := r.clock.now()
	late := []time.Duration{0, 119, 3, 61, 0, 118, 7}
	var began []time.Time
	for i := range 40 {
		r.clock.advance(13 * time.Minute)
		c := r.call("sess_1")
		at := r.clock.now().Add(-late[i%len(late)] * time.Minute)
		began = append(began, at)
		c.Record.Timestamp = agent.FormatTime(at)
		r.commit(c)
	}
	wanted := func(since, until time.Time, desc bool) string {
		out := []int{}
		for i, at := range began {
			at = at.Truncate(time.Millisecond)
			if (since.IsZero() || !at.Before(since)) && (until.IsZero() || at.Before(until)) {
				out = append(out, i+1)
			}
		}
		if desc {
			slices.Reverse(out)
		}
		return fmt.Sprint(out)
	}
	r.everyWay(func() {
		for hours := range 12 {
			for _, span := range []int{0, 1, 3} {
				for _, desc := range []bool{false, true} {
					q := store.HistoryQuery{Since: start.Add(time.Duration(hours-1) * time.Hour), Limit: 7, Desc: desc}
					if span > 0 {
						q.Until = q.Since.Add(time.Duration(span) * time.Hour)
					}
					if hours == 0 {
						q.Since = time.Time{}
					}
					want, got := wanted(q.Since, q.Until, desc), []int{}
					for {
						page, err := r.s.History(r.ctx, "sess_1", q)
						r.ok(err)
						for _, raw := range page.Records {
							var rec agent.Record
							r.ok(json.Unmarshal(raw, &rec))
							got = append(got, rec.Seq)
						}
						if page.Next == 0 {
							break
						}
						q.After = page.Next
					}
					if fmt.Sprint(got) != want {
						t.Errorf("%+v: got %v, want %s", q, got, want)
					}
				}
			}
		}
	})
}

func historyKeepsUnknownKeys(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.call("sess_1")
	c.Record.Extra = map[string]json.RawMessage{"from_the_future": json.RawMessage(`{"a":[1,2]}`)}
	c.Record.Args = []json.RawMessage{json.RawMessage("{\n \"spread\": [1,\n2]}"), json.RawMessage(`"\ud800 \u0000 <ü>"`)}
	r.commit(c)
	r.everyWay(func() {
		if got := r.records("sess_1"); !sameJSON(got[0], c.Record) {
			t.Errorf("got %+v, want %+v", got[0], c.Record)
		}
	})
}

// Deleting a session erases its arguments and values everywhere.
func deleteErases(t *testing.T, r *rig) {
	for _, id := range []string{"sess_keep", "sess_gone"} {
		r.session(id)
		c := Forged(r.call(id), "package tool // "+id)
		c.Record.MethodName, c.Log.Method, c.Artifacts[0].MethodName = "both", "both", "both"
		c.Artifacts[0].Generation.ID = "gen-" + map[string]string{"sess_keep": "1", "sess_gone": "2"}[id]
		c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: id, Args: c.Record.Args, Kwargs: c.Record.Kwargs, Value: c.Outcome.Value}
		c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: id, Role: "calculator", MethodName: "both"}
		c.Content = &store.Content{Ref: "content:" + id, Value: json.RawMessage(`"` + id + ` content"`)}
		c.Key = &store.Idempotent{Key: "key-" + id, CallID: c.Record.CallID}
		c.Reply = json.RawMessage(`{"reply":"` + id + `"}`)
		r.commit(c)
	}
	r.ok(r.s.DeleteSession(r.ctx, "sess_gone"))
	if err := r.s.DeleteSession(r.ctx, "sess_gone"); !errors.Is(err, store.ErrNotFound) {
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
		if err == nil && (gone.Outcome != nil || gone.Effects != nil || len(gone.Log.Args) > 0 || len(gone.Log.Kwargs) > 4) {
			t.Errorf("call log still has %+v", gone)
		}
		kept, err := r.s.Call(r.ctx, "call_000001")
		r.ok(err)
		if kept.Outcome == nil || kept.Effects == nil || len(kept.Log.Args) != 1 {
			t.Errorf("the other session's call lost something: %+v", kept)
		}
		a, err := r.s.Artifact(r.ctx, "calculator", "both")
		r.ok(err)
		fixtures := ""
		for _, g := range a.Generations {
			for _, f := range g.Fixtures {
				fixtures += f.SessionID + " "
			}
		}
		if fixtures != "sess_keep " || fmt.Sprint(a.Scorecard.Sessions) != "[]" { // the scorecard began anew with the deleted session's generation
			t.Errorf("artifact keeps fixtures of %sand sessions %v", fixtures, a.Scorecard.Sessions)
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

func expire(t *testing.T, r *rig) {
	for i := range 4 {
		r.session(fmt.Sprintf("sess_%d", i))
		r.clock.advance(24 * time.Hour)
	}
	r.commit(r.call("sess_0")) // used again
	r.clock.advance(time.Hour)
	p := agent.DefaultPolicy()
	p.Retention.SessionDays = 2
	r.ok(r.s.SetPolicy(r.ctx, p, nil))
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
	r.ok(r.s.SetPolicy(r.ctx, p, nil))
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
