package operator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

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

// EventQuery selects events: those after the call id After ("" for those from now on), of calls of the owner ("" for everybody's).
type EventQuery struct{ After, Owner string }

// Events passes committed calls to emit, in the order of the log, until emit fails or ctx ends. Ids are call ids, so a stream can be resumed after a restart of the
// client or of the daemon: what was missed is read from the call log.
func (o *Operator) Events(ctx context.Context, q EventQuery, emit func(progress.Event) error) error {
	reader, stop := o.calls.Feed().Subscribe()
	defer stop()
	s := stream{o: o, owner: q.Owner, after: q.After, emit: emit}
	if q.After != "" {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
	}
	for {
		if reader.Behind() {
			if err := s.catchUp(ctx); err != nil {
				return err
			}
		}
		select {
		case e := <-reader.Calls:
			if s.sent[e.CallID] {
				continue
			}
			if err := s.send(ctx, e); err != nil {
				return err
			}
		case <-o.calls.Life().Done():
			return context.Cause(o.calls.Life())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A stream is one reader's position in the log.
type stream struct {
	o     *Operator
	owner string // "" for everybody
	after string
	sent  map[string]bool // by the last catch-up: the feed may repeat those
	emit  func(progress.Event) error
}

func (s *stream) send(ctx context.Context, e agent.LogEntry) error {
	s.after = e.CallID
	if s.owner != "" && s.o.ownerOf(ctx, &e) != s.owner {
		return nil
	}
	if s.owner != "" {
		e = e.WithoutOthers()
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.emit(progress.Event{ID: e.CallID, Type: progress.Finished, Data: raw})
}

func (s *stream) catchUp(ctx context.Context) error {
	missed, err := s.o.callsAfter(ctx, s.after)
	if err != nil {
		return err
	}
	s.sent = map[string]bool{}
	for _, e := range missed {
		s.sent[e.CallID] = true
		if err := s.send(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// callsAfter reads the log back to the call after, oldest first; at most 10,000 entries. A call that the log does not
// hold any more counts as older than all.
func (o *Operator) callsAfter(ctx context.Context, after string) ([]agent.LogEntry, error) {
	const page, most = 500, 10_000
	var newest []agent.LogEntry
	q := store.CallQuery{Limit: page}
	for len(newest) < most {
		entries, err := o.store.ListCalls(ctx, q)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if i := slices.IndexFunc(entries, func(e agent.LogEntry) bool { return e.CallID == after }); i >= 0 {
			newest = append(newest, entries[:i]...)
			break
		}
		newest = append(newest, entries...)
		if len(entries) < page {
			break
		}
		q.Before = entries[len(entries)-1].CallID
	}
	slices.Reverse(newest)
	return newest, o.o.Store.Settled()
}
