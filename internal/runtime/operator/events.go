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
		if err := follow(ctx, running, seen, emit); err != nil {
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

// follow passes a running call's events on until the call has ended.
func follow(ctx context.Context, running *progress.Log, seen int, emit func(progress.Event) error) error {
	for {
		events, wait, ended := running.Next(seen)
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		if seen += len(events); ended {
			return nil
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// EventQuery selects events: those after the call id After ("" for those from now on), of calls of the owner ("" for everybody's). Reader is whose stream it is.
type EventQuery struct {
	After, Owner, Reader string
	Listens              func() // is called once, before the first event: whatever ends from then on is passed; nil: nobody waits for it
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
	if q.After != "" {
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
		for _, c := range calls {
			if s.sent[c.CallID] {
				continue
			}
			if err := s.send(ctx, c); err != nil {
				return err
			}
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
	sent map[string]bool // until the last catch-up: the feed may repeat those
	emit func(progress.Event) error
}

func (s *stream) send(ctx context.Context, c *progress.Call) error {
	s.After = c.CallID
	encode := c.JSON
	if s.Owner != "" {
		if s.o.ownerOf(ctx, &c.LogEntry) != s.Owner {
			return nil
		}
		encode = c.OwnJSON
	}
	raw, err := encode()
	if err != nil {
		return err
	}
	return s.emit(progress.Event{ID: c.CallID, Type: progress.Finished, Data: raw})
}

// restOfCatchUp is how many times as long as a catch-up took its reader's next one waits.
const restOfCatchUp = 4

// catchUp sends what the log has behind the last call that was sent. announced is where the feed is, which goes on from there.
func (s *stream) catchUp(ctx context.Context, announced string) error {
	var missed []agent.LogEntry
	sent := map[string]bool{}
	err := s.o.catching.Paced(ctx, s.Reader, func(took time.Duration) time.Duration { return restOfCatchUp * took }, func() (err error) {
		missed, err = s.o.callsAfter(ctx, s.After, announced, sent)
		return err
	})
	if err != nil {
		return err
	}
	s.sent = sent
	for i := range missed {
		sent[missed[i].CallID] = true
		if err := s.send(ctx, &progress.Call{LogEntry: missed[i]}); err != nil {
			return err
		}
	}
	return nil
}

// callsAfter reads the log back to the call after, oldest first; at most 10,000 entries. A call that the log does not
// hold any more counts as older than all. To before it adds the calls from there back to the one announced, which the feed
// has yet to announce.
func (o *Operator) callsAfter(ctx context.Context, after, announced string, before map[string]bool) ([]agent.LogEntry, error) {
	const page, most = 500, 10_000
	var newest []agent.LogEntry
	q := store.CallQuery{Limit: page, Stable: true}
	for found, reached := false, announced == ""; len(newest)+len(before) < most && !(found && reached); {
		entries, err := o.store.ListCalls(ctx, q)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		for i := range entries {
			id := entries[i].CallID
			found = found || id == after
			reached = reached || id == announced
			switch {
			case !found:
				newest = append(newest, entries[i])
			case !reached || announced == "":
				before[id] = true
			}
		}
		if len(entries) < page {
			break
		}
		q.Before = entries[len(entries)-1].CallID
	}
	slices.Reverse(newest)
	return newest, o.o.Store.Settled()
}
