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

// CallEvents passes the events of one call to emit, starting after the id after ("" for all). It ends after
// call.finished, when emit fails, or when ctx ends. For a call that has ended already, it emits only call.finished. It
// returns store.ErrNotFound for an unknown call.
func (o *Operator) CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error {
	seen, _ := strconv.Atoi(after)
	seen = max(0, seen) // an invalid id means the beginning
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

// EventQuery selects events: those after the call id After ("" for those from now on), of calls of Owner ("" for
// everyone's). Reader identifies whose stream it is.
type EventQuery struct {
	After, Owner, Reader string
	Previews             bool // include the beginnings of values
	// called once before the first event: every call that ends after it is emitted; may be nil
	Listens func()
}

// Events passes committed calls to emit, in the order of the log, until emit fails or ctx ends. Event ids are call ids,
// so a client can resume after a restart of either side: missed calls are read from the log. The slower the reader, the
// more there is to read, so the streams of one reader catch up one after another, with pauses.
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
		// a catch-up may have read calls that the feed announces afterwards
		calls = slices.DeleteFunc(calls, func(c *progress.Call) bool { return s.sent.has(c.CallID) })
		if err := s.sendAll(ctx, calls); err != nil {
			return err
		}
	}
}

// whileItLives returns a context that also ends with the runtime. The caller must call end.
func (o *Operator) whileItLives(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	life := o.calls.Life()
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// A stream is one reader's position in the log. After is the last call that was handled.
type stream struct {
	o *Operator
	EventQuery
	sent recent // by a catch-up; the feed may repeat these calls
	emit func(progress.Event) error
}

// sendAll sends the calls that the reader may see.
func (s *stream) sendAll(ctx context.Context, calls []*progress.Call) error {
	if len(calls) == 0 {
		return nil
	}
	last := calls[len(calls)-1].CallID
	// read all previews of a batch at once
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

// owns reports whether the reader may see the call.
func (s *stream) owns(ctx context.Context, c *progress.Call) bool {
	return s.Owner == "" || s.o.ownerOf(ctx, &c.LogEntry) == s.Owner
}

// send emits one call. A reader of its own calls gets the entry without data of others.
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

// restOfCatchUp is how many times the duration of a page its reader's next page waits.
const restOfCatchUp = 4

const (
	// calls per page, which bounds the memory of a stream that is far behind
	missedPage = 500
	// calls that are sent if the log does not have the last one that the client saw; also how many the feed may repeat
	missedMost = 10_000
)

// catchUp sends the calls in the log after the last one that was sent, a page at a time, so the cost of the first page
// does not depend on how many were missed. announced is the position of the feed, which continues from there.
func (s *stream) catchUp(ctx context.Context, announced string) error {
	last := s.After
	s.sent = recent{}
	known := announced == last // everything that the feed may repeat is in sent
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

// noteBefore notes the calls before the resume point that the feed may still announce.
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

// paced runs read in the reader's turn, and then makes the reader rest.
func (s *stream) paced(ctx context.Context, read func() error) error {
	return s.o.catching.Paced(ctx, s.Reader, func(took time.Duration) time.Duration { return restOfCatchUp * took },
		read)
}

// recent remembers the last calls that were added, at least missedMost of them, and those of noteBefore.
type recent struct{ last, earlier, before map[string]bool }

// add remembers a call. When last is full, it replaces earlier, so memory is bounded by two of them.
func (r *recent) add(callID string) {
	if r.last == nil || len(r.last) >= missedMost {
		r.last, r.earlier = map[string]bool{}, r.last
	}
	r.last[callID] = true
}

// has reports whether the call is remembered.
func (r *recent) has(callID string) bool {
	return r.last[callID] || r.earlier[callID] || r.before[callID]
}

// next returns the calls after the last one that was sent, oldest first. If there is none, or the log does not have it,
// the first page starts with the newest missedMost calls of the log.
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
	case errors.Is(err, store.ErrNotFound) && s.After == "": // the log is empty
		return nil, nil
	case errors.Is(err, store.ErrNotFound): // the last call was erased meanwhile, so its successors cannot be found
		return nil, errors.New("the missed calls are no longer stored")
	case err != nil:
		return nil, err
	}
	return page, s.o.o.Store.Settled()
}

// frontOfNewest returns the call before the newest missedMost calls of the log, or "" if the log has no more.
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

// stableCalls returns a page of the log, newest first, of calls before which no other call can appear any more.
func (o *Operator) stableCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	q.Limit, q.Stable = missedPage, true
	page, err := o.store.ListCalls(ctx, q)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return page, err
}
