package local

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Changes of the memory count only if the call ends ok, and the memory is not shared with the caller.
func TestMemory(t *testing.T) {
	t.Parallel()
	h := &Host{Programs: []Program{{Role: "desk", Method: "note", Run: func(c *recurgent.Call) (any, error) {
		c.Context["list"].([]any)[0] = "changed"
		if len(c.Args) > 0 {
			return nil, recurgent.Fail("not_today", "closed")
		}
		return true, nil
	}}}}
	given := map[string]any{"list": []any{"as it was"}}
	if o := h.Call(Request{Method: "note", Context: given}); !o.OK || o.Context["list"].([]any)[0] != "changed" {
		t.Errorf("got %+v", o)
	}
	if o := h.Call(Request{Method: "note", Args: []json.RawMessage{[]byte("1")},
		Context: given}); o.OK || o.Context != nil || o.ErrorType != "not_today" {
		t.Errorf("got %+v", o)
	}
	if given["list"].([]any)[0] != "as it was" {
		t.Errorf("the caller's memory is %v", given)
	}
}

// Every run of a program ends in an outcome.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	var h *Host
	run := func(role, method string, f func(*recurgent.Call) (any, error)) Program {
		return Program{Role: role, Method: method, Run: f}
	}
	h = &Host{Programs: []Program{
		run("a", "panics", func(*recurgent.Call) (any, error) { panic("boom") }),
		run("a", "plain", func(*recurgent.Call) (any, error) { return nil, errors.New("plain") }),
		run("a", "channel", func(*recurgent.Call) (any, error) { return make(chan int), nil }),
		run("a", "loops", func(c *recurgent.Call) (any, error) {
			o := c.Tool("a").Call("loops")
			return nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)
		}),
		run("a", "asks", func(c *recurgent.Call) (any, error) { return c.Ask("what", 1) }),
		run("a", "fetches", func(c *recurgent.Call) (any, error) { return c.Fetch("http://127.0.0.1/") }),
		run("a", "twice", func(*recurgent.Call) (any, error) { return "a", nil }),
		run("b", "twice", func(*recurgent.Call) (any, error) { return "<b>", nil }),
	}}
	for _, c := range []struct{ role, method, want string }{
		{"", "panics", "error execution: panic: boom"}, {"", "plain", "error tool_error: plain"},
		{"", "channel", "error non_serializable_result: json: unsupported type: chan int"},
		{"a", "loops", "error budget_exceeded: calls are nested too deep, or are too many"},
		{"", "asks", "error provider: there is no model here: fill in local.Host.Predict"},
		{"", "fetches", "error denied: fetches are denied here"},
		{"", "twice", `error invalid_input: more than one role has the method "twice"; name the role`},
		{"b", "twice", `"<b>"`},
		{"c", "twice", `error not_ejected: there is no program of role "c" and method "twice" here`},
	} {
		if got := h.Call(Request{Role: c.role, Method: c.method}).String(); got != c.want {
			t.Errorf("%s.%s: %s, want %s", c.role, c.method, got, c.want)
		}
	}
	h.Predict = func(_ recurgent.Signature, in map[string]any) (map[string]any, error) {
		return map[string]any{"answer": "that"}, nil
	}
	if got := h.Call(Request{Method: "asks"}).String(); got != `"that"` {
		t.Errorf("with a model it answers %s", got)
	}
}

// Get sends the program's request. Answers over the limit are refused.
func TestGet(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/big":
			_, _ = w.Write(make([]byte, maxBody+1))
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			w.Header().Add("X-Two", "1")
			w.Header().Add("X-Two", "2")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(r.Method + r.Header.Get("X-Mine") + "\xff"))
		}
	}))
	t.Cleanup(s.Close)
	got, err := Get(recurgent.Request{URL: s.URL, Method: "PUT", Header: map[string]string{"x-mine": "!"}, Body: "b"})
	if err != nil || got.Status != http.StatusTeapot || got.Body != "PUT!\ufffd" || got.Header["X-Two"] != "1, 2" {
		t.Errorf("got %+v, %v", got, err)
	}
	for path, want := range map[string]string{"/big": "resource_exhausted", "/round": "fetch_failed"} {
		if _, err := Get(recurgent.Request{URL: s.URL + path}); err == nil || recurgent.AsFailure(err).Type != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Get(recurgent.Request{URL: "::"}); err == nil || recurgent.AsFailure(err).Type != "denied" {
		t.Errorf("got %v", err)
	}
}

// Answers are compared as JSON values: numbers within the tolerance, integers to the last digit.
func TestEqual(t *testing.T) {
	t.Parallel()
	none, one := 0.0, 1.0
	for _, c := range []struct {
		want, got string
		tolerance *float64
		same      bool
	}{
		{`{"a":[1,2.0]}`, `{"a":[1.0,2]}`, nil, true}, {`1`, `1.0000000001`, nil, true},
		{`1`, `1.0000000001`, &none, false}, {`1`, `2`, &one, true}, {`1`, `2.1`, &one, false},
		{`9007199254740993`, `9007199254740992`, nil, false}, {`{"a":1}`, `{"a":1,"b":2}`, nil, false},
		{`{"a":null}`, `{"b":null}`, nil, false}, {`[1]`, `[1,2]`, nil, false}, {`"1"`, `1`, nil, false},
		{`null`, `null`, nil, true},
	} {
		if got := equal(json.RawMessage(c.want), json.RawMessage(c.got), c.tolerance); got != c.same {
			t.Errorf("%s and %s: %v", c.want, c.got, got)
		}
	}
	if !strings.Contains(compact(json.RawMessage("[ 1 ]")), "[1]") {
		t.Error("compact does not compact")
	}
}

// A fetch is repeated as often as requested, unless it may have performed a write.
func TestGetRetries(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		q             recurgent.Request
		status, asked int
	}{
		{recurgent.Request{URL: s.URL}, 503, 1}, {recurgent.Request{URL: s.URL, Retry: 1}, 503, 2},
		{recurgent.Request{URL: s.URL, Retry: 5}, 200, 3},
		{recurgent.Request{URL: s.URL, Method: "post", Retry: 5}, 503, 1},
	} {
		asked = 0
		r, err := Get(c.q)
		if err != nil || r.Status != c.status || asked != c.asked {
			t.Errorf("%+v: got %+v, %v after %d requests, want %d after %d", c.q, r, err, asked, c.status, c.asked)
		}
	}
}
