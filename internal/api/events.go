package api

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// Events are the streams that the interface needs from a runtime. Each returns when emit fails or ctx ends.
type Events interface {
	// CallEvents emits the events of a call after that id, until the call ends or emit fails.
	CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error
	// Events emits the end of calls until emit fails or ctx ends.
	Events(ctx context.Context, q operator.EventQuery, emit func(progress.Event) error) error
	// InboxCounts emits the number of inbox entries, at once and after each change.
	InboxCounts(ctx context.Context, emit func(progress.Event) error) error
}

// Server-sent events (the HTML standard, section 9.2) are sent as id, event and one line of JSON as data. Regular
// comments keep proxies from closing an idle connection.
const (
	eventBatch = 64 << 10 // bytes that one flush sends, at most, plus the last event
	pingEvery  = 15 * time.Second
	eventWrite = 10 * time.Second // a client that takes no event for that long is disconnected
)

// stream writes events. It sends the header with the first event or ping, so that an earlier error can still be a
// problem detail. One goroutine may use it.
type stream struct {
	w     *reply
	rc    *http.ResponseController
	begun bool
	buf   bytes.Buffer
}

// newStream returns a stream on w. It shortens the time that a client has to read a piece.
func newStream(w *reply) *stream {
	w.stall = eventWrite
	return &stream{w: w, rc: http.NewResponseController(w)}
}

// begin sends the header, once.
func (s *stream) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.buf.WriteString("retry: 2000\n\n")
}

// flush sends what is buffered. It returns an error if the client has gone.
func (s *stream) flush() error {
	_, err := s.w.Write(s.buf.Bytes())
	s.buf.Reset()
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// add buffers an event. An event without a type becomes a ping.
func (s *stream) add(e progress.Event) {
	s.begin()
	if e.Type == "" {
		s.buf.WriteString(": ping\n\n")
		return
	}
	if e.ID != "" {
		s.buf.WriteString("id: " + e.ID + "\n")
	}
	s.buf.WriteString("event: " + e.Type + "\ndata: ")
	s.buf.Write(e.Data) // encoding/json writes one line
	s.buf.WriteString("\n\n")
}

// send writes e and the events that are ready behind it, in one flush.
func (s *stream) send(e progress.Event, events <-chan progress.Event) error {
	s.add(e)
	for len(events) > 0 && s.buf.Len() < eventBatch {
		s.add(<-events)
	}
	return s.flush()
}

func (s *stream) ping() error {
	s.add(progress.Event{})
	return s.flush()
}

// resumeAt returns the id of the last event that the client has seen, or "".
func resumeAt(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("after")
}

// follow runs from, which emits events until it ends, and sends them with pings in between. It waits for from to
// return. Only the calling goroutine writes. It returns an error only if nothing was sent yet.
func follow(ctx context.Context, out *stream, from func(ctx context.Context,
	emit func(progress.Event) error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan progress.Event, 64) // events that are ready are sent together
	ended := make(chan error, 1)
	go func() {
		ended <- from(ctx, func(e progress.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var err error
	for err == nil {
		select {
		case e := <-events:
			err = out.send(e, events)
		case <-ping.C:
			err = out.ping()
		case err = <-ended:
			// events that were emitted before the end must still be sent
			if len(events) > 0 {
				for len(events) > 0 && out.send(<-events, events) == nil {
				}
				return nil
			}
			if out.begun || err == nil {
				return nil // after the header, only the end of the stream can show an error
			}
			return err
		}
	}
	// the client has gone: stop from, and wait for its end
	cancel()
	//lint:ignore S1005 the reader has gone: its error is of no use
	_ = <-ended
	return nil
}

// callEvents streams the events of one call until it ends.
func (s *server) callEvents(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	out := newStream(w)
	// HEAD must not wait for the call
	if r.Method == http.MethodHead {
		if _, err = w.run.CallView(r.Context(), id); err == nil {
			out.begin()
		}
		return noCall(err, id)
	}
	err = follow(r.Context(), out, func(ctx context.Context, emit func(progress.Event) error) error {
		return w.run.CallEvents(ctx, id, resumeAt(r), w.cutEvents(ctx, id, emit))
	})
	return noCall(err, id)
}

// events streams the end of every call. The header is sent once the subscription exists, so the client misses no event
// after it.
func (s *server) events(w *reply, r *http.Request) error {
	q := readQuery(r)
	previews := q.flag("previews")
	q.known = slices.AppendSeq(q.known, maps.Keys(q.values)) // unknown parameters are ignored here
	if err := q.err(); err != nil {
		return err
	}
	out := newStream(w)
	if r.Method == http.MethodHead {
		out.begin()
		return nil
	}
	return follow(r.Context(), out, func(ctx context.Context, emit func(progress.Event) error) error {
		listens := func() { _ = emit(progress.Event{}) } // it fails only if the client has gone; so does the next emit
		return w.run.Events(ctx, operator.EventQuery{After: resumeAt(r), Reader: w.owner, Owner: w.only(),
			Previews: previews, Listens: listens}, emit)
	})
}
