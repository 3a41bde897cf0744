package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// commit checks that a commit stores everything that belongs to a call.
func commit(t *testing.T, r *rig) {
	r.session("sess_1")
	c := Forged(r.call("sess_1"), "package tool // add")
	c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"sum": json.RawMessage("5")}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.now(), Used: 1,
		Register: &agent.Contract{Purpose: "sums"}, IfAbsent: true}}
	c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: "sess_1", Role: "calculator", MethodName: "add",
		Capabilities: []string{"sum"}}
	c.Content = &store.Content{Ref: "content:ab", Value: json.RawMessage("[1,2]")}
	c.Key = &store.Idempotent{Key: "k", BodyHash: "h", CallID: c.Record.CallID}
	c.Reply = json.RawMessage(`{"call_id":"x"}`)
	c.Log.OutcomeErrorMetadata = map[string]any{"n": 1.0}
	r.commit(c)
	if c.Record.Seq != 1 || c.Log.ConversationHistorySize != 1 || c.Log.ArtifactSuccessCount != 1 {
		t.Errorf("got seq %d, size %d, successes %d set in the commit, want 1, 1, 1", c.Record.Seq,
			c.Log.ConversationHistorySize, c.Log.ArtifactSuccessCount)
	}
	r.everyWay(func() {
		if got := r.records("sess_1"); len(got) != 1 || !sameJSON(got[0], c.Record) {
			t.Errorf("got records %+v, want %+v", got, c.Record)
		}
		s, err := r.s.Session(r.ctx, "sess_1")
		r.ok(err)
		if s.HistorySize != 1 {
			t.Errorf("got history size %d, want 1", s.HistorySize)
		}
		values, err := r.s.Context(r.ctx, "sess_1")
		r.ok(err)
		if !sameJSON(values, map[string]int{"sum": 5}) {
			t.Errorf("got context %s", values)
		}
		got, err := r.s.Call(r.ctx, c.Record.CallID)
		r.ok(err)
		if !sameJSON(got.Log, c.Log) {
			t.Errorf("got log %+v, want %+v", got.Log, c.Log)
		}
		if got.Outcome == nil || !sameJSON(*got.Outcome, c.Outcome) || string(got.Effects) != string(c.Effects) {
			t.Errorf("got outcome %+v and effects %s, want %+v and %s", got.Outcome, got.Effects, c.Outcome, c.Effects)
		}
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if a.Code != "package tool // add" || a.SuccessCount != 1 || a.Revision != 1 {
			t.Errorf("got artifact %+v", a)
		}
		tool, err := r.s.Tool(r.ctx, "calculator")
		r.ok(err)
		if tool.Purpose != "sums" || tool.UsageCount != 1 {
			t.Errorf("got tool %+v", tool)
		}
		reply, err := r.s.Replay(r.ctx, "k")
		r.ok(err)
		if string(reply.Reply) != `{"call_id":"x"}` || reply.BodyHash != "h" || reply.CallID != c.Record.CallID {
			t.Errorf("got reply %+v", reply)
		}
		if v, err := r.s.Content(r.ctx, "content:ab"); err != nil || string(v) != "[1,2]" {
			t.Errorf("got content %s, %v", v, err)
		}
		events, err := r.s.Patterns(r.ctx, "calculator")
		r.ok(err)
		if len(events) != 1 || !sameJSON(events[0], c.Pattern) {
			t.Errorf("got patterns %+v", events)
		}
	})
}

