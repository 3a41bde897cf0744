package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// beforeAll is an id that stands before every call of a log.
const beforeAll = "call_00000000000000000000000000"

// A tail hands a daemon's calls on as they end, without a gap: first the newest ones of the log, then the stream, which goes
// on where it was after each loss of the connection.
type tail struct {
	c     *client
	want  filter // only of the calls before the start; the stream brings all
	last  int    // how many of those
	state func(error)
	each  func(raw json.RawMessage, e *agent.LogEntry) error
}

type callPage struct {
	Data []json.RawMessage `json:"data"`
}

// run follows until ctx ends or the daemon refuses.
func (f *tail) run(ctx context.Context) error {
	anchor, newest, err := f.newest(ctx)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for _, raw := range newest {
		e, err := f.hand(raw)
		if err != nil {
			return err
		}
		told[e.CallID] = true
	}
	return f.c.follow(ctx, "/v1/events", anchor, f.state, func(ev serverEvent) error {
		if ev.Type != progress.Finished || told[ev.ID] {
			delete(told, ev.ID)
			return nil
		}
		_, err := f.hand(ev.Data)
		return err
	})
}

func (f *tail) hand(raw json.RawMessage) (*agent.LogEntry, error) {
	e, err := readEntry(raw)
	if err != nil {
		return nil, err
	}
	return e, f.each(raw, e)
}

func readEntry(raw json.RawMessage) (*agent.LogEntry, error) {
	e := &agent.LogEntry{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("a call is not what a recurgentd answers: %w", err)
	}
	return e, nil
}

// newest returns the newest calls of the log that match, oldest first, and the call behind which the stream starts: read
// before them, so that nothing can fall in between.
func (f *tail) newest(ctx context.Context) (anchor string, calls []json.RawMessage, err error) {
	anchor = beforeAll
	ended, err := f.ended(ctx, url.Values{"limit": {"200"}}, 1, filter{})
	if err != nil {
		return "", nil, err
	}
	if len(ended) > 0 {
		e, err := readEntry(ended[0])
		if err != nil {
			return "", nil, err
		}
		anchor = e.CallID
	}
	if f.last == 0 {
		return anchor, nil, nil
	}
	q := f.want.query()
	q.Set("limit", strconv.Itoa(min(1000, f.last+200)))
	calls, err = f.ended(ctx, q, f.last, f.want)
	return anchor, calls, err
}

// ended reads at most most calls that have ended and match, oldest first.
func (f *tail) ended(ctx context.Context, q url.Values, most int, want filter) ([]json.RawMessage, error) {
	var page callPage
	if want.Status == statusRunning {
		return nil, nil
	}
	if err := f.c.get(ctx, "/v1/calls?"+q.Encode(), &page); err != nil {
		return nil, err
	}
	var list []json.RawMessage
	for _, raw := range page.Data {
		e, err := readEntry(raw)
		if err != nil {
			return nil, err
		}
		if w := watchedFrom(e); w.Status != statusRunning && want.matches(&w) && len(list) < most {
			list = append(list, raw)
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, nil
}

// runningEvery is how often a screen asks what runs: the stream tells ends only.
const runningEvery = time.Second

// pollRunning hands on what runs, now and then, until ctx ends. A daemon that does not answer is the stream's to tell.
func (c *client) pollRunning(ctx context.Context, each func([]watched)) {
	ticker := time.NewTicker(runningEvery)
	defer ticker.Stop()
	for {
		var page callPage
		if err := c.get(ctx, "/v1/calls?status=running&limit=1000", &page); err == nil {
			list := make([]watched, 0, len(page.Data))
			for _, raw := range page.Data {
				if e, err := readEntry(raw); err == nil {
					list = append(list, watchedFrom(e))
				}
			}
			each(list)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// ending tells apart how a tail ended: what the user did is no error.
func ending(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, errStop) {
		return nil
	}
	return exitWith(ExitUnreachable, err)
}
