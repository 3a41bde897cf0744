package recurgent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/clients/go/api"
)

// A daemon answers requests in memory, one after another, and records them. A nil answer is a lost connection.
type daemon struct {
	answers []func(*http.Request) *http.Response // the last one repeats
	asked   []asked
}

type asked struct {
	line, body string
	header     http.Header
}

func (d *daemon) RoundTrip(r *http.Request) (*http.Response, error) {
	a := asked{line: r.Method + " " + r.URL.RequestURI(), header: r.Header}
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.body = string(data)
	}
	d.asked = append(d.asked, a)
	answer := d.answers[min(len(d.asked), len(d.answers))-1](r)
	if answer == nil {
		return nil, errors.New("connection lost")
	}
	answer.Request = r
	return answer, nil
}

func (d *daemon) lines() (all []string) {
	for _, a := range d.asked {
		all = append(all, a.line)
	}
	return all
}

type answer = func(*http.Request) *http.Response

func text(status int, kind, body string, header ...string) answer {
	return func(*http.Request) *http.Response {
		h := http.Header{"Content-Type": {kind}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
	}
}

func reply(status int, body string, header ...string) answer {
	return text(status, "application/json", body, header...)
}

func refusal(status int, code string, header ...string) answer {
	return text(status, "application/problem+json", `{"status":1,"code":"`+code+
		`","title":"No","detail":"why","hint":"what to do"}`, header...)
}

func stream(body string) answer { return text(200, "text/event-stream", body) }

func lost(*http.Request) *http.Response { return nil }

const (
	made  = `{"id":"sess_1","role":"calculator"}`
	five  = `{"call_id":"call_1","outcome":{"status":"ok","ok":true,"value":9007199254740993,"tool_role":"calculator","method_name":"add"}}`
	calls = "POST /v1/sessions/sess_1/calls"
)

// on runs f with a client of a daemon that gives the answers, in a synctest bubble.
func on(t *testing.T, f func(t *testing.T, c *Client, d *daemon), answers ...answer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{answers: answers}
		c, err := New(Options{URL: "http://daemon/", Token: "secret", HTTP: &http.Client{Transport: d}})
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, d)
	})
}

func session(t *testing.T, c *Client) *Session {
	t.Helper()
	s, err := c.Session(t.Context(), "calculator")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCall(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		r, err := session(t, c).Call(t.Context(), "add", 2, "x")
		var value json.RawMessage
		if err != nil || r.Into(&value) != nil || string(value) != "9007199254740993" || !r.Replayed {
			t.Errorf("got %s, %+v, %v", value, r, err)
		}
		if d.asked[1].line != calls || d.asked[1].body != `{"args":[2,"x"],"method":"add"}` &&
			d.asked[1].body != `{"method":"add","args":[2,"x"]}` ||
			d.asked[1].header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %+v", d.asked[1])
		}
	}, reply(201, made), reply(200, five, "Idempotent-Replayed", "true"))
}

func TestErrorOutcome(t *testing.T) {
	on(t, func(t *testing.T, c *Client, _ *daemon) {
		r, err := session(t, c).Call(t.Context(), "sell")
		if err != nil {
			t.Fatal(err)
		}
		var value any
		var failed *CallError
		if err := r.Into(&value); !errors.As(err, &failed) || failed.ErrorType != "not_today" || !failed.Authored ||
			failed.CallID != "call_1" || err.Error() != "shop.sell: not_today: closed" {
			t.Errorf("got %v", err)
		}
	}, reply(201, made), reply(200,
		`{"call_id":"call_1","outcome":{"status":"error","ok":false,"error_type":"not_today","error_message":"closed","authored":true,"tool_role":"shop","method_name":"sell"}}`))
}

