package operator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CallEvents passes the events of one call to emit, from the one after the id after ("" for all). It ends with
// call.finished, or when emit fails or ctx ends. Of a finished call only the end is sent. store.ErrNotFound when there
// is no such call.
func (o *Operator) CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error {
	seen, _ := strconv.Atoi(after)
	seen = max(0, seen) // anything else starts from the beginning
	if running := o.calls.Progress(callID); running != nil {
		if err := running.Follow(ctx, seen, emit); err != nil {
			return err
		}
	}
	view, err := o.CallView(ctx, callID)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(view)
	if err != nil {
		return err
	}
	if after == "finished" {
		return nil
	}
	return emit(progress.Event{ID: "finished", Type: progress.Finished, Data: raw})
}

// EventQuery selects events: those after the call id After ("" for those from now on), of calls of the owner ("" for everybody's). Reader is whose stream it is.
type EventQuery struct {
	After, Owner, Reader string
	Previews             bool // entries have the beginnings of their values
	// is called once, before the first event: whatever ends from then on is passed; nil: nobody waits for it
	Listens func()
}

// Events passes committed calls to emit, in the order of the log, until emit fails or ctx ends. Ids are call ids, so a stream can be resumed after a restart of the
// client or of the daemon: what was missed is read from the call log. That is the heavier, the slower a reader is, so the streams of one
// reader catch up one after another, and rest in between.
func (o *Operator) Events(ctx context.Context, q EventQuery, emit func(progress.Event) error) error {
	ctx, end := o.whileItLives(ctx)
	defer end()
	reader, stop, err := o.calls.Feed().Subscribe()
	if err != nil {
		return err
	}
	defer stop()
	if q.Listens != nil {
		q.Listens()
	}
	s := stream{o: o, EventQuery: q, emit: emit}
	if q.After == "" {
		s.After = reader.From()
	} else {
		if err := s.catchUp(ctx, reader.From()); err != nil {
			return err
		}
	}
	for {
		calls, behind, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		if behind {
			if err := s.catchUp(ctx, reader.From()); err != nil {
				return err
			}
		}
		calls = slices.DeleteFunc(calls, func(c *progress.Call) bool { return s.sent.has(c.CallID) })
		if err := s.sendAll(ctx, calls); err != nil {
			return err
		}
	}
}

