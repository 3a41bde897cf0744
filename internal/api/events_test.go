package api

import (
	"strings"
	"testing"
)

// Streams speak the format of server-sent events, pass on where to resume, and report faults before they begin.
func TestEventStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path, last string
		status           int
		want             string
	}{
		{"one call", "/v1/calls/" + knownCall + "/events", "2", 200, "retry: 2000\n\nid: finished\nevent: call.finished\ndata: {\"call_id\":\"" + knownCall + "\",\"after\":\"2\"}"},
		{"resumed by the query", "/v1/calls/" + knownCall + "/events?after=3", "", 200, "\"after\":\"3\"}"},
		{"all calls", "/v1/events", "call_0", 200, "retry: 2000\n\n: ping\n\nid: call_1\nevent: call.finished\ndata: {\"after\":\"call_0\"}"},
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
