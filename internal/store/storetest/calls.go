package storetest

import (
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
)

// Everything of a call, or nothing.
func commit(t *testing.T, r *rig) {
	r.session("sess_1")
	c := Forged(r.call("sess_1"), "package tool // add")
	c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"sum": json.RawMessage("5")}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.now(), Used: 1, Register: &agent.Contract{Purpose: "sums"}, IfAbsent: true}}
	c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: "sess_1", Role: "calculator", MethodName: "add", Capabilities: []string{"sum"}}
	c.Content = &store.Content{Ref: "content:ab", Value: json.RawMessage("[1,2]")}
	c.Key = &store.Idempotent{Key: "k", BodyHash: "h", CallID: c.Record.CallID}
	c.Reply = json.RawMessage(`{"call_id":"x"}`)
	c.Log.OutcomeErrorMetadata = map[string]any{"n": 1.0}
	r.commit(c)
	if c.Record.Seq != 1 || c.Log.ConversationHistorySize != 1 || c.Log.ArtifactSuccessCount != 1 {
		t.Errorf("got seq %d, size %d, successes %d set in the commit, want 1, 1, 1", c.Record.Seq, c.Log.ConversationHistorySize, c.Log.ArtifactSuccessCount)
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

func commitAssignsSeq(t *testing.T, r *rig) {
	r.session("sess_1")
	r.session("sess_2")
	for i := 1; i <= 5; i++ {
		for _, id := range []string{"sess_1", "sess_2"} {
			c := r.call(id)
			c.Record.Seq = 99 // the caller has no say
			if r.commit(c); c.Record.Seq != i || c.Log.ConversationHistorySize != i {
				t.Errorf("got seq %d and size %d, want %d", c.Record.Seq, c.Log.ConversationHistorySize, i)
			}
		}
	}
	r.everyWay(func() { r.records("sess_1"); r.records("sess_2") })
}

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
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.at, Result: agent.ClassOK, SessionID: c.SessionID}}
				c.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.at, Used: 1, Register: &agent.Contract{}, IfAbsent: true}}
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
			t.Errorf("got %d records, %d successes, %d uses; want %d, %d, %d", total, a.SuccessCount, tool.UsageCount, want, want, want-1)
		}
		entries, err := r.s.ListCalls(r.ctx, store.CallQuery{Limit: 1000})
		r.ok(err)
		if len(entries) != want {
			t.Errorf("got %d log entries, want %d", len(entries), want)
		}
	})
}

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
		"bad value":       {r.ctx, bad(func(c *store.CallCommit) { c.Record.Args = []json.RawMessage{json.RawMessage("nonsense")} }), nil},
		"bad context": {r.ctx, bad(func(c *store.CallCommit) {
			c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"k": json.RawMessage(`"`)}}
		}), nil},
	} {
		refused.c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", Generation: NewGeneration("gen-1", "x", r.clock.now())}}
		if err := r.s.CommitCall(refused.ctx, refused.c); err == nil || refused.is != nil && !errors.Is(err, refused.is) {
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

func calls(t *testing.T, r *rig) {
	r.session("sess_1")
	weak := r.call("sess_1")
	weak.Log.WeakSuccess, weak.Log.WeakSuccessReasons = true, []string{"empty"}
	r.commit(weak)
	r.clock.advance(time.Minute)
	failed := r.call("sess_1")
	failed.Outcome = agent.Failed(agent.ErrExecution, "boom")
	failed.Log.OutcomeStatus, failed.Log.OutcomeErrorType, failed.Log.ProgramSource = agent.StatusError, agent.ErrExecution, agent.SourceGenerated
	failed.Log.Method, failed.Log.ParentCallID, failed.Log.TraceID = "sub", weak.Log.CallID, "other"
	failed.Effects = nil
	r.commit(failed)
	yes, no := true, false
	r.everyWay(func() {
		for i, c := range []struct {
			q    store.CallQuery
			want string
		}{
			{store.CallQuery{}, "[call_000002 call_000001]"},
			{store.CallQuery{Limit: 1}, "[call_000002]"},
			{store.CallQuery{Before: "call_000002"}, "[call_000001]"},
			{store.CallQuery{Before: "call_000001"}, "[]"},
			{store.CallQuery{Before: "call_unknown"}, "[]"},
			{store.CallQuery{SessionID: "sess_2"}, "[]"},
			{store.CallQuery{Role: "calculator", Method: "add"}, "[call_000001]"},
			{store.CallQuery{Status: "error"}, "[call_000002]"},
			{store.CallQuery{Source: "persisted"}, "[call_000001]"},
			{store.CallQuery{ErrorType: "execution"}, "[call_000002]"},
			{store.CallQuery{TraceID: "other"}, "[call_000002]"},
			{store.CallQuery{ParentCallID: "call_000001"}, "[call_000002]"},
			{store.CallQuery{WeakSuccess: &yes}, "[call_000001]"},
			{store.CallQuery{WeakSuccess: &no}, "[call_000002]"},
			{store.CallQuery{Since: r.clock.now()}, "[call_000002]"},
			{store.CallQuery{Until: r.clock.now()}, "[call_000001]"},
		} {
			list, err := r.s.ListCalls(r.ctx, c.q)
			r.ok(err)
			got := []string{}
			for _, e := range list {
				got = append(got, e.CallID)
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("query %d %+v: got %v, want %s", i, c.q, got, c.want)
			}
		}
		got, err := r.s.Call(r.ctx, "call_000002")
		r.ok(err)
		if got.Outcome == nil || got.Outcome.ErrorType != agent.ErrExecution || got.Effects != nil {
			t.Errorf("got %+v", got)
		}
		if _, err := r.s.Call(r.ctx, "call_000003"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown call: got %v, want ErrNotFound", err)
		}
	})
}

func callsPage(t *testing.T, r *rig) {
	r.session("sess_1")
	for range 30 {
		r.commit(r.call("sess_1"))
	}
	r.everyWay(func() {
		var got []string
		q := store.CallQuery{Limit: 7}
		for {
			page, err := r.s.ListCalls(r.ctx, q)
			r.ok(err)
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got = append(got, e.CallID)
			}
			q.Before = page[len(page)-1].CallID
		}
		if len(got) != 30 || got[0] != "call_000030" || got[29] != "call_000001" {
			t.Errorf("got %d entries from %v", len(got), got)
		}
	})
}

// The entry of a corrected call names its re-ask, wherever the two stand and however they are asked for; the re-ask
// of a call that the store does not know hurts nobody.
func corrections(t *testing.T, r *rig) {
	r.session("sess_1")
	const n = 40
	want := map[string]string{}
	for i := range n {
		c := r.call("sess_1")
		if i%4 == 3 { // it corrects the one before
			c.Log.UserCorrectionDetected, c.Log.UserCorrectionSignal = true, "temporal_reask"
			c.Log.UserCorrectionReferenceCallID = fmt.Sprintf("call_%06d", i)
			want[c.Log.UserCorrectionReferenceCallID] = c.Log.CallID
		}
		if i%4 == 1 { // arguments that look like a correction are none
			c.Log.Kwargs = json.RawMessage(`{"call_id":"call_000099","user_correction_detected":true,"user_correction_signal":"x","user_correction_reference_call_id":"call_000001"}`)
		}
		r.commit(c)
	}
	lost := r.call("sess_1")
	lost.Log.UserCorrectionDetected, lost.Log.UserCorrectionReferenceCallID = true, "call_unknown"
	r.commit(lost)
	r.everyWay(func() {
		for i := range n {
			id := fmt.Sprintf("call_%06d", i+1)
			got, err := r.s.Call(r.ctx, id)
			r.ok(err)
			if got.Log.CorrectedBy != want[id] {
				t.Errorf("%s is corrected by %q, want %q", id, got.Log.CorrectedBy, want[id])
			}
		}
		for _, limit := range []int{1000, 1, 3} { // pages that part the two
			q := store.CallQuery{Limit: limit, Method: "add"}
			for seen := 0; ; {
				page, err := r.s.ListCalls(r.ctx, q)
				r.ok(err)
				for _, e := range page {
					seen++
					if e.CorrectedBy != want[e.CallID] {
						t.Errorf("pages of %d: %s is corrected by %q, want %q", limit, e.CallID, e.CorrectedBy, want[e.CallID])
					}
				}
				if len(page) < limit {
					if seen != n+1 {
						t.Errorf("pages of %d: %d entries, want %d", limit, seen, n+1)
					}
					break
				}
				q.Before = page[len(page)-1].CallID
			}
		}
	})
}

func valuesExpire(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.commit(r.call("sess_1"))
	r.clock.advance(25 * time.Hour)
	_, err := r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	r.everyWay(func() {
		got, err := r.s.Call(r.ctx, c.Record.CallID)
		r.ok(err)
		if got.Outcome != nil || got.Effects != nil {
			t.Errorf("got outcome %+v and effects %s after 25 hours, want none", got.Outcome, got.Effects)
		}
	})
}

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
			if got, err := r.s.Replay(r.ctx, fmt.Sprint("key", i)); err != nil || string(got.Reply) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Errorf("key%d: got %s, %v", i, got.Reply, err)
			}
		}
		if _, err := r.s.Replay(r.ctx, "key9"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown key: got %v, want ErrNotFound", err)
		}
	})
	r.clock.advance(22*time.Hour + time.Minute)
	r.everyWay(func() {
		if _, err := r.s.Replay(r.ctx, "key0"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after more than 24 hours: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Replay(r.ctx, "key2"); err != nil {
			t.Errorf("after less than 24 hours: got %v", err)
		}
	})
}

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

func contentBytes(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 3 {
		c := r.call("sess_1")
		c.Content = &store.Content{Ref: fmt.Sprint("content:", i), Value: json.RawMessage(`"` + strings.Repeat("x", 900<<10) + `"`)}
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

func patterns(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 60 {
		c := r.call("sess_1")
		c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: "sess_1", Role: "calculator", MethodName: fmt.Sprint("m", i)}
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
