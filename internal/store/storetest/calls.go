package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// calls checks each filter of CallQuery, and reading a single call.
func calls(t *testing.T, r *rig) {
	r.session("sess_1")
	weak := r.call("sess_1")
	weak.Log.WeakSuccess, weak.Log.WeakSuccessReasons = true, []string{"empty"}
	r.commit(weak)
	r.clock.advance(time.Minute)
	failed := r.call("sess_1")
	failed.Outcome = agent.Failed(agent.ErrExecution, "boom")
	failed.Log.OutcomeStatus, failed.Log.OutcomeErrorType, failed.Log.ProgramSource = agent.StatusError,
		agent.ErrExecution, agent.SourceGenerated
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

// callsPage checks that pages in both directions list each call once.
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
		if len(got) != r.n || got[0] != fmt.Sprintf("call_%06d", r.n) || got[r.n-1] != "call_000001" {
			t.Errorf("got %d entries from %v", len(got), got)
		}
		slices.Reverse(got)
		for after, want := range map[string][]string{"": got, "call_000001": got[1:], "call_000013": got[13:],
			got[r.n-1]: nil} {
			if list := r.callsAfter(after, 7); !slices.Equal(list, want) {
				t.Errorf("behind %q: got %v, want %v", after, list, want)
			}
		}
		if list, err := r.s.CallsAfter(r.ctx, "call_unknown", 7); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("behind a call that is not there: %v, %v", list, err)
		}
		r.commit(r.call("sess_1")) // later rounds have calls in files as well as calls in the journal
	})
}

// callsAfter returns the ids of the calls after the call after, read in pages of limit.
func (r *rig) callsAfter(after string, limit int) (ids []string) {
	r.Helper()
	for {
		page, err := r.s.CallsAfter(r.ctx, after, limit)
		r.ok(err)
		if len(page) > limit {
			r.Errorf("a page of %d has %d calls", limit, len(page))
		}
		for _, e := range page {
			ids, after = append(ids, e.CallID), e.CallID
		}
		if len(page) < limit {
			return ids
		}
	}
}

// callsOfOwner checks that an owner's calls are found among others, page by page, even if entries do not name their
// owner. A page reads no more than its scan limit and says where to continue.
func callsOfOwner(t *testing.T, r *rig) {
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: "sess_ann", Role: "calculator", Owner: "ann",
		CreatedAt: r.clock.now(), UpdatedAt: r.clock.now()}, nil))
	r.session("sess_local")
	var want []string
	for i := range 40 {
		c := r.call("sess_local")
		if i%10 == 3 {
			c = r.call("sess_ann")
			want = append([]string{c.Log.CallID}, want...)
			if i < 20 { // newer entries name their owner
				c.Log.Owner = "ann"
			}
		} else if i%2 == 0 {
			c.Log.Owner = "bob" // an operator in ann's session
		}
		r.commit(c)
	}
	r.everyWay(func() {
		for _, limit := range []int{1, 3, 100} {
			var got []string
			pages := 0
			for before := ""; ; pages++ {
				q := store.CallQuery{Owner: "ann", Before: before, Limit: limit, Scan: &store.Scan{Most: 8}}
				page, err := r.s.ListCalls(r.ctx, q)
				r.ok(err)
				for _, e := range page {
					got = append(got, e.CallID)
				}
				if before = q.Scan.Next; before == "" && len(page) == limit {
					before = page[limit-1].CallID
				}
				if before == "" || pages > 40 {
					break
				}
			}
			if !slices.Equal(got, want) || pages < 4 {
				t.Errorf("limit %d: %v in %d pages, want %v", limit, got, pages, want)
			}
		}
		all, err := r.s.ListCalls(r.ctx, store.CallQuery{Owner: "ann"})
		if err != nil || len(all) != len(want) {
			t.Errorf("without a bound: %d calls, %v; want %d", len(all), err, len(want))
		}
	})
}

// corrections checks that the entry of a corrected call names the call that corrected it, whatever the pages. A
// correction of an unknown call has no effect.
func corrections(t *testing.T, r *rig) {
	r.session("sess_1")
	const n = 40
	want := map[string]string{}
	for i := range n {
		c := r.call("sess_1")
		if i%4 == 3 { // corrects the call before
			c.Log.UserCorrectionDetected, c.Log.UserCorrectionSignal = true, "temporal_reask"
			c.Log.UserCorrectionReferenceCallID = fmt.Sprintf("call_%06d", i)
			want[c.Log.UserCorrectionReferenceCallID] = c.Log.CallID
		}
		if i%4 == 1 { // arguments that look like a correction must not count
			c.Log.Kwargs = json.RawMessage(
				`{"call_id":"call_000099","user_correction_detected":true,"user_correction_signal":"x","user_correction_reference_call_id":"call_000001"}`)
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
		for _, limit := range []int{1000, 1, 3} { // including pages that separate the two
			q := store.CallQuery{Limit: limit, Method: "add"}
			for seen := 0; ; {
				page, err := r.s.ListCalls(r.ctx, q)
				r.ok(err)
				for _, e := range page {
					seen++
					if e.CorrectedBy != want[e.CallID] {
						t.Errorf("pages of %d: %s is corrected by %q, want %q", limit, e.CallID, e.CorrectedBy,
							want[e.CallID])
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
			for after := ""; ; {
				page, err := r.s.CallsAfter(r.ctx, after, limit)
				r.ok(err)
				for _, e := range page {
					if after = e.CallID; e.CorrectedBy != want[e.CallID] {
						t.Errorf("pages of %d, oldest first: %s is corrected by %q, want %q", limit, e.CallID,
							e.CorrectedBy, want[e.CallID])
					}
				}
				if len(page) < limit {
					break
				}
			}
		}
	})
}
