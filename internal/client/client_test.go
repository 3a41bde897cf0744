package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A transport answers requests in memory.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// on returns a client whose requests are answered by the function.
func on(answer transport) *Client {
	c := New("http://daemon/", "secret", nil)
	c.http.Transport = answer
	return c
}

func reply(status int, kind, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(body))}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var sent string
	c := on(func(r *http.Request) (*http.Response, error) {
		got = r
		if r.Body != nil {
			data, _ := io.ReadAll(r.Body)
			sent = string(data)
		}
		return reply(201, "application/json", `{"id":"sess_1"}`), nil
	})
	id, err := c.CreateSession(t.Context(), "a role")
	if err != nil || id != "sess_1" {
		t.Errorf("got %q, %v", id, err)
	}
	if got.URL.String() != "http://daemon/v1/sessions" || got.Method != http.MethodPost ||
		got.Header.Get("Authorization") != "Bearer secret" ||
		got.Header.Get("Content-Type") != "application/json" || sent != `{"role":"a role"}` {
		t.Errorf("sent %s %s %v %s", got.Method, got.URL, got.Header, sent)
	}
	if _, named := got.Header["Recurgent-Namespace"]; named {
		t.Error("a namespace was sent that nobody named")
	}
	if _, err := c.In("acme").CreateSession(t.Context(),
		"a role"); err != nil || got.Header.Get("Recurgent-Namespace") != "acme" ||
		got.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("in a namespace: sent %v, %v", got.Header, err)
	}
	if path := MethodPath("a b", "ü%"); path != "/v1/tools/a%20b/methods/%C3%BC%25" {
		t.Errorf("the path is %s", path)
	}
}

// A failure is one clear error, with the daemon's own text if it sent any.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer transport
		want   string
	}{
		{"a problem", func(*http.Request) (*http.Response, error) {
			return reply(429, "application/problem+json",
				`{"status":429,"title":"Too Many Requests","detail":"the queue is full","hint":"wait"}`), nil
		}, "the daemon refused: 429 Too Many Requests: the queue is full (wait)"},
		{"a status alone", func(*http.Request) (*http.Response, error) {
			return reply(502, "text/html", "<html>"),
				nil
		}, "the daemon refused: 502 Bad Gateway"},
		{"a redirect", func(*http.Request) (*http.Response, error) {
			r := reply(302, "", "")
			r.Header.Set("Location", "http://elsewhere/")
			return r, nil
		}, "the daemon refused: 302 Found"},
		{"no daemon", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			"cannot reach the daemon at http://daemon: connection refused"},
		{"no JSON", func(*http.Request) (*http.Response, error) { return reply(200, "text/html", "<html>"), nil },
			"the reply of GET /x is not in recurgentd's format"},
		{"endless", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(zeros{}, maxReply+10))}, nil
		}, "the reply of GET /x is over"},
	} {
		var v any
		err := on(c.answer).Get(t.Context(), "/x", &v)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func stream(events ...string) *http.Response {
	return reply(200, "text/event-stream", strings.Join(events, ""))
}

// After a lost connection the stream resumes behind the last accepted event, with growing pauses.
func TestFollowResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []string
		c := on(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Header.Get("Last-Event-ID")+" after "+time.Since(began).String())
			switch len(asked) {
			case 1:
				return stream("id: 1\ndata: a\n\n", "id: 2\ndata: b\n\n", "id: 3\ndata: torn"), nil
			case 2:
				return reply(503, "", ""), nil
			case 3:
				return nil, errors.New("connection refused")
			}
			return stream("id: 3\ndata: c\n\n", "id: 4\ndata: stop\n\n"), nil
		})
		var taken []string
		connections := ""
		err := c.Follow(t.Context(), "/v1/events", "0", func(gone error) {
			if gone == nil {
				connections += "+"
			} else {
				connections += "-"
			}
		}, func(e Event) error {
			if string(e.Data) == "stop" {
				return ErrStop
			}
			taken = append(taken, e.ID+string(e.Data))
			return nil
		})
		if !errors.Is(err, ErrStop) || !slices.Equal(taken, []string{"1a", "2b", "3c"}) || connections != "+---+" {
			t.Errorf("got %v, %q, connections %s", err, taken, connections)
		}
		if want := []string{"0 after 0s", "2 after 100ms", "2 after 300ms",
			"2 after 700ms"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}

