package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// fetchClient returns a client that fetches from these hosts only.
func fetchClient(t testing.TB, allow ...string) *fetch.Client {
	t.Helper()
	transport, err := fetch.NewTransport(fetch.TransportOptions{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	c, err := fetch.New(transport, fetch.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A program's fetch yields the answer, the note, and a journal that serves it again.
func TestFetchFromProgram(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p := nativePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	got := p.Run(t.Context(), request("fetch", s.URL+"/plain"), &fakeHost{})
	if said(got) != `value "hello"` || len(got.Effects.Fetches) != 1 || got.Effects.Fetches[0].Status != 200 ||
		got.Effects.Fetches[0].Mode != "live" || got.Effects.Journal == nil {
		t.Fatalf("%s %+v", said(got), got.Effects)
	}
	s.Close()
	again := request("fetch", s.URL+"/plain")
	again.Recorded = got.Effects.Journal
	r := p.Run(t.Context(), again, &fakeHost{})
	if said(r) != `value "hello"` || r.Effects.Fetches[0].Mode != "recorded" ||
		r.Effects.Fetches[0].FetchedAt != got.Effects.Fetches[0].FetchedAt {
		t.Errorf("%s %+v", said(r), r.Effects)
	}
	other := request("fetch", s.URL+"/404")
	other.Recorded = got.Effects.Journal
	if r := p.Run(t.Context(), other, &fakeHost{}); r.Failure == nil || r.Failure.Detail != DetailDiverged {
		t.Error(said(r))
	}
	if r := p.Run(t.Context(), request("fetch", "https://127.0.0.1/"),
		&fakeHost{}); r.Authored == nil || r.Authored.Type != "denied" ||
		r.Effects.Fetches[0].ErrorKind != fetch.KindDenied {
		t.Errorf("%s %+v", said(r), r.Effects)
	}
}

// The largest permitted body reaches the program whole, whatever it contains, and the daemon keeps none of it.
func TestLargestBodyReachesTheProgram(t *testing.T) {
	const most = 16 << 20
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, strings.Repeat(r.URL.Query().Get("of"), most/8))
	}))
	t.Cleanup(s.Close)
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	for _, of := range []string{"<a>b</a>", "plain  \n", `"quotes"`} {
		source := program(fmt.Sprintf(
			"r, err := call.Fetch(%q)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn len(r.Body), nil",
			s.URL+"/?of="+url.QueryEscape(of)))
		got := p.Run(t.Context(), request(source), &fakeHost{})
		if said(got) != fmt.Sprintf("value %d", most) || len(got.Effects.Fetches) != 1 ||
			got.Effects.Fetches[0].Bytes != most {
			t.Errorf("%q: got %s, %+v, want %d bytes", of, said(got), got.Failure, most)
		}
	}
}

// A program can ask the daemon to repeat a request. A program that does not is served by old journals.
func TestRetryFromProgram(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%3 > 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(s.Close)
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	source := program(fmt.Sprintf(
		"r, err := call.FetchWith(recurgent.Request{URL: %q, Retry: 2})\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn r.Status, nil", s.URL))
	got := p.Run(t.Context(), request(source), &fakeHost{})
	if said(got) != "value 200" || len(got.Effects.Fetches) != 1 || got.Effects.Fetches[0].Retries != 2 {
		t.Errorf("got %s, %+v, want 200 after two retries", said(got), got.Effects.Fetches)
	}
	old := request(program(fmt.Sprintf(
		"r, err := call.Fetch(%q)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn r.Status, nil", s.URL)))
	old.Recorded = json.RawMessage(fmt.Sprintf(
		`{"v":1,"asks":[{"op":"fetch","params":{"url":%q},"result":{"status":203,"header":{},"body":"","fetched_at":""}}]}`, s.URL))
	if got := p.Run(t.Context(), old, &fakeHost{}); said(got) != "value 203" {
		t.Errorf("got %s from the journal, want 203", said(got))
	}
}

// A program that accepts cached answers gets one, and its journal holds it like any other.
func TestKeptAnswerReachesTheProgram(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		fmt.Fprint(w, asked.Add(1))
	}))
	t.Cleanup(s.Close)
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	source := program(fmt.Sprintf(
		"out := \"\"\n\tfor _, keep := range []bool{true, true, false} {\n\t\tr, err := call.FetchWith(recurgent.Request{URL: %q, Cache: keep})\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tout += r.Body\n\t}\n\treturn out, nil", s.URL))
	got := p.Run(t.Context(), request(source), &fakeHost{})
	var modes []string
	for _, f := range got.Effects.Fetches {
		modes = append(modes, f.Mode)
	}
	if said(got) != `value "112"` || strings.Join(modes, " ") != "live cached live" {
		t.Errorf("got %s, %q, want the first answer twice and then a new one", said(got), modes)
	}
	s.Close()
	rec := Recording{Request: request(source), Journal: got.Effects.Journal, Value: got.Value}
	if c, err := Replay(t.Context(), p, rec, &fakeHost{}); err != nil || !c.Equal {
		t.Errorf("replayed %q (%s), recorded %q, %v", c.Replayed, c.Diverged, c.Recorded, err)
	}
}

// The journal of a page is as large as the page: HTML escapes would make it too large to keep.
func TestJournalOfPageHasItsSize(t *testing.T) {
	page := strings.Repeat("<td>&</td>", 170_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, page) }))
	t.Cleanup(s.Close)
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	source := program(fmt.Sprintf(
		"r, err := call.Fetch(%q)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn len(r.Body), nil", s.URL))
	got := p.Run(t.Context(), request(source), &fakeHost{})
	if n := len(got.Effects.Journal); got.Effects.Truncated || n < len(page) || n > len(page)+2<<10 {
		t.Errorf("got a journal of %d bytes, truncated %v, for a page of %d", n, got.Effects.Truncated, len(page))
	}
	s.Close()
	if c, err := Replay(t.Context(), p, Recording{Request: request(source), Journal: got.Effects.Journal,
		Value: got.Value}, &fakeHost{}); err != nil || !c.Equal {
		t.Errorf("replayed %q (%s), recorded %q, %v", c.Replayed, c.Diverged, c.Recorded, err)
	}
}
