package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A live sleep waits without a place. A replay and a run without sleeps do not wait. A sleep that cannot end within the
// call's time or its sum of sleeps ends the run at once.
func TestSleep(t *testing.T) {
	const limit = 30 * time.Second
	for name, c := range map[string]struct {
		sleep, slept, end, cancel time.Duration
		off, recorded             bool
		waits                     time.Duration
		fails                     bool
		sleeps                    time.Duration
	}{
		"a live run":           {sleep: 20 * time.Second, waits: 20 * time.Second},
		"the rest of the sum":  {sleep: time.Second, slept: limit - time.Second, waits: time.Second},
		"more than the sum":    {sleep: time.Second + 1, slept: limit - time.Second, fails: true},
		"an hour":              {sleep: time.Hour, fails: true},
		"up to the call's end": {sleep: time.Second, end: time.Second, waits: time.Second},
		"beyond the call's end": {sleep: 2 * time.Second, end: time.Second, slept: 3 * time.Second,
			fails: true, sleeps: 5 * time.Second},
		"a run that does not wait":          {sleep: time.Hour, off: true},
		"a replay":                          {sleep: time.Hour, recorded: true},
		"a call that is canceled meanwhile": {sleep: 20 * time.Second, cancel: time.Second, waits: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req := &Request{Owner: agent.Owner{Name: "me"}, Sleep: limit}
				if c.off {
					req.Sleep = 0
				}
				if c.end > 0 {
					req.End = time.Now().Add(c.end)
				}
				places := newAdmission(1, 10)
				if err := places.enter(ctx, req); err != nil {
					t.Fatal(err)
				}
				x := exchange{pool: &Pool{admission: places}, req: *req, slept: c.slept}
				if c.recorded {
					if err := x.journal.open(EmptyJournal(), 1000); err != nil {
						t.Fatal(err)
					}
				}
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				busy := -1
				if c.waits > 0 {
					time.AfterFunc(c.waits/2, func() { busy, _ = places.counts() })
				}
				began := time.Now()
				r, failure := x.sleep(ctx, json.RawMessage(fmt.Sprintf(`{"nanoseconds":%d}`, c.sleep)))
				if took := time.Since(began); took != c.waits || x.host != c.waits {
					t.Errorf("it took %s and counts as %s of waiting, want %s", took, x.host, c.waits)
				}
				if (failure != nil) != c.fails || failure != nil && (failure.Type != agent.ErrTimeout ||
					failure.Sleeps != c.sleeps || failure.Waiting || failure.Ours) {
					t.Errorf("got %+v and %+v", r, failure)
				}
				synctest.Wait() // for the timer's function
				if after, _ := places.counts(); c.waits > 0 && busy != 0 || after != 1 {
					t.Errorf("%d programs were running meanwhile and %d afterwards, want 0 and 1", busy, after)
				}
			})
		})
	}
}
