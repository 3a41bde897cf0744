package replicas

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// most is how many events a reader takes of one stream at most, before it goes elsewhere.
const most = 300

// silence is how long a stream may bring nothing before its reader goes elsewhere: more than the time between pings.
const silence = 20 * time.Second

// A Reader follows the event stream of a namespace, at another address whenever a stream ends or was long enough,
// always behind the last event that it has. Its methods may be called concurrently.
type Reader struct {
	load      *Load
	namespace string
	stop      context.CancelFunc
	stopped   chan struct{}
	came      chan struct{} // holds one while there may be events that Await has not counted

	mu      sync.Mutex
	ids     []string // of calls, as events came
	streams int
}

// Follow reads events behind that of the call, until Stop.
func (l *Load) Follow(namespace, after string) *Reader {
	ctx, stop := context.WithCancel(context.Background())
	r := &Reader{load: l, namespace: namespace, stop: stop, stopped: make(chan struct{}), came: make(chan struct{}, 1),
		ids: []string{after}}
	go func() {
		defer close(r.stopped)
		random := rand.New(rand.NewPCG(l.Seed, 1<<33))
		for ctx.Err() == nil {
			r.read(ctx, l.Addresses[random.IntN(len(l.Addresses))], 1+random.IntN(most))
			select {
			case <-time.After(50 * time.Millisecond): // a daemon that is away is not asked without end
			case <-ctx.Done():
			}
		}
	}()
	return r
}

// Stop ends the reader, and returns the ids of the events' calls in their order, and how many streams it took.
func (r *Reader) Stop() (ids []string, streams int) {
	r.stop()
	<-r.stopped
	return r.ids, r.streams
}

// Await waits until that many events have come, or too long.
func (r *Reader) Await(events int) {
	end := time.After(rig.Patience)
	for {
		r.mu.Lock()
		n := len(r.ids)
		r.mu.Unlock()
		if n >= events {
			return
		}
		select {
		case <-r.came:
		case <-end:
			return
		}
	}
}

// read follows one stream to its end, or for so many events. An event counts once its last line is there.
func (r *Reader) read(ctx context.Context, address string, events int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	r.mu.Lock()
	last := r.ids[len(r.ids)-1]
	r.streams++
	r.mu.Unlock()
	began, lines := time.Now(), 0
	defer func() {
		r.load.Journal.write(map[string]any{"at": began, "ms": time.Since(began).Milliseconds(), "events": address,
			"after": last, "lines": lines})
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/events", http.NoBody)
	if err != nil {
		return
	}
	req.Header.Set("Last-Event-Id", last)
	if r.namespace != "" {
		req.Header.Set(namespaceHeader, r.namespace)
	}
	client := newHTTP(0)
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if body, _ := io.ReadAll(resp.Body); !mayRepeat(resp.StatusCode) {
			r.load.problem("events after %s: %d %s", last, resp.StatusCode, body)
		}
		return
	}
	scanner, id, taken := bufio.NewScanner(resp.Body), "", 0
	scanner.Buffer(nil, 4<<20)
	for taken < events && scanner.Scan() {
		lines++
		watch.Reset(silence)
		if text, ok := strings.CutPrefix(scanner.Text(), "id: "); ok {
			id = text
		}
		if scanner.Text() == "" && id != "" {
			r.mu.Lock()
			r.ids = append(r.ids, id)
			r.mu.Unlock()
			id = ""
			taken++
			select {
			case r.came <- struct{}{}:
			default:
			}
		}
	}
	_ = scanner.Err() // a daemon that was killed: the next stream goes on where this one ended
}
