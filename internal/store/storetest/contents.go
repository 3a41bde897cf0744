package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// valuesExpire checks that values and their previews expire with the policy's ValueHours, even before Expire runs.
func valuesExpire(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.commit(r.call("sess_1"))
	r.clock.advance(24*time.Hour - time.Second)
	if got, err := r.s.Call(r.ctx, c.Record.CallID); err != nil || got.Outcome == nil || got.Effects == nil {
		t.Errorf("within 24 hours: got %+v, %v", got, err)
	}
	previews := func() map[string]string {
		t.Helper()
		got, err := r.s.Previews(r.ctx, []string{"call_of_nobody", c.Record.CallID})
		r.ok(err)
		return got
	}
	value, err := json.Marshal(c.Outcome)
	r.ok(err)
	if diff := cmp.Diff(map[string]string{c.Record.CallID: store.Preview(value)},
		previews()); diff != "" || store.Preview(value) == "" {
		t.Errorf("previews within 24 hours (-want +got):\n%s", diff)
	}
	p := agent.DefaultPolicy()
	p.Retention.ValueHours = 0
	r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, nil))
	r.clock.advance(time.Second)
	if got, err := r.s.Call(r.ctx, c.Record.CallID); err != nil || got.Outcome == nil {
		t.Errorf("kept for as long as the call: got %+v, %v", got, err)
	}
	r.ok(r.s.SetPolicy(r.ctx, agent.DefaultPolicy(), store.AnyRevision, nil))
	gone := func() {
		t.Helper()
		got, err := r.s.Call(r.ctx, c.Record.CallID)
		r.ok(err)
		if got.Outcome != nil || got.Effects != nil {
			t.Errorf("got outcome %+v and effects %s after 24 hours, want none", got.Outcome, got.Effects)
		}
		if got := previews(); len(got) > 0 {
			t.Errorf("previews after 24 hours: %v", got)
		}
	}
	gone()
	r.clock.advance(time.Hour)
	_, err = r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	r.everyWay(gone)
}

// debugExpires checks that debug prompts, which contain values, expire with the values.
func debugExpires(t *testing.T, r *rig) {
	r.session("sess_1")
	old := r.call("sess_1")
	old.Log.SystemPrompt, old.Log.UserPrompt, old.Log.Context = "a system", "the milk is gone",
		json.RawMessage(`{"milk": 1}`)
	r.commit(old)
	r.clock.advance(23 * time.Hour)
	young := r.call("sess_1")
	young.Log.UserPrompt = "there is bread"
	r.commit(young)
	prompts := func(want ...string) {
		t.Helper()
		_, err := r.s.Expire(r.ctx, r.clock.now())
		r.ok(err)
		r.everyWay(func() {
			list, err := r.s.ListCalls(r.ctx, store.CallQuery{})
			r.ok(err)
			for i, id := range []string{young.Record.CallID, old.Record.CallID} {
				got, err := r.s.Call(r.ctx, id)
				r.ok(err)
				if got.Log.UserPrompt != want[i] || list[i].UserPrompt != want[i] ||
					(list[i].Context != nil) != (want[i] == "the milk is gone") || len(list[i].Args) == 0 {
					t.Errorf("call %d has the prompt %q, in the list %+v, want %q", i, got.Log.UserPrompt, list[i],
						want[i])
				}
			}
		})
	}
	prompts("there is bread", "the milk is gone")
	r.clock.advance(2 * time.Hour)
	prompts("there is bread", "")
	r.clock.advance(24 * time.Hour)
	prompts("", "")
}

// replies checks that replies are kept under their keys for store.KeyLife.
func replies(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 3 {
		c := r.call("sess_1")
		c.Key = &store.Idempotent{Key: fmt.Sprint("key", i), BodyHash: "h", CallID: c.Record.CallID}
		c.Reply = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		r.commit(c)
		r.clock.advance(time.Hour)
	}
	r.everyWay(func() {
		for i := range 3 {
			if got, err := r.s.Replay(r.ctx, fmt.Sprint("key",
				i)); err != nil || string(got.Reply) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Errorf("key%d: got %s, %v", i, got.Reply, err)
			}
		}
		if _, err := r.s.Replay(r.ctx, "key9"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown key: got %v, want ErrNotFound", err)
		}
	})
	r.clock.advance(21 * time.Hour)
	r.everyWay(func() {
		if _, err := r.s.Replay(r.ctx, "key0"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after 24 hours: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Replay(r.ctx, "key2"); err != nil {
			t.Errorf("after less than 24 hours: got %v", err)
		}
	})
}

// contentBounded checks the limit on the number of contents.
func contentBounded(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 130 {
		c := r.call("sess_1")
		c.Content = &store.Content{Ref: fmt.Sprintf("content:%03d", i), Value: json.RawMessage(fmt.Sprint(i))}
		r.commit(c)
	}
	r.everyWay(func() {
		for i := range 130 {
			v, err := r.s.Content(r.ctx, fmt.Sprintf("content:%03d", i))
			if i < 2 && !errors.Is(err, store.ErrNotFound) || i >= 2 && (err != nil || string(v) != fmt.Sprint(i)) {
				t.Errorf("content %d: got %s, %v", i, v, err)
			}
		}
	})
}

// contentBytes checks the limit on the size of all contents together.
func contentBytes(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 3 {
		c := r.call("sess_1")
		c.Content = &store.Content{Ref: fmt.Sprint("content:", i),
			Value: json.RawMessage(`"` + strings.Repeat("x", 900<<10) + `"`)}
		r.commit(c)
	}
	huge := r.call("sess_1")
	r.everyWay(func() {
		if _, err := r.s.Content(r.ctx, "content:0"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the third of 900 KiB left room for the first: %v", err)
		}
		if _, err := r.s.Content(r.ctx, "content:2"); err != nil {
			t.Errorf("the newest: %v", err)
		}
	})
	huge.Content = &store.Content{Ref: "content:huge", Value: json.RawMessage(`"` + strings.Repeat("x", 3<<20) + `"`)}
	r.commit(huge)
	if _, err := r.s.Content(r.ctx, "content:huge"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one over the bound by itself: got %v, want ErrNotFound", err)
	}
}

// patterns checks that the newest store.PatternsKept events of a role are kept.
func patterns(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 60 {
		c := r.call("sess_1")
		c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: "sess_1", Role: "calculator",
			MethodName: fmt.Sprint("m", i)}
		r.commit(c)
	}
	r.everyWay(func() {
		got, err := r.s.Patterns(r.ctx, "calculator")
		r.ok(err)
		if len(got) != 50 || got[0].MethodName != "m10" || got[49].MethodName != "m59" {
			t.Errorf("got %d events, %+v", len(got), got)
		}
		if got, err := r.s.Patterns(r.ctx, "nobody"); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v for an unknown role", got, err)
		}
	})
}