// whileItLives is ctx, which ends with the runtime too. end releases what it holds.
func (o *Operator) whileItLives(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	life := o.calls.Life()
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// A stream is one reader's position in the log.
type stream struct {
	o *Operator
	EventQuery
	sent recent // by the last catch-up, or before: the feed may repeat those
	emit func(progress.Event) error
}

// sendAll sends what of the calls is the reader's.
func (s *stream) sendAll(ctx context.Context, calls []*progress.Call) error {
	if len(calls) == 0 {
		return nil
	}
	last := calls[len(calls)-1].CallID
	if s.Previews {
		calls = slices.DeleteFunc(calls, func(c *progress.Call) bool { return !s.owns(ctx, c) })
		entries := make([]agent.LogEntry, len(calls))
		for i, c := range calls {
			entries[i] = c.LogEntry
		}
		if err := s.o.Preview(ctx, entries); err != nil {
			return err
		}
		for i := range calls {
			calls[i] = &progress.Call{LogEntry: entries[i]}
		}
	}
	for _, c := range calls {
		if err := s.send(ctx, c); err != nil {
			return err
		}
	}
	s.After = last
	return nil
}

func (s *stream) owns(ctx context.Context, c *progress.Call) bool {
	return s.Owner == "" || s.o.ownerOf(ctx, &c.LogEntry) == s.Owner
}

func (s *stream) send(ctx context.Context, c *progress.Call) error {
	s.After = c.CallID
	if !s.owns(ctx, c) {
		return nil
	}
	encode := c.JSON
	if s.Owner != "" {
		encode = c.OwnJSON
	}
	raw, err := encode()
	if err != nil {
		return err
	}
	return s.emit(progress.Event{ID: c.CallID, Type: progress.Finished, Data: raw})
}

// restOfCatchUp is how many times as long as a page took its reader's next one waits.
const restOfCatchUp = 4

const (
	// calls that are read at once, so that a stream that is far behind takes no more memory than others
	missedPage = 500
	// calls that are sent where the log does not hold the last one that was, and that the feed may repeat
	missedMost = 10_000
)

// catchUp sends what the log has behind the last call that was sent, a page at a time: what the first one costs does not grow with what was
// missed. announced is where the feed is, which goes on from there.
func (s *stream) catchUp(ctx context.Context, announced string) error {
	last := s.After
	s.sent = recent{}
	known := announced == last // all that the feed may repeat
	for first, more := true, true; more; first = false {
		var page []agent.LogEntry
		if err := s.paced(ctx, func() (err error) {
			page, err = s.next(ctx, first)
			return err
		}); err != nil {
			return err
		}
		calls := make([]*progress.Call, len(page))
		for i, e := range page {
			s.sent.add(e.CallID)
			known = known || e.CallID == announced
			calls[i] = &progress.Call{LogEntry: filled(e)}
		}
		if err := s.sendAll(ctx, calls); err != nil {
			return err
		}
		more = len(page) == missedPage
	}
	if known {
		return nil
	}
	return s.noteBefore(ctx, last, announced)
}

// noteBefore notes the calls that the feed may have yet to announce, although the stream was resumed behind them.
func (s *stream) noteBefore(ctx context.Context, last, announced string) error {
	s.sent.before = map[string]bool{last: true}
	q := store.CallQuery{Before: last}
	for {
		page, err := s.o.stableCalls(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			s.sent.before[page[i].CallID] = true
			if page[i].CallID == announced {
				return nil
			}
		}
		if announced == "" || len(page) < missedPage || len(s.sent.before) >= missedMost {
			return nil
		}
		q.Before = page[len(page)-1].CallID
	}
}

func (s *stream) paced(ctx context.Context, read func() error) error {
	return s.o.catching.Paced(ctx, s.Reader, func(took time.Duration) time.Duration { return restOfCatchUp * took },
		read)
}

// recent remembers calls: the last ones that were added, at least missedMost of them, and what stands before all.
type recent struct{ last, earlier, before map[string]bool }

func (r *recent) add(callID string) {
	if r.last == nil || len(r.last) >= missedMost {
		r.last, r.earlier = map[string]bool{}, r.last
	}
	r.last[callID] = true
}

func (r *recent) has(callID string) bool {
	return r.last[callID] || r.earlier[callID] || r.before[callID]
}

// next reads the calls behind the last one that was sent, oldest first. Where there is none, or the log does not hold it, it begins, the first
// time, with the log's newest calls.
func (s *stream) next(ctx context.Context, first bool) (page []agent.LogEntry, err error) {
	unknown := s.After == ""
	if !unknown || !first {
		page, err = s.o.store.CallsAfter(ctx, s.After, missedPage)
		unknown = errors.Is(err, store.ErrNotFound)
	}
	if unknown && first {
		if s.After, err = s.o.frontOfNewest(ctx); err != nil {
			return nil, err
		}
		page, err = s.o.store.CallsAfter(ctx, s.After, missedPage)
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && s.After == "": // nothing was ever called
		return nil, nil
	case errors.Is(err, store.ErrNotFound): // erased meanwhile, and what is left behind it cannot be found from there
		return nil, errors.New("the calls that were missed are gone")
	case err != nil:
		return nil, err
	}
	return page, s.o.o.Store.Settled()
}

// frontOfNewest returns the call in front of the log's newest ones, "" where the log begins with these.
func (o *Operator) frontOfNewest(ctx context.Context) (string, error) {
	q := store.CallQuery{}
	for read := 0; ; read += missedPage {
		page, err := o.stableCalls(ctx, q)
		if err != nil || len(page) == 0 {
			return "", err
		}
		if read == missedMost {
			return page[0].CallID, nil
		}
		q.Before = page[len(page)-1].CallID
	}
}

// stableCalls reads a page of the log, newest first, of calls before which none appears any more.
func (o *Operator) stableCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	q.Limit, q.Stable = missedPage, true
	page, err := o.store.ListCalls(ctx, q)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return page, err
}
