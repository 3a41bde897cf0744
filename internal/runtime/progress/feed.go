package progress

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Bounds of a reader.
const (
	feedKept  = 256                    // calls that wait for a reader
	restEach  = 100 * time.Microsecond // that a reader rests between takings, for each reader beyond restFree
	restFree  = 8
	restsMost = 50 * time.Millisecond
)

// Feed announces every committed call to its readers, in the order of the log. Its methods may be called concurrently.
type Feed struct {
	// Follow, where it is set, begins to announce what the store reports. It is called when the first reader subscribes, and what it
	// returns when the last one has gone. Without it calls are announced all the time.
	Follow func() (unfollow func(), err error)

	subscribing sync.Mutex // held before mu, and while Follow runs
	subscribed  int        // readers; guarded by subscribing
	unfollow    func()     // guarded by subscribing

	reading atomic.Int32
	mu      sync.Mutex
	readers map[*Reader]bool // guarded by mu
	last    string           // the call that was announced last, "" for none; guarded by mu
}

// A Call is a committed call, which all readers share. It must not be changed.
type Call struct {
	agent.LogEntry
	whole, own encoded
}

// encoded is a form of a call, made when the first reader wants it.
type encoded struct {
	once sync.Once
	raw  json.RawMessage
	err  error
}

func (e *encoded) of(entry func() agent.LogEntry) (json.RawMessage, error) {
	e.once.Do(func() { e.raw, e.err = json.Marshal(entry()) })
	return e.raw, e.err
}

// JSON returns the entry as JSON, made once for all readers.
func (c *Call) JSON() (json.RawMessage, error) {
	return c.whole.of(func() agent.LogEntry { return c.LogEntry })
}

// OwnJSON is JSON of the entry without what may be of others: agent.LogEntry.WithoutOthers.
func (c *Call) OwnJSON() (json.RawMessage, error) { return c.own.of(c.WithoutOthers) }

// Reader is one subscription. One goroutine uses it.
type Reader struct {
	feed   *Feed
	calls  chan *Call
	lost   chan struct{} // holds one; receives when calls were lost
	behind atomic.Bool
	taken  time.Time // when Next returned; zero at first
	from   string
}

// From is the call behind which Next returns all that the log has, since the reader subscribed or Next said that it is behind. The log may be
// ahead of it. "" where no call has been announced yet.
func (r *Reader) From() string { return r.from }

// Subscribe adds a reader, of what is committed from now on; stop removes it.
func (f *Feed) Subscribe() (r *Reader, stop func(), err error) {
	r = &Reader{feed: f, calls: make(chan *Call, feedKept), lost: make(chan struct{}, 1)}
	f.subscribing.Lock()
	defer f.subscribing.Unlock()
	f.add(r)
	if f.subscribed == 0 && f.Follow != nil {
		if f.unfollow, err = f.Follow(); err != nil {
			f.remove(r)
			return nil, nil, err
		}
	}
	f.subscribed++
	return r, func() { f.unsubscribe(r) }, nil
}

func (f *Feed) unsubscribe(r *Reader) {
	f.subscribing.Lock()
	defer f.subscribing.Unlock()
	f.remove(r)
	if f.subscribed--; f.subscribed == 0 && f.unfollow != nil {
		f.unfollow()
		f.unfollow = nil
		f.Passed("")
	}
}

func (f *Feed) add(r *Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == nil {
		f.readers = map[*Reader]bool{}
	}
	r.from = f.last
	f.readers[r] = true
	f.reading.Add(1)
}

func (f *Feed) remove(r *Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
	f.reading.Add(-1)
}

// Read reports whether there are readers.
func (f *Feed) Read() bool { return f.reading.Load() > 0 }

// Announce announces a committed call.
func (f *Feed) Announce(e *agent.LogEntry) {
	if !f.Read() {
		f.Passed(e.CallID)
		return
	}
	c := &Call{LogEntry: *e}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = e.CallID
	for r := range f.readers {
		select {
		case r.calls <- c:
		default:
			r.lose()
		}
	}
}

// Passed takes note of a call that nobody reads, in the place of Announce.
func (f *Feed) Passed(callID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = callID
}

// Lose has every reader catch up.
func (f *Feed) Lose() {
	if !f.Read() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		r.lose()
	}
}

func (r *Reader) lose() {
	r.behind.Store(true)
	select {
	case r.lost <- struct{}{}:
	default: // it knows
	}
}

// Next returns the calls that were committed since the last time, one at least. Behind says that some were lost, because the reader was
// too slow: then it has to catch up from the store. The error is the cause of ctx's end. Many readers rest between their takings, so that
// hundreds of them do not take the processor from the calls that they show.
func (r *Reader) Next(ctx context.Context) (calls []*Call, behind bool, err error) {
	if err := r.rest(ctx); err != nil {
		return nil, false, err
	}
	defer func() { r.taken = time.Now() }()
	for len(calls) == 0 {
		select {
		case c := <-r.calls:
			calls = append(calls, c)
		case <-r.lost:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		for len(r.calls) > 0 {
			calls = append(calls, <-r.calls)
		}
		if r.behind.Load() { // looked at last: what was lost stands before calls that were taken after it
			r.feed.mu.Lock()
			r.from = r.feed.last
			r.feed.mu.Unlock()
			for len(r.calls) > 0 {
				<-r.calls
			}
			r.behind.Store(false) // what is lost from now on is noticed
			return nil, true, nil
		}
	}
	return calls, false, nil
}

// Waiting is how many calls Next would return now.
func (r *Reader) Waiting() int { return len(r.calls) }

func (r *Reader) rest(ctx context.Context) error {
	others := time.Duration(r.feed.reading.Load()) - restFree
	left := min(others*restEach, restsMost) - time.Since(r.taken)
	if r.taken.IsZero() || left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
