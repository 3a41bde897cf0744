package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// beforeAll is an id that sorts before all calls.
const beforeAll = "call_00000000000000000000000000"

// A Tail reports a daemon's calls as they end, without gaps: first the newest ones in the log, then the event stream,
// which resumes after a lost connection. Set all fields before Run.
type Tail struct {
	Client *client.Client
	// Want and Last select the calls in the log that are reported first. The stream brings all calls.
	Want  Filter
	Last  int                                                // number of calls from the log
	State func(gone error)                                   // reports a connection (nil) or its loss
	Each  func(raw json.RawMessage, e *agent.LogEntry) error // receives a call; an error ends the tail
}

type callPage struct {
	Data []json.RawMessage `json:"data"`
}

// Run reports calls until ctx ends, when it returns nil. It returns an error if Each does, if the daemon refuses, or if
// it cannot be reached at the start.
func (f *Tail) Run(ctx context.Context) error {
	err := f.follow(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// follow reports the newest calls of the log, then those of the stream that were not among them.
func (f *Tail) follow(ctx context.Context) error {
	anchor, newest, err := f.newest(ctx)
	if err != nil {
		return err
	}
	// The stream repeats listed calls that ended after the anchor.
	seen := map[string]bool{}
	for _, raw := range newest {
		e, err := f.hand(raw)
		if err != nil {
			return err
		}
		seen[e.CallID] = true
	}
	return f.Client.Follow(ctx, "/v1/events", anchor, f.State, func(ev client.Event) error {
		if ev.Type != progress.Finished || seen[ev.ID] {
			delete(seen, ev.ID)
			return nil
		}
		_, err := f.hand(ev.Data)
		return err
	})
}

// hand passes a call to Each.
func (f *Tail) hand(raw json.RawMessage) (*agent.LogEntry, error) {
	e, err := readEntry(raw)
	if err != nil {
		return nil, err
	}
	return e, f.Each(raw, e)
}

func readEntry(raw json.RawMessage) (*agent.LogEntry, error) {
	e := &agent.LogEntry{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("a call is not in recurgentd's format: %w", err)
	}
	return e, nil
}

// newest returns the newest matching calls of the log, oldest first, and the id of the call after which the stream
// starts. It determines that id first, so that no call is missed in between.
func (f *Tail) newest(ctx context.Context) (anchor string, calls []json.RawMessage, err error) {
	anchor = beforeAll
	ended, err := f.ended(ctx, url.Values{"limit": {"200"}}, 1, Filter{})
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
	if f.Last == 0 {
		return anchor, nil, nil
	}
	q := f.Want.query()
	q.Set("limit", strconv.Itoa(min(1000, f.Last+200)))
	calls, err = f.ended(ctx, q, f.Last, f.Want)
	return anchor, calls, err
}

// ended returns at most most ended calls that match, oldest first.
func (f *Tail) ended(ctx context.Context, q url.Values, most int, want Filter) ([]json.RawMessage, error) {
	var page callPage
	if want.Status == Running {
		return nil, nil
	}
	if err := f.Client.Get(ctx, "/v1/calls?"+q.Encode(), &page); err != nil {
		return nil, err
	}
	var list []json.RawMessage
	for _, raw := range page.Data {
		e, err := readEntry(raw)
		if err != nil {
			return nil, err
		}
		if w := CallFrom(e); w.Status != Running && want.Matches(&w) && len(list) < most {
			list = append(list, raw)
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, nil
}

// runningEvery is the interval at which a screen polls the running calls. The stream reports only ended ones.
const runningEvery = time.Second

// pollRunning reports the running calls regularly until ctx ends. It ignores errors, because the stream reports a lost
// daemon.
func (f *Tail) pollRunning(ctx context.Context, each func([]Call)) {
	ticker := time.NewTicker(runningEvery)
	defer ticker.Stop()
	for {
		var page callPage
		if err := f.Client.Get(ctx, "/v1/calls?status=running&limit=1000", &page); err == nil {
			list := make([]Call, 0, len(page.Data))
			for _, raw := range page.Data {
				if e, err := readEntry(raw); err == nil {
					list = append(list, CallFrom(e))
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
