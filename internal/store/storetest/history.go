package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// historyPages checks the pages of a history in both directions.
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

// historyFilters checks each filter of HistoryQuery.
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
			if got := r.seqs("sess_1", c.q); fmt.Sprint(got) != c.want {
				t.Errorf("%+v: got %v, want %s", c.q, got, c.want)
			}
		}
	})
}

// historyFilterPairs checks that every combination of filters selects the same records as a scan would, wherever the
// pages begin.
func historyFilterPairs(t *testing.T, r *rig) {
	r.session("sess_1")
	start := r.clock.now()
	for i := range 12 {
		c := r.call("sess_1")
		c.Record.Depth, c.Record.MethodName = i%2, []string{"add", "add", "sub"}[i%3]
		if i%4 == 0 {
			c.Record.OutcomeSummary.Status = agent.StatusError
		}
		r.commit(c)
		r.clock.advance(time.Minute)
	}
	queries := []store.HistoryQuery{{Depth0: true, Role: "calculator", Method: "sub", Limit: 2}}
	for bits := range 1 << 6 {
		on := func(bit int) bool { return bits>>bit&1 == 1 }
		q := store.HistoryQuery{Depth0: on(0), Limit: 1}
		if on(1) {
			q.Role = "calculator"
		}
		if on(2) {
			q.Method = "sub"
		}
		if on(3) {
			q.Status = agent.StatusError
		}
		if on(4) {
			q.Since = start.Add(3 * time.Minute)
		}
		if on(5) {
			q.Until = start.Add(9 * time.Minute)
		}
		queries = append(queries, q)
	}
	r.everyWay(func() {
		all := r.records("sess_1")
		for _, q := range queries {
			for _, after := range []int{0, 9} {
				q.After, q.Desc = after, true
				want := []int{}
				for _, rec := range slices.Backward(all) {
					if (after == 0 || rec.Seq < after) && q.Match(&rec) {
						want = append(want, rec.Seq)
					}
				}
				if got := r.seqs("sess_1", q); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%+v: got %v, want %v", q, got, want)
				}
			}
		}
	})
}

// historyBytes checks that a page ends at its size limit, unless its first record alone is larger.
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
			want []int // number of records in each page
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

// historyLooks checks that a page ends at its scan limit and says where to continue, whether it found records or not.
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
				t.Errorf("%+v: %d records, next %d; want %d, more: %v", c.q, len(page.Records), page.Next, c.found,
					c.more)
			}
		}
	})
}

// historyTimes checks searches by time. A record's timestamp is the start of its call, but records are in the order of
// the calls' ends, up to two hours later. A search in either direction must find every record nonetheless.
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
					want, got := wanted(q.Since, q.Until, desc), r.seqs("sess_1", q)
					if fmt.Sprint(got) != want {
						t.Errorf("%+v: got %v, want %s", q, got, want)
					}
				}
			}
		}
	})
}

// historyKeepsUnknownKeys checks that a record's unknown members and odd JSON come back unchanged.
func historyKeepsUnknownKeys(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.call("sess_1")
	c.Record.Extra = map[string]json.RawMessage{"from_the_future": json.RawMessage(`{"a":[1,2]}`)}
	c.Record.Args = []json.RawMessage{json.RawMessage("{\n \"spread\": [1,\n2]}"),
		json.RawMessage(`"\ud800 \u0000 <ü>"`)}
	r.commit(c)
	r.everyWay(func() {
		if got := r.records("sess_1"); !sameJSON(got[0], c.Record) {
			t.Errorf("got %+v, want %+v", got[0], c.Record)
		}
	})
}

// seqs returns the numbers of the records in all pages of a query.
func (r *rig) seqs(session string, q store.HistoryQuery) (out []int) {
	for {
		page, err := r.s.History(r.ctx, session, q)
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
