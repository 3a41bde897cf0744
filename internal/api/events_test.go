package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/access"
)

// Streams use the format of server-sent events, pass the resume point on, and report errors before they begin.
func TestEventStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path, last string
		status           int
		want             string
	}{
		{"one call", "/v1/calls/" + knownCall + "/events", "2", 200,
			"retry: 2000\n\nid: finished\nevent: call.finished\ndata: {\"call_id\":\"" + knownCall +
				"\",\"after\":\"2\"}"},
		{"resumed by the query", "/v1/calls/" + knownCall + "/events?after=3", "", 200, "\"after\":\"3\"}"},
		{"all calls", "/v1/events", "call_0", 200,
			"retry: 2000\n\n: ping\n\nid: call_1\nevent: call.finished\ndata: {\"after\":\"call_0\"}"},
		{"no such call", "/v1/calls/call_nobody/events", "", 404, `"code":"not_found"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.last != "" {
				header = []string{"Last-Event-ID: " + tt.last}
			}
			res := newRig(t, nil).ask("GET", tt.path, "", header...)
			if res.status != tt.status || !strings.Contains(string(res.body), tt.want) {
				t.Errorf("got %d %q, want %d with %q", res.status, res.body, tt.status, tt.want)
			}
			if tt.status == 200 && res.header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("content type %q", res.header.Get("Content-Type"))
			}
		})
	}
}

// The header of the stream of all calls is sent once the subscription exists, so the client misses nothing after it.
func TestStreamBeginsOnceItListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, nil)
		c.calls.deaf = make(chan struct{})
		c.people.set(access.Principal{Name: "ann"})
		ctx, stop := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", http.NoBody)
		r.Header.Set("Authorization", "Bearer ann")
		w, ended := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(ended)
			c.handler.ServeHTTP(w, r)
		}()
		synctest.Wait()
		if w.Flushed {
			t.Errorf("it began before it listened: %q", w.Body)
		}
		close(c.calls.deaf)
		synctest.Wait()
		if !w.Flushed || w.Body.String() != "retry: 2000\n\n: ping\n\n" {
			t.Errorf("it listens, and has sent %q", w.Body)
		}
		stop()
		<-ended
	})
}
