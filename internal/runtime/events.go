package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Types of an Event.
const (
	EventQueued        = "call.queued"         // other calls of the session come first
	EventSelected      = "call.selected"       // what was decided; not told of warm runs
	EventForging       = "call.forging"        // a model is asked
	EventGate          = "call.gate"           // its program is checked; told to the call that asked, not to those that wait with it
	EventRunning       = "call.running"        // a new program runs
	EventAttemptFailed = "call.attempt_failed" // and did not serve
	EventFinished      = "call.finished"       // data is the log entry; of one call's stream, with its outcome
)

// Event is one thing that happened. ID is where a stream can be resumed.
type Event struct {
	ID   string
	Type string
	Data json.RawMessage
}

// maxProgress is how many events of a call under way are kept for those who come late.
const maxProgress = 64

// progress collects what a call tells of its way. A warm call tells nothing, so that it costs nothing.
type progress struct {
	mu      sync.Mutex
	told    []Event       // guarded by mu
	changed chan struct{} // closed when something is told or the call has ended; nil while nobody waits; guarded by mu
	ended   bool          // guarded by mu
}

func (p *progress) tell(kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return // progress is a service: what has no JSON form is not told
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.told) < maxProgress {
		p.told = append(p.told, Event{ID: strconv.Itoa(len(p.told) + 1), Type: kind, Data: raw})
		p.wake()
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake()
}

// wake is called with mu held.
func (p *progress) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// next returns what was told after the first n events, or what to wait for, or that nothing more will come.
func (p *progress) next(n int) (events []Event, wait <-chan struct{}, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < len(p.told) {
		return slices.Clone(p.told[n:]), nil, false
	}
	if p.ended {
		return nil, nil, true
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return nil, p.changed, false
}

// CallEvents hands the events of one call to emit, from the one after the id after ("" for all), and ends with
// call.finished, or when emit fails or ctx ends. Of a call that has ended only its end is told. store.ErrNotFound when
// there is none.
func (r *Runtime) CallEvents(ctx context.Context, callID, after string, emit func(Event) error) error {
	r.mu.Lock()
	c := r.running[callID]
	r.mu.Unlock()
	seen, _ := strconv.Atoi(after)
	seen = max(0, seen) // anything else starts from the beginning
	for c != nil {
		events, wait, ended := c.progress.next(seen)
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		if seen += len(events); ended {
			break
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
	view, err := r.CallView(ctx, callID)
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
	return emit(Event{ID: "finished", Type: EventFinished, Data: raw})
}

// feed tells those who listen of every call that was committed.
type feed struct {
	listening atomic.Int32
	mu        sync.Mutex
	listeners map[*listener]bool // guarded by mu
}

// listener is one stream. When it does not keep up it is told so and reads on from the store.
type listener struct {
	calls  chan agent.LogEntry
	behind atomic.Bool
}

func (f *feed) listen() (*listener, func()) {
	l := &listener{calls: make(chan agent.LogEntry, 256)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*listener]bool{}
	}
	f.listeners[l] = true
	f.listening.Add(1)
	return l, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, l)
		f.listening.Add(-1)
	}
}

// publish costs one atomic read while nobody listens.
func (f *feed) publish(e *agent.LogEntry) {
	if f.listening.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		select {
		case l.calls <- *e:
		default:
			l.behind.Store(true)
		}
	}
}

// Events hands every call that is committed to emit, in the order of the log, from the one after the call id after
// ("" for those from now on), until emit fails or ctx ends. Ids are call ids, so that a stream can be resumed after a
// restart of the client or of the daemon: what was missed is read from the call log.
func (r *Runtime) Events(ctx context.Context, after string, emit func(Event) error) error {
	l, stop := r.feed.listen()
	defer stop()
	sent := map[string]bool{} // by the last catch-up: those may stand in the channel too
	send := func(e agent.LogEntry) error {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		after = e.CallID
		return emit(Event{ID: e.CallID, Type: EventFinished, Data: raw})
	}
	catchUp := func() error {
		missed, err := r.callsAfter(ctx, after)
		if err != nil {
			return err
		}
		clear(sent)
		for _, e := range missed {
			sent[e.CallID] = true
			if err := send(e); err != nil {
				return err
			}
		}
		return nil
	}
	if after != "" {
		if err := catchUp(); err != nil {
			return err
		}
	}
	for {
		if l.behind.Load() {
			for len(l.calls) > 0 {
				<-l.calls
			}
			l.behind.Store(false)
			if err := catchUp(); err != nil {
				return err
			}
		}
		select {
		case e := <-l.calls:
			if sent[e.CallID] {
				continue
			}
			if err := send(e); err != nil {
				return err
			}
		case <-r.life.Done():
			return context.Cause(r.life)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// callsAfter reads the log back to the call after, oldest first; at most 10,000 entries. A call that the log does not
// hold any more is taken as older than all.
func (r *Runtime) callsAfter(ctx context.Context, after string) ([]agent.LogEntry, error) {
	const page, most = 500, 10_000
	var newest []agent.LogEntry
	q := store.CallQuery{Limit: page}
	for len(newest) < most {
		entries, err := r.store.ListCalls(ctx, q)
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
	return newest, nil
}
