package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A stageDaemon is a daemon that replies with what a test wants: the log, what runs, and a stream whose events come
// when the test says.
type stageDaemon struct {
	*httptest.Server
	mu      sync.Mutex
	log     []agent.LogEntry // newest first; guarded by mu
	running []agent.LogEntry // guarded by mu
	more    chan struct{}    // closed when the log grows; guarded by mu
	resumed []string         // Last-Event-ID of each connection; guarded by mu
	cut     chan struct{}    // closed to end all streams; guarded by mu
}

func newStageDaemon(t *testing.T) *stageDaemon {
	s := &stageDaemon{more: make(chan struct{}), cut: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/calls", s.list)
	mux.HandleFunc("GET /v1/events", s.events)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() { s.hangUp(); s.Close() })
	return s
}

func (s *stageDaemon) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.log
	if r.URL.Query().Get("status") == "running" {
		list = s.running
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": append([]agent.LogEntry{}, list...), "next_cursor": nil})
}

func (s *stageDaemon) events(w http.ResponseWriter, r *http.Request) {
	last := r.Header.Get("Last-Event-ID")
	s.mu.Lock()
	s.resumed = append(s.resumed, last)
	cut := s.cut
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 50\n\n: ping\n\n")
	for {
		s.mu.Lock()
		fresh, more := []agent.LogEntry{}, s.more
		for _, e := range s.log {
			if e.CallID == last {
				break
			}
			fresh = append(fresh, e)
		}
		s.mu.Unlock()
		select {
		case <-cut: // what ended since then is for the next stream
			return
		default:
		}
		for i := len(fresh) - 1; i >= 0; i-- {
			data, _ := json.Marshal(fresh[i])
			last = fresh[i].CallID
			fmt.Fprintf(w, "id: %s\nevent: call.finished\ndata: %s\n\n", last, data)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// end commits calls, in order.
func (s *stageDaemon) end(calls ...agent.LogEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range calls {
		s.log = append([]agent.LogEntry{e}, s.log...)
	}
	close(s.more)
	s.more = make(chan struct{})
}

func (s *stageDaemon) runs(calls ...agent.LogEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = calls
}

// hangUp ends every stream.
func (s *stageDaemon) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *stageDaemon) connections() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.resumed...)
}