// A call whose reply is lost is requested again with the same key and bytes, until it has ended.
func TestLostReply(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		s := session(t, c)
		began := time.Now()
		if r, err := s.Call(t.Context(), "add", 2, 3); err != nil || r.CallID != "call_1" {
			t.Errorf("got %+v, %v", r, err)
		}
		keys, bodies := map[string]bool{}, map[string]bool{}
		for _, a := range d.asked[1:] {
			keys[a.header.Get("Idempotency-Key")], bodies[a.body] = true, true
			if a.line != calls || !strings.HasPrefix(a.header.Get("Prefer"), "respond-async, wait=") {
				t.Errorf("asked %s, Prefer: %s", a.line, a.header.Get("Prefer"))
			}
		}
		if took := time.Since(began); len(d.asked) != 6 || len(keys) != 1 || len(bodies) != 1 ||
			took != 3160*time.Millisecond {
			t.Errorf("%d requests, %d keys, %d bodies, %s", len(d.asked), len(keys), len(bodies), took)
		}
	}, reply(201, made), lost, refusal(503, "queue_full", "Retry-After", "3"), refusal(409, "idempotency_key_in_use"),
		reply(202, `{"call_id":"call_1"}`), reply(200, five))
}

// Only safe refusals are retried. Others are returned to the caller.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answer
		want   string
		asked  int
	}{
		{"a refusal for good", refusal(422, "validation_failed"), "422 No: why (what to do)", 1},
		{"a refusal for the moment", refusal(429, "queue_full"), "429 No: why (what to do)", 6},
		{"a gateway that lost a reply", text(502, "text/html", "<html>"), "502 Bad Gateway", 1},
		{"a redirect", text(302, "text/html", "", "Location", "http://elsewhere/"), "302 Found", 1},
		{"a lost reply", lost, "connection lost", 1},
		{"no JSON", text(201, "text/html", "<html>"), errStrange.Error(), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			on(t, func(t *testing.T, client *Client, d *daemon) {
				_, err := client.Session(t.Context(), "calculator")
				if err == nil || !strings.Contains(err.Error(), c.want) || len(d.asked) != c.asked {
					t.Errorf("got %v after %d requests, want %s after %d", err, len(d.asked), c.want, c.asked)
				}
			}, c.answer)
		})
	}
	on(t, func(t *testing.T, c *Client, d *daemon) {
		var policy api.Policy
		err := c.Do(t.Context(), http.MethodGet, "/v1/policy", nil, &policy)
		var p *Problem
		if !errors.As(err, &p) || p.Status != 503 || p.Code != api.ProblemCodeReadOnly || len(d.asked) != 6 {
			t.Errorf("an operation by Do: %v after %d requests", err, len(d.asked))
		}
	}, refusal(503, "read_only"))
}

// The wait between retries ends with the context.
func TestWaitEndsWithContext(t *testing.T) {
	on(t, func(t *testing.T, c *Client, _ *daemon) {
		s := session(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Call(ctx, "add"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}, reply(201, made), refusal(409, "idempotency_key_in_use"))
}

// A stream resumes after the last event, and the reply is requested with the key of the call.
func TestStream(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		r, err := Request("add", 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		st, err := session(t, c).Stream(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for e, err := range st.Events(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.ID+e.Type+string(e.Data))
		}
		if want := []string{"1call.forging{\"a\":\n1}", "2call.running{}",
			"3call.finished{}"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if end, err := st.Reply(t.Context()); err != nil || end.CallID != "call_1" || st.CallID != "call_1" {
			t.Errorf("got %+v, %v", end, err)
		}
		events := "GET /v1/calls/call_1/events"
		if want := []string{"POST /v1/sessions", calls, events, events, events, events, events,
			calls}; !slices.Equal(d.lines(), want) {
			t.Errorf("asked %q", d.lines())
		}
		if d.asked[2].header.Get("Last-Event-ID") != "" || d.asked[3].header.Get("Last-Event-ID") != "1" ||
			d.asked[1].header.Get("Idempotency-Key") != d.asked[7].header.Get("Idempotency-Key") {
			t.Errorf("asked %+v", d.asked)
		}
	}, reply(201, made), reply(202, `{"call_id":"call_1"}`),
		stream("retry: 2000\n\nid: 1\nevent: call.forging\ndata: {\"a\":\ndata: 1}\n\nid: 2\nevent: call.running\ndata: {"),
		lost, refusal(503, "draining"), silent,
		stream(": ping\r\n\r\nid: 2\nevent: call.running\ndata: {}\n\nid: 3\nevent: call.finished\ndata: {}\n\n"),
		reply(200, five))
}

// silent returns a stream that delivers nothing.
func silent(r *http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(untilDone{r.Context()})}
}

type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// A stream ends on a permanent refusal, and with its context.
func TestStreamEnds(t *testing.T) {
	for name, answers := range map[string][]answer{
		"404 No":            {refusal(404, "not_found")},
		"410 No":            {stream("data: 1\n\n"), refusal(410, "gone")},
		errStrange.Error():  {text(200, "text/html", "")},
		"deadline exceeded": {silent},
		errTooLong.Error():  {stream("data: " + strings.Repeat("x", maxEvent) + "\n\n")},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, func(t *testing.T, c *Client, _ *daemon) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var last error
				for _, err := range c.Events(ctx, "call_0") {
					last = err
				}
				if last == nil || !strings.Contains(last.Error(), name) {
					t.Errorf("got %v, want %s", last, name)
				}
			}, answers...)
		})
	}
}