// commitWithoutSession checks that a call without a session is in the call log.
func commitWithoutSession(t *testing.T, r *rig) {
	c := r.call("")
	c.Record = agent.Record{}
	r.commit(c)
	r.everyWay(func() {
		if _, err := r.s.Call(r.ctx, c.Log.CallID); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// commitAssignsSeq checks that the store numbers each session's records.
func commitAssignsSeq(t *testing.T, r *rig) {
	r.session("sess_1")
	r.session("sess_2")
	for i := 1; i <= 5; i++ {
		for _, id := range []string{"sess_1", "sess_2"} {
			c := r.call(id)
			c.Record.Seq = 99 // the caller cannot choose it
			if r.commit(c); c.Record.Seq != i || c.Log.ConversationHistorySize != i {
				t.Errorf("got seq %d and size %d, want %d", c.Record.Seq, c.Log.ConversationHistorySize, i)
			}
		}
	}
	r.everyWay(func() { r.records("sess_1"); r.records("sess_2") })
}

// commitConcurrently checks that concurrent commits in shared sessions all count exactly once.
func commitConcurrently(t *testing.T, r *rig) {
	const writers, each = 16, 25
	for i := range 4 {
		r.session(fmt.Sprint("sess_", i))
	}
	first := Forged(r.call("sess_0"), "package tool")
	r.commit(first)
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				c := NewCommit(fmt.Sprint("sess_", (w+n)%4), fmt.Sprintf("call_w%02d_%03d", w, n), r.clock.at)
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.at,
					Result: agent.ClassOK, SessionID: c.SessionID}}
				c.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.at, Used: 1, Register: &agent.Contract{},
					IfAbsent: true}}
				errs <- r.s.CommitCall(r.ctx, c)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		r.ok(err)
	}
	r.everyWay(func() {
		total, seen := 0, map[string]bool{}
		for i := range 4 {
			for _, rec := range r.records(fmt.Sprint("sess_", i)) {
				total++
				if seen[rec.CallID] {
					t.Errorf("call %s is recorded twice", rec.CallID)
				}
				seen[rec.CallID] = true
			}
		}
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		tool, err := r.s.Tool(r.ctx, "calculator")
		r.ok(err)
		const want = writers*each + 1
		if total != want || a.SuccessCount != want || tool.UsageCount != want-1 {
			t.Errorf("got %d records, %d successes, %d uses; want %d, %d, %d", total, a.SuccessCount, tool.UsageCount,
				want, want, want-1)
		}
		entries, err := r.s.ListCalls(r.ctx, store.CallQuery{Limit: 1000})
		r.ok(err)
		if len(entries) != want {
			t.Errorf("got %d log entries, want %d", len(entries), want)
		}
	})
}

// commitRefused checks that a rejected commit leaves nothing behind.
func commitRefused(t *testing.T, r *rig) {
	r.session("sess_1")
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	bad := func(change func(*store.CallCommit)) *store.CallCommit { c := r.call("sess_1"); change(c); return c }
	for name, refused := range map[string]struct {
		ctx context.Context
		c   *store.CallCommit
		is  error
	}{
		"unknown session": {r.ctx, r.call("sess_2"), store.ErrNotFound},
		"ended context":   {ended, r.call("sess_1"), context.Canceled},
		"bad effects":     {r.ctx, bad(func(c *store.CallCommit) { c.Effects = json.RawMessage("{") }), nil},
		"bad reply": {r.ctx,
			bad(func(c *store.CallCommit) { c.Key, c.Reply = &store.Idempotent{Key: "k"}, json.RawMessage("{") }), nil},
		"bad content": {r.ctx, bad(func(c *store.CallCommit) {
			c.Content = &store.Content{Ref: "content:bad", Value: json.RawMessage("{")}
		}), nil},
		"bad value": {r.ctx, bad(func(c *store.CallCommit) {
			c.Record.Args = []json.RawMessage{json.RawMessage(
				"nonsense")}
		}), nil},
		"bad context": {r.ctx, bad(func(c *store.CallCommit) {
			c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"k": json.RawMessage(`"`)}}
		}), nil},
	} {
		refused.c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add",
			Generation: NewGeneration("gen-1", "x", r.clock.now())}}
		if err := r.s.CommitCall(refused.ctx, refused.c); err == nil || refused.is != nil &&
			!errors.Is(err, refused.is) {
			t.Errorf("%s: got error %v, want %v", name, err, refused.is)
		}
	}
	r.commit(r.call("sess_1"))
	r.everyWay(func() {
		if got := r.records("sess_1"); len(got) != 1 {
			t.Errorf("got %d records, want the one of the good commit", len(got))
		}
		if _, err := r.s.Artifact(r.ctx, "calculator", "add"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a refused commit left an artifact: %v", err)
		}
		if list, err := r.s.ListCalls(r.ctx, store.CallQuery{}); err != nil || len(list) != 1 {
			t.Errorf("got %d log entries, %v; want 1", len(list), err)
		}
	})
}
