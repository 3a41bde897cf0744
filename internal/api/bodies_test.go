package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// slow is a runtime whose calls last until end is closed.
type slow struct {
	*fake
	begun chan string // methods of the calls that have started
	end   chan struct{}
	turn  sync.Mutex              // the fake remembers one call
	done  chan runtime.CallResult // of calls that outlive their requests
}

func (s *slow) Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error) {
	s.begun <- q.Method
	<-s.end
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.fake.Call(ctx, q)
}

func (s *slow) Start(runtime.CallRequest) (string, <-chan runtime.CallResult, error) {
	return knownCall, s.done, nil
}

// A thousand calls with the largest allowed arguments hold no more than the bound. The others get a Retry-After, and
// succeed once one of these has ended. Small bodies are always accepted.
func TestLargeBodiesAreBounded(t *testing.T) {
	t.Parallel()
	f := &slow{fake: &fake{}, begun: make(chan string), end: make(chan struct{}), done: make(chan runtime.CallResult)}
	o := DefaultOptions()
	reg := telemetry.NewRegistry()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(t, f), reg, telemetry.New(reg, telemetry.Build{}),
		document.OpenAPI
	handler, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	large := int(o.MaxBody) - 100
	filled := strings.Repeat("x", large)
	send := func(method string, size int, header ...string) *httptest.ResponseRecorder {
		open, end := `{"method":"`+method+`","args":["`, `"]}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/sessions/"+knownSession+"/calls",
			io.MultiReader(strings.NewReader(open), strings.NewReader(filled[:size]), strings.NewReader(end)))
		r.Host, r.ContentLength = "localhost", int64(len(open)+size+len(end))
		r.Header.Set("Content-Type", "application/json")
		for _, h := range header {
			r.Header.Set("Prefer", h)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	full := func(what string, w *httptest.ResponseRecorder) {
		t.Helper()
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable ||
			p.Code != codeBodiesFull || w.Header().Get("Retry-After") == "" {
			t.Fatalf("%s: got %d %s, Retry-After %q, want 503 %s", what, w.Code, w.Body, w.Header().Get("Retry-After"),
				codeBodiesFull)
		}
	}
	most := int(o.MaxBodies) / large
	ended := make(chan *httptest.ResponseRecorder, most)
	for range most - 1 {
		go func() { ended <- send("large", large) }()
		<-f.begun
	}
	if w := send("later", large, "respond-async"); w.Code != http.StatusAccepted { // it outlives its request
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	for range 1024 - most {
		full("one too many", send("large", large))
	}
	go func() { ended <- send("small", 1000) }()
	if got := <-f.begun; got != "small" {
		t.Errorf("%s has begun", got)
	}

	close(f.done) // the asynchronous call has ended: there is space as soon as that is noticed
	go func() {
		for {
			w := send("large", large)
			if w.Code == http.StatusOK {
				ended <- w
				return
			}
		}
	}()
	if got := <-f.begun; got != "large" {
		t.Errorf("%s has begun", got)
	}
	full("one too many again", send("large", large))
	close(f.end)
	for range most + 1 {
		if w := <-ended; w.Code != http.StatusOK {
			t.Errorf("a call that was taken got %d %s", w.Code, w.Body)
		}
	}
}
