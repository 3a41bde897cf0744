// Package progress carries what calls report while they run: the events of one call, kept for readers that join late,
// and a feed of every committed call. A call that reports nothing pays nothing, and a feed without readers costs one
// atomic read per call.
//
// It knows nothing of stores or HTTP. Its types may be used concurrently.
package progress

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

// Types of an Event.
const (
	Queued   = "call.queued"   // other calls of the session come first
	Selected = "call.selected" // what was decided; not sent for warm runs
	Forging  = "call.forging"  // a model is asked
	// its program is checked; sent to the call that asked, not to those that wait with it
	Gate          = "call.gate"
	Building      = "call.building"       // what is made of a stored program is gone, and the compiler makes it anew
	Running       = "call.running"        // a new program runs
	AttemptFailed = "call.attempt_failed" // the program failed
	Finished      = "call.finished"       // data is the log entry; in one call's stream, with its outcome
)

// Event is one thing that happened. A stream can be resumed after the event with that ID.
type Event struct {
	ID   string
	Type string
	Data json.RawMessage
}

// maxEvents is how many events of a running call are kept for readers who come late.
const maxEvents = 64

// Log collects the progress events of one call. The zero value is ready.
type Log struct {
	mu      sync.Mutex
	events  []Event       // guarded by mu
	changed chan struct{} // closed on the next event or at the end; nil while nobody waits; guarded by mu
	ended   bool          // guarded by mu
}

// Add appends an event. Data without a JSON encoding, and events past the first 64, are dropped.
func (l *Log) Add(kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) < maxEvents {
		l.events = append(l.events, Event{ID: strconv.Itoa(len(l.events) + 1), Type: kind, Data: raw})
		l.wake()
	}
}

// End marks the call as finished: no more events follow.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

// wake is called with mu held.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Last returns the type of the newest event, "" before the first one.
func (l *Log) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return ""
	}
	return l.events[len(l.events)-1].Type
}

// Next returns the events after the first n; without any, a channel that is closed on the next change; or ended, when no
// more events follow.
func (l *Log) Next(n int) (events []Event, wait <-chan struct{}, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < len(l.events) {
		return slices.Clone(l.events[n:]), nil, false
	}
	if l.ended {
		return nil, nil, true
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return nil, l.changed, false
}

// Follow passes the events after the first n to emit, as they come, until the call has ended, emit fails or ctx ends.
func (l *Log) Follow(ctx context.Context, n int, emit func(Event) error) error {
	for {
		events, wait, ended := l.Next(n)
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		if n += len(events); ended {
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