func TestPages(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		var got []string
		for r, err := range session(t, c).History(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.MethodName)
		}
		if !slices.Equal(got, []string{"add", "sqrt"}) || d.asked[2].line != "GET /v1/sessions/sess_1/history?after=1" {
			t.Errorf("got %q, asked %q", got, d.lines())
		}
		for tool, err := range c.Tools(t.Context()) {
			if err == nil {
				t.Errorf("a tool without a list: %+v", tool)
			}
		}
	}, reply(201, made), reply(200, `{"data":[{"seq":1,"method_name":"add"}],"next_cursor":"1","size":2}`),
		reply(200, `{"data":[{"seq":2,"method_name":"sqrt"}],"next_cursor":null,"size":2}`),
		refusal(401, "unauthenticated"))
}

func TestVerdict(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		v, err := c.Judge(t.Context(), "call_1", api.VerdictRequest{Verdict: api.VerdictRequestVerdictWrong,
			Expected: json.RawMessage("null")})
		if err != nil || v.CallID != "call_1" || d.asked[0].body != `{"expected":null,"verdict":"wrong"}` {
			t.Errorf("got %+v, %v, sent %s", v, err, d.asked[0].body)
		}
		if err := c.Cancel(t.Context(), "call_1"); err != nil || d.asked[1].line != "POST /v1/calls/call_1/cancel" {
			t.Errorf("got %v, asked %q", err, d.lines())
		}
	}, reply(200, `{"call_id":"call_1","verdict":"wrong"}`), reply(204, ""))
}

// Do sends any operation, with names in the path escaped as given, and decodes the documented reply.
func TestDo(t *testing.T) {
	on(t, func(t *testing.T, c *Client, d *daemon) {
		var policy api.Policy
		if err := c.Do(t.Context(), http.MethodPatch, "/v1/policy", map[string]any{"repair_enabled": false},
			&policy); err != nil || policy.RepairEnabled {
			t.Errorf("got %+v, %v", policy, err)
		}
		if a := d.asked[0]; a.line != "PATCH /v1/policy" || a.body != `{"repair_enabled":false}` ||
			a.header.Get("Content-Type") != "application/json" || a.header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %+v", a)
		}
		if err := c.Do(t.Context(), http.MethodDelete, "/v1/tools/"+url.PathEscape("a b/ü"), nil,
			nil); err != nil || d.asked[1].line != "DELETE /v1/tools/a%20b%2F%C3%BC" ||
			d.asked[1].header.Get("Content-Type") != "" {
			t.Errorf("%v, asked %+v", err, d.asked[1])
		}
		if err := c.Do(t.Context(), http.MethodGet, "/v1/policy", nil, &policy); !errors.Is(err, errStrange) {
			t.Errorf("a reply that is no JSON: %v", err)
		}
	}, reply(200, `{"repair_enabled":false,"newer":1}`), reply(204, ""), reply(200, `{`))
	for _, url := range []string{"127.0.0.1:8420", "ftp://a", "http://"} {
		if _, err := New(Options{URL: url}); err == nil || !strings.Contains(err.Error(), "such as http://") {
			t.Errorf("a client of %s: %v", url, err)
		}
	}
}
