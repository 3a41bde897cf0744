// Package progress carries what calls report while they run: the events of one call, kept for readers that join late,
// and a feed of every committed call. A call that reports nothing pays nothing, and a feed without readers costs one
// atomic read per call.
//
// It knows nothing about stores or HTTP. Its types may be used concurrently unless noted otherwise.
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
	Queued   = "call.queued"   // other calls of the session run first
	Selected = "call.selected" // the selection's decision; not sent for warm runs
	Forging  = "call.forging"  // a model is asked
	// the program is checked; sent only to the call that requested it, not to those that wait with it
	Gate          = "call.gate"
	Building      = "call.building"       // the executable of a stored program is gone and is compiled again
	Running       = "call.running"        // a new program runs
	AttemptFailed = "call.attempt_failed" // the program failed
	Finished      = "call.finished"       // data is the log entry; in the stream of a single call, it has the outcome
)

// Event is an event of a call. A stream can be resumed after the event with a given ID.
type Event struct {
	ID   string
	Type string
	Data json.RawMessage
}

// maxEvents bounds the events that are kept of a running call for readers that join late.
const maxEvents = 64

// Log collects the progress events of one call. The zero value is ready.
type Log struct {
	mu      sync.Mutex
	events  []Event       // guarded by mu
	changed chan struct{} // closed on the next event or at the end; nil while nobody waits; guarded by mu
	ended   bool          // guarded by mu
}

// Add appends an event. It drops data without a JSON encoding, and events beyond the first 64.
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

// End marks the call as finished. No more events follow.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

// wake notifies the waiting readers. The caller holds mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Last returns the type of the newest event, or "" if there is none.
func (l *Log) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return ""
	}
	return l.events[len(l.events)-1].Type
}

// Next returns the events after the first n. If there are none yet, it returns a channel that is closed on the next
// change. If no more events follow, ended is true.
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

// Follow passes the events after the first n to emit as they come. It returns nil when the call has ended, otherwise
// the error of emit or the cause of ctx's end.
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
