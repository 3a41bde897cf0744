package progress

import (
	"sync"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Feed announces every committed call to its readers. The zero value is ready.
type Feed struct {
	reading atomic.Int32
	mu      sync.Mutex
	readers map[*Reader]bool // guarded by mu
}

// Reader is one subscription. Calls receives committed calls. A reader that falls behind loses entries: Behind then
// reports true once, and the reader has to catch up from the store.
type Reader struct {
	Calls  chan agent.LogEntry
	behind atomic.Bool
}

// Behind reports whether entries were lost since the last time, and drops what is left in Calls.
func (r *Reader) Behind() bool {
	if !r.behind.Load() {
		return false
	}
	for len(r.Calls) > 0 {
		<-r.Calls
	}
	r.behind.Store(false)
	return true
}

// Subscribe adds a reader; stop removes it.
func (f *Feed) Subscribe() (r *Reader, stop func()) {
	r = &Reader{Calls: make(chan agent.LogEntry, 256)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == nil {
		f.readers = map[*Reader]bool{}
	}
	f.readers[r] = true
	f.reading.Add(1)
	return r, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.readers, r)
		f.reading.Add(-1)
	}
}

// Publish announces a committed call.
func (f *Feed) Publish(e *agent.LogEntry) {
	if f.reading.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		select {
		case r.Calls <- *e:
		default:
			r.behind.Store(true)
		}
	}
}
