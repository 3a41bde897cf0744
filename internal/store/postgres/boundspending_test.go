//go:build postgres

package postgres

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// Expiring a namespace brings its spending rows within their limit, whatever names clients made up. No figure of a day
// is lost, not even of calls that other replicas commit at that moment.
func TestSpendingIsBounded(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	created(t, a, "sess_0")
	today := agent.DayOf(time.Now())
	old := today - store.DetailedDays - 1
	const many = store.MaxSpendRows
	for day, n := range map[agent.Day]int{old: 10, today - 1: many, today: 10} {
		if _, err := a.store.pool.Exec(t.Context(),
			`INSERT INTO spend_rows (ns, day, hash, calls, warm, role, method, owner, models)
			SELECT $1, $2, 'made up ' || i, 1, 0, 'r', ('m' || i)::bytea, 'ann', '[{"model":"m","requests":1,"prompt":2}]' FROM generate_series(1, $3::int) AS i`, a.id.Load(), int32(day), n); err != nil {
			t.Fatal(err)
		}
	}
	sums := func() (rows int, calls map[agent.Day]int64, tokens int64) {
		t.Helper()
		s, err := b.Spent(t.Context(), math.MinInt32, math.MaxInt32)
		if err != nil {
			t.Fatal(err)
		}
		calls = map[agent.Day]int64{}
		for _, r := range s.Rows {
			calls[r.Day] += r.Calls
			for _, m := range r.Models {
				tokens += m.Prompt
			}
		}
		return len(s.Rows), calls, tokens
	}
	if rows, calls, tokens := sums(); rows != many+20 || calls[today-1] != many || tokens != 2*(many+20) {
		t.Fatalf("before: %d rows, %v, %d tokens", rows, calls, tokens)
	}
	const writers, each = 4, 10
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				c := storetest.NewCommit("sess_0", fmt.Sprintf("call_%d_%d", w, i), time.Now())
				c.Log.Method, c.Log.Owner = fmt.Sprintf("new_%d_%d", w, i), "bob" // a row of its own
				if err := b.CommitCall(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		if _, err := a.Expire(t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
	if _, err := a.Expire(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
	rows, calls, tokens := sums()
	calls[today] += calls[today+1] // midnight may have passed meanwhile
	if rows > many || calls[old] != 10 || calls[today-1] != many || calls[today] != 10+writers*each ||
		tokens != 2*(many+20) {
		t.Errorf("after: %d rows, %v, %d tokens; want at most %d, %d calls today, %d tokens", rows, calls, tokens, many,
			10+writers*each, 2*(many+20))
	}
	s, err := b.Spent(t.Context(), old, old)
	if err != nil || len(s.Rows) != 1 || s.Rows[0].Owner+s.Rows[0].Method != "" {
		t.Errorf("an old day: %+v, %v; want its sum", s.Rows, err)
	}
}
