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
	feedKept  = 256                    // calls that wait for a slow reader
	restEach  = 100 * time.Microsecond // rest between two calls of Next, for each reader beyond restFree
	restFree  = 8
	restsMost = 50 * time.Millisecond
)

// Feed announces every committed call to its readers, in the order of the log. Its methods may be called concurrently.
type Feed struct {
	// Follow, if set, starts announcing what the store reports. It is called when the first reader subscribes. The
	// function that it returns is called when the last reader leaves. Without Follow, calls are announced all the time.
	Follow func() (unfollow func(), err error)

	subscribing sync.Mutex // held before mu, and while Follow runs
	subscribed  int        // readers; guarded by subscribing
	unfollow    func()     // guarded by subscribing

	reading atomic.Int32
	mu      sync.Mutex
	readers map[*Reader]bool // guarded by mu
	last    string           // ID of the last announced call; "" if there is none; guarded by mu
}

// A Call is a committed call that all readers share. It must not be modified.
type Call struct {
	agent.LogEntry
	whole, own encoded
}

// encoded is an encoding of a call, made when the first reader needs it.
type encoded struct {
	once sync.Once
	raw  json.RawMessage
	err  error
}

// of encodes the entry on the first call, and returns the same result on later ones.
func (e *encoded) of(entry func() agent.LogEntry) (json.RawMessage, error) {
	e.once.Do(func() { e.raw, e.err = json.Marshal(entry()) })
	return e.raw, e.err
}

// JSON returns the entry as JSON. It is encoded once for all readers.
func (c *Call) JSON() (json.RawMessage, error) {
	return c.whole.of(func() agent.LogEntry { return c.LogEntry })
}

// OwnJSON returns the JSON of agent.LogEntry.WithoutOthers, which leaves out content that may belong to other owners.
func (c *Call) OwnJSON() (json.RawMessage, error) { return c.own.of(c.WithoutOthers) }

// Reader is a subscription. It must be used by one goroutine.
type Reader struct {
	feed   *Feed
	calls  chan *Call
	lost   chan struct{} // capacity 1; receives when calls were lost
	behind atomic.Bool
	taken  time.Time // when Next last returned; zero before that
	from   string
}

// From returns the ID of the call after which Next returns everything in the log, as of the subscription or the last
// time that Next reported behind. The log may already be ahead of it. From returns "" if no call was announced yet.
func (r *Reader) From() string { return r.from }

// Subscribe adds a reader of the calls that are committed from now on. stop removes it.
func (f *Feed) Subscribe() (r *Reader, stop func(), err error) {
	r = &Reader{feed: f, calls: make(chan *Call, feedKept), lost: make(chan struct{}, 1)}
	f.subscribing.Lock()
	defer f.subscribing.Unlock()
	// Add the reader before following the store: a call that is committed in between is announced rather than missed.
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

// unsubscribe removes the reader, and stops following the store if it was the last. The feed's position is unknown from
// then on.
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

// Passed records a call that nobody reads, instead of Announce.
func (f *Feed) Passed(callID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = callID
}

// Lose makes every reader catch up from the store.
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

// lose marks the reader as behind and wakes it.
func (r *Reader) lose() {
	r.behind.Store(true)
	select {
	case r.lost <- struct{}{}:
	default: // the reader has been notified already
	}
}

// Next waits for calls and returns those committed since its last return, at least one. behind means that calls were
// lost because the reader was too slow, so it must catch up from the store. err is the cause of ctx's end. If there are
// many readers, each rests between calls of Next: hundreds of readers must not take the processor from the calls that
// they show.
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
		if r.behind.Load() { // check last: lost calls precede the calls that were taken after them
			r.feed.mu.Lock()
			r.from = r.feed.last
			r.feed.mu.Unlock()
			for len(r.calls) > 0 {
				<-r.calls
			}
			r.behind.Store(false) // later losses are noticed again
			return nil, true, nil
		}
	}
	return calls, false, nil
}

// Waiting returns how many calls Next would return now.
func (r *Reader) Waiting() int { return len(r.calls) }

// rest delays Next if there are more than restFree readers.
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