// A stream ends on a permanent refusal, if the first connection fails, or when ctx ends. A silent connection is closed.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	none := func(Event) error { return nil }
	for _, c := range []struct {
		name    string
		answers []transport // the last one repeats
		want    string
	}{
		{"gone for good", []transport{func(*http.Request) (*http.Response, error) { return stream(), nil },
			func(*http.Request) (*http.Response, error) { return reply(410, "", ""), nil }}, "410 Gone"},
		{"never there", []transport{func(*http.Request) (*http.Response, error) {
			return nil,
				errors.New("connection refused")
		}}, "cannot reach"},
		{"no stream", []transport{func(*http.Request) (*http.Response, error) {
			return reply(200, "text/html", ""),
				nil
		}}, "not a stream of events"},
		{"silence, then nothing to follow", []transport{func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: io.NopCloser(untilDone{r.Context()})}, nil
		}, func(*http.Request) (*http.Response, error) { return reply(404, "", ""), nil }}, "404 Not Found"},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			client := on(func(r *http.Request) (*http.Response, error) {
				asked++
				return c.answers[min(asked, len(c.answers))-1](r)
			})
			err := client.Follow(t.Context(), "/x", "", func(error) {}, none)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", c.name, err, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := on(func(*http.Request) (*http.Response, error) { return stream(), nil })
		times := 0
		err := client.Follow(ctx, "/x", "", func(gone error) {
			if times++; gone != nil && times > 3 {
				cancel()
			}
		}, none)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// untilDone is a body that delivers nothing until the request is canceled.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// progressLog records the progress of a call.
type progressLog struct{ lines []string }

func (p *progressLog) Started(id string) { p.lines = append(p.lines, "started "+id) }
func (p *progressLog) Connected(gone error) {
	if gone != nil {
		p.lines = append(p.lines, "lost")
	}
}
func (p *progressLog) Event(e Event) { p.lines = append(p.lines, e.Type) }

const replyOfCall = `{"call_id":"call_1","outcome":{"status":"ok","ok":true,"value":5}}`

// A call with progress is started, followed to its end, and its reply fetched by the same request with the same key.
func TestCallWithProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		keys := map[string]bool{}
		c := on(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Prefer")))
			if r.Method == http.MethodPost {
				keys[r.Header.Get("Idempotency-Key")] = true
			}
			switch len(asked) {
			case 1:
				return reply(202, "application/json", `{"call_id":"call_1"}`), nil
			case 2:
				return stream("event: call.forging\ndata: {}\n\n", "event: call.finished\ndata: {}\n\n"), nil
			case 3:
				return reply(409, "", ""), nil // the key is still busy
			}
			return reply(200, "application/json", replyOfCall), nil
		})
		p := &progressLog{}
		got, raw, err := c.CallWithProgress(t.Context(), "s", CallRequest{Method: "add"}, p)
		if err != nil || string(got.Outcome.Value) != "5" || !bytes.Equal(raw, []byte(replyOfCall)) {
			t.Errorf("got %+v, %s, %v", got.Outcome, raw, err)
		}
		calls := "POST /v1/sessions/s/calls"
		if want := []string{calls + " respond-async", "GET /v1/calls/call_1/events", calls,
			calls}; !slices.Equal(asked, want) || len(keys) != 1 {
			t.Errorf("asked %q with %d keys, want %q with one", asked, len(keys), want)
		}
		if want := []string{"started call_1", "call.forging"}; !slices.Equal(p.lines, want) {
			t.Errorf("reported %q, want %q", p.lines, want)
		}
	})
}

// A call is canceled if its caller gives up.
func TestCallWithProgressIsCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		canceled := false
		c := on(func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/events"):
				cancel()
				return stream(), nil
			case strings.HasSuffix(r.URL.Path, "/call_1/cancel"):
				canceled = r.Context().Err() == nil
				return reply(202, "application/json", "{}"), nil
			}
			return reply(202, "application/json", `{"call_id":"call_1"}`), nil
		})
		_, _, err := c.CallWithProgress(ctx, "s", CallRequest{Method: "add"}, &progressLog{})
		if !errors.Is(err, context.Canceled) || !canceled {
			t.Errorf("got %v, canceled: %v", err, canceled)
		}
	})
}
