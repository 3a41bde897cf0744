package httpcache

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// origin is a host whose answers a test sets. It counts and records requests.
type origin struct {
	t      *testing.T
	url    string
	now    time.Time
	cache  *Cache
	status int
	header http.Header
	body   string
	got    []*http.Request
	down   error // returned by the transport instead of an answer
}

func newOrigin(t *testing.T, header ...string) *origin {
	t.Helper()
	o := &origin{t: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), status: 200, body: "one"}
	o.says(header...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.got = append(o.got, r)
		if o.header.Get("Date") == "" {
			w.Header().Set("Date", o.now.Format(http.TimeFormat))
		}
		for name, values := range o.header {
			w.Header()[name] = values
		}
		tag := o.header.Get("Etag")
		if o.status == 200 && (tag != "" && r.Header.Get("If-None-Match") == tag || tag == "" &&
			o.header.Get("Last-Modified") != "" && r.Header.Get("If-Modified-Since") == o.header.Get("Last-Modified")) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(o.status)
		if o.status != http.StatusNotModified {
			io.WriteString(w, o.body)
		}
	}))
	t.Cleanup(server.Close)
	o.url = server.URL
	var err error
	if o.cache, err = New(1<<20, func() time.Time { return o.now }); err != nil {
		t.Fatal(err)
	}
	return o
}

// says sets the header of the next answers, in lines "Name: value".
func (o *origin) says(lines ...string) {
	o.header = http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		o.header.Add(name, value)
	}
}

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.down != nil {
		return nil, o.down
	}
	return http.DefaultTransport.RoundTrip(r)
}

var errDown = errors.New("the host is down")

// get requests the path with the header lines and returns the body, the source and the reported age.
func (o *origin) get(p Partition, path string, lines ...string) (body, source, age string) {
	o.t.Helper()
	r, err := http.NewRequest("GET", o.url+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		r.Header.Add(name, value)
	}
	p.Outage = func(err error) bool { return errors.Is(err, errDown) }
	a, err := o.cache.RoundTrip(r, p, o)
	if err != nil {
		return err.Error(), "", ""
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	a.Keep()
	o.cache.entries.CleanUp()
	return string(b), a.Source, a.Header.Get("Age")
}

// TestFreshness checks what a second request gets after some time, by the header of the first answer, when the host has
// something newer.
func TestFreshness(t *testing.T) {
	t.Parallel()
	const date = "Sun, 22 Nov 2026 12:00:00 GMT"
	for name, c := range map[string]struct {
		says  []string
		later time.Duration
		want  string // source
		age   string
	}{
		"nothing said": {nil, 0, Live, ""},
		"no heuristics (4.2.2)": {[]string{"Last-Modified: Sun, 22 Nov 2020 12:00:00 GMT"}, time.Second,
			Revalidated, "0"},
		"max-age (5.2.2.1)": {[]string{"Cache-Control: max-age=60"}, 59 * time.Second, Cached,
			"59"},
		"max-age is over": {[]string{"Cache-Control: max-age=60"}, 60 * time.Second, Live, ""},
		"max-age, quoted": {[]string{`Cache-Control: max-age="60"`}, 59 * time.Second, Cached,
			"59"},
		"names in any case": {[]string{"Cache-Control: MAX-AGE=60, Public"}, 59 * time.Second,
			Cached, "59"},
		"on two lines": {[]string{"Cache-Control: public", "Cache-Control: max-age=60"},
			59 * time.Second, Cached, "59"},
		"several values (4.2.1)": {[]string{"Cache-Control: max-age=60, max-age=90"}, 0, Live, ""},
		"no number": {[]string{"Cache-Control: max-age=60s",
			"Expires: Sun, 22 Nov 2026 13:00:00 GMT"}, 0, Live, ""},
		"a negative number": {[]string{"Cache-Control: max-age=-1"}, 0, Live, ""},
		"more than numbers go (1.2.2)": {[]string{"Cache-Control: max-age=99999999999999999999"},
			24 * time.Hour, Cached, "86400"},
		"s-maxage wins (5.2.2.10)": {[]string{"Cache-Control: max-age=600, s-maxage=60"}, 61 * time.Second,
			Live, ""},
		"max-age wins over Expires (5.3)": {[]string{"Cache-Control: max-age=60",
			"Expires: Sun, 22 Nov 2026 13:00:00 GMT"}, 61 * time.Second, Live, ""},
		"Expires": {[]string{"Date: " + date, "Expires: Sun, 22 Nov 2026 12:01:00 GMT"},
			59 * time.Second, Cached, "59"},
		"Expires is over": {[]string{"Date: " + date, "Expires: Sun, 22 Nov 2026 12:01:00 GMT"},
			60 * time.Second, Live, ""},
		"Expires by the host's clock": {[]string{"Date: Sun, 22 Nov 2026 11:00:00 GMT",
			"Expires: Sun, 22 Nov 2026 11:30:00 GMT"}, 0, Live, ""},
		"Expires: 0": {[]string{"Expires: 0", "Last-Modified: " + date}, 0, Revalidated,
			"0"},
		"Age (4.2.3)": {[]string{"Cache-Control: max-age=60", "Age: 50"}, 9 * time.Second,
			Cached, "59"},
		"Age is over": {[]string{"Cache-Control: max-age=60", "Age: 50"}, 10 * time.Second,
			Live, ""},
		"an old Date (4.2.3)": {[]string{"Cache-Control: max-age=60",
			"Date: Sun, 22 Nov 2026 11:59:10 GMT"}, 9 * time.Second, Cached, "59"},
		"a Date of tomorrow": {[]string{"Cache-Control: max-age=60",
			"Date: Mon, 23 Nov 2026 12:00:00 GMT"}, 59 * time.Second, Cached, "59"},
		"no-store (5.2.2.5)": {[]string{"Cache-Control: no-store, max-age=60", `Etag: "1"`}, 0, Live,
			""},
		"no-cache (5.2.2.4)": {[]string{"Cache-Control: no-cache, max-age=60", `Etag: "1"`}, 0,
			Revalidated, "0"},
		"no-cache of a field": {[]string{`Cache-Control: no-cache="x, y", max-age=60`, `Etag: "1"`},
			0, Revalidated, "0"},
		"a directive in a quoted string": {[]string{`Cache-Control: x="a, no-store, \", b", max-age=60`}, 0,
			Cached, "0"},
		"private (5.2.2.7)": {[]string{"Cache-Control: private, max-age=60"}, 0, Live, ""},
		"a cookie": {[]string{"Cache-Control: max-age=60", "Set-Cookie: a=b"}, 0, Live,
			""},
		"Vary: * (4.1)": {[]string{"Cache-Control: max-age=60", "Vary: Accept, *"}, 0, Live,
			""},
		"Vary": {[]string{"Cache-Control: max-age=60", "Vary: Accept-Language"}, 0,
			Cached, "0"},
		"validated (4.3.1)": {[]string{"Cache-Control: max-age=60", `Etag: "1"`}, time.Minute,
			Revalidated, "0"},
		"validated by a weak tag": {[]string{`Etag: W/"1"`}, time.Minute, Revalidated, "0"},
		"validated by date":       {[]string{"Last-Modified: " + date}, time.Minute, Revalidated, "0"},
		"must-revalidate and fresh (5.2.2.2)": {[]string{"Cache-Control: max-age=60, must-revalidate"},
			59 * time.Second, Cached, "59"},
		"a clock that goes back": {[]string{"Cache-Control: max-age=60"}, -time.Hour, Cached, "0"},
		"an unknown directive": {[]string{"Cache-Control: immutable, max-age=60, what"}, 0, Cached,
			"0"},
		"a comma too many": {[]string{"Cache-Control: , max-age=60,,"}, 0, Cached, "0"},
		"hop-by-hop fields are dropped (3.1)": {[]string{"Cache-Control: max-age=60", "Connection: X-Hop",
			"X-Hop: 1"}, 0, Cached, "0"},
		"status other than the first two (3)":   {[]string{"Cache-Control: max-age=60"}, 0, Cached, "0"},
		"a string that does not end is no list": {[]string{`Cache-Control: max-age=60, x="no-store`}, 0, Cached, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, c.says...)
			if body, source, _ := o.get(Partition{}, "/"); body != "one" || source != Live {
				t.Fatalf("the first request: %q from %s", body, source)
			}
			o.now = o.now.Add(c.later)
			if o.body = "two"; c.want == Revalidated {
				o.body = "one"
			}
			want := map[string]string{Live: "two"}[c.want]
			if want == "" {
				want = "one"
			}
			if body, source, age := o.get(Partition{}, "/"); body != want || source != c.want || age != c.age &&
				source != Live {
				t.Errorf("got %q from %s, age %q; want %q from %s, age %q", body, source, age, want, c.want, c.age)
			}
		})
	}
}

// Whether an answer may be cached depends on the status, on the credential, and on the partition (RFC 9111, sections 3
// and 3.5).
func TestStorable(t *testing.T) {
	t.Parallel()
	alone := Partition{Name: "one user", Private: true}
	for name, c := range map[string]struct {
		says   []string
		sends  []string
		status int
		in     Partition
		want   string
	}{
		"404": {[]string{"Cache-Control: max-age=60"}, nil, 404, Partition{}, Cached},
		"500": {[]string{"Cache-Control: max-age=60"}, nil, 500, Partition{}, Live},
		"206": {[]string{"Cache-Control: max-age=60"}, nil, 206, Partition{}, Live},
		"302": {[]string{"Cache-Control: max-age=60"}, nil, 302, Partition{}, Live},
		"a range": {[]string{"Cache-Control: max-age=60"}, []string{"Range: bytes=0-1"}, 200,
			Partition{}, Live},
		"own conditions": {[]string{"Cache-Control: max-age=60"}, []string{`If-None-Match: "x"`}, 200,
			Partition{}, Live},
		"not wanted": {[]string{"Cache-Control: max-age=60"}, []string{"Cache-Control: no-cache"}, 200,
			Partition{}, Live},
		"a credential": {[]string{"Cache-Control: max-age=60"}, []string{"Authorization: a"}, 200,
			Partition{}, Live},
		"a cookie": {[]string{"Cache-Control: max-age=60"}, []string{"Cookie: a"}, 200, Partition{},
			Live},
		"a credential, public": {[]string{"Cache-Control: max-age=60, public"}, []string{"Authorization: a"},
			200, Partition{}, Cached},
		"a credential, s-maxage": {[]string{"Cache-Control: s-maxage=60"}, []string{"Authorization: a"}, 200,
			Partition{}, Cached},
		"a credential, one user": {[]string{"Cache-Control: max-age=60"}, []string{"Authorization: a"}, 200, alone,
			Cached},
		"private, one user":     {[]string{"Cache-Control: private, max-age=60"}, nil, 200, alone, Cached},
		"s-maxage means shared": {[]string{"Cache-Control: s-maxage=60"}, nil, 200, alone, Live},
		"no-store, one user":    {[]string{"Cache-Control: no-store, max-age=60"}, nil, 200, alone, Live},
		"another header": {[]string{"Cache-Control: max-age=60"}, []string{"Accept: text/csv"}, 200,
			Partition{}, Cached},
		"304 to whom nothing is kept": {[]string{"Cache-Control: max-age=60"}, nil, 304, Partition{}, Live},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, c.says...)
			o.status = c.status
			o.get(c.in, "/", c.sends...)
			if _, source, _ := o.get(c.in, "/", c.sends...); source != c.want {
				t.Errorf("got it from %s, want %s", source, c.want)
			}
		})
	}
}

// Nothing is shared between partitions, credentials, headers and addresses.
func TestNothingIsShared(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "Cache-Control: public, max-age=60")
	one, two := Partition{Name: "a", Private: true}, Partition{Name: "b", Private: true}
	ask := func() (all []string) {
		for _, p := range []Partition{{}, one, two, {Name: "a"}, {Scope: "a"}} {
			for _, path := range []string{"/", "/?key=1", "/?key=2", "/x"} {
				for _, header := range [][]string{nil, {"Authorization: 1"}, {"Authorization: 2"}, {"X-Api-Key: 1"},
					{"A: b", "C: d"}, {"A: b", "A: d"}, {"A: bC: d"}} {
					_, source, _ := o.get(p, path, header...)
					all = append(all, source)
				}
			}
		}
		return all
	}
	for i, source := range ask() {
		if source != Live {
			t.Fatalf("request %d of the first round was answered from what another one got", i)
		}
	}
	for i, source := range ask() {
		if source != Cached {
			t.Fatalf("request %d of the second round came from %s", i, source)
		}
	}
}

// A stale answer replaces that of a failing host only if the host allowed it (RFC 5861, section 4; RFC 9111, section
// 4.2.4).
func TestStaleIfError(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		says   string
		later  time.Duration
		status int // 0 means that the host is down
		in     Partition
		want   string
	}{
		"allowed":                   {"max-age=10, stale-if-error=60", 70 * s, 503, Partition{}, Stale},
		"allowed, and no answer":    {"max-age=10, stale-if-error=60", 70 * s, 0, Partition{}, Stale},
		"too old":                   {"max-age=10, stale-if-error=60", 71 * s, 503, Partition{}, Live},
		"too old, and no answer":    {"max-age=10, stale-if-error=60", 71 * s, 0, Partition{}, ""},
		"not allowed":               {"max-age=10", 11 * s, 503, Partition{}, Live},
		"a status that is no fault": {"max-age=10, stale-if-error=60", 11 * s, 404, Partition{}, Live},
		"429":                       {"max-age=10, stale-if-error=60", 11 * s, 429, Partition{}, Live},
		"501":                       {"max-age=10, stale-if-error=60", 11 * s, 501, Partition{}, Live},
		"forbidden":                 {"max-age=10, stale-if-error=60, must-revalidate", 11 * s, 500, Partition{}, Live},
		"forbidden to shared": {"max-age=10, stale-if-error=60, proxy-revalidate", 11 * s, 502, Partition{},
			Live},
		"forbidden by s-maxage": {"s-maxage=10, stale-if-error=60", 11 * s, 504, Partition{}, Live},
		"forbidden by no-cache": {"no-cache, stale-if-error=60", 0, 504, Partition{}, Live},
		"one user": {"max-age=10, stale-if-error=60, proxy-revalidate", 11 * s, 502,
			Partition{Private: true}, Stale},
		"fresh": {"max-age=10", 9 * s, 0, Partition{}, Cached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, "Cache-Control: "+c.says, `Etag: "1"`)
			o.get(c.in, "/")
			o.now, o.status = o.now.Add(c.later), c.status
			if o.says("Cache-Control: no-store"); c.status == 0 {
				o.down = errDown
			}
			body, source, _ := o.get(c.in, "/")
			if source != c.want || (source == Stale || source == Cached) && body != "one" {
				t.Errorf("got %q from %q, want %q", body, source, c.want)
			}
		})
	}
	o := newOrigin(t, "Cache-Control: max-age=10, stale-if-error=60")
	o.get(Partition{}, "/")
	o.now, o.down = o.now.Add(11*s), errors.New("the policy forbids it")
	if body, source, _ := o.get(Partition{}, "/"); source != "" {
		t.Errorf("got %q from %s, want the error", body, source)
	}
}

// A validated answer takes over the host's new header fields. An answer that is not validated is requested again (RFC
// 9111, sections 3.2, 4.3.4).
func TestValidation(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "Cache-Control: max-age=10", `Etag: "1"`, "X-Kept: old", "Content-Type: text/csv")
	o.get(Partition{}, "/")
	o.now = o.now.Add(time.Minute)
	o.says("Cache-Control: max-age=100", `Etag: "1"`, "X-Kept: new", "Content-Type: text/html")
	if _, source, _ := o.get(Partition{}, "/"); source != Revalidated || o.got[1].Header.Get("If-None-Match") != `"1"` {
		t.Fatalf("got it from %s, asked with %v", source, o.got[1].Header)
	}
	o.now = o.now.Add(99 * time.Second)
	r, _ := http.NewRequest("GET", o.url, nil)
	r.Header.Set("User-Agent", "")
	if _, source, age := o.get(Partition{}, "/"); source != Cached || age != "99" {
		t.Errorf("got it from %s, age %s; want the new lifetime", source, age)
	}
	for _, e := range o.cache.entries.All() {
		if e.header.Get("X-Kept") != "new" || e.header.Get("Content-Type") != "text/csv" || string(e.body) != "one" {
			t.Errorf("the entry is %v %q", e.header, e.body)
		}
	}
	// The host validates another answer, so the cached one is of no use.
	o.now = o.now.Add(time.Hour)
	o.body, o.status = "two", http.StatusNotModified
	o.says(`Etag: "2"`)
	before := len(o.got)
	o.get(Partition{}, "/")
	if n := len(o.got) - before; n != 2 || o.got[len(o.got)-1].Header.Get("If-None-Match") != "" {
		t.Errorf("%d requests, the last with %v; want a second one without a condition", n, o.got[len(o.got)-1].Header)
	}
	// An answer that may not be cached removes the cached one.
	o = newOrigin(t, "Cache-Control: max-age=10", `Etag: "1"`)
	o.get(Partition{}, "/")
	o.now, o.body = o.now.Add(time.Minute), "two"
	o.says("Cache-Control: no-store")
	o.get(Partition{}, "/")
	if body, source, _ := o.get(Partition{}, "/"); body != "two" || source != Live {
		t.Errorf("got %q from %s", body, source)
	}
}

// A request that changes an address removes its answers, for all callers of the scope (RFC 9111, section 4.4).
func TestInvalidation(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "Cache-Control: max-age=60")
	one := Partition{Name: "a", Private: true}
	o.get(Partition{}, "/x?page=1")
	o.get(one, "/x")
	elsewhere := Partition{Scope: "another"}
	o.get(Partition{}, "/y")
	o.get(elsewhere, "/x")
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT"} {
		r, _ := http.NewRequest(method, o.url+"/x", nil)
		o.cache.Invalidate(r, "")
		_, shared, _ := o.get(Partition{}, "/x?page=1")
		_, private, _ := o.get(one, "/x")
		_, other, _ := o.get(Partition{}, "/y")
		if _, source, _ := o.get(elsewhere, "/x"); source != Cached {
			t.Errorf("after %s: another scope has lost its answer", method)
		}
		want := map[bool]string{true: Live, false: Cached}[method == "PUT"]
		if shared != want || private != want || other != Cached {
			t.Errorf("after %s: %s, %s, %s", method, shared, private, other)
		}
	}
}

// Forgetting one scope does not affect another.
func TestForget(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "Cache-Control: max-age=60")
	scopes := []Partition{{}, {Scope: "a"}, {Scope: "a", Name: "role", Private: true}}
	for _, p := range scopes {
		o.get(p, "/x")
	}
	o.cache.Forget("a")
	for i, want := range []string{Cached, Live, Live} {
		if _, source, _ := o.get(scopes[i], "/x"); source != want {
			t.Errorf("%+v: from %s, want %s", scopes[i], source, want)
		}
	}
}

// The cache stays within its bytes, and stores nothing that was not read to its end or not found good.
func TestBounds(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "Cache-Control: max-age=60")
	o.body = strings.Repeat("x", 1<<20/8)
	o.get(Partition{}, "/large")
	if _, source, _ := o.get(Partition{}, "/large"); source != Live {
		t.Errorf("an answer over an eighth of the cache came from %s", source)
	}
	o.body = strings.Repeat("x", 100<<10)
	for i := range 50 {
		o.get(Partition{}, fmt.Sprint("/", i))
	}
	size := 0
	for _, e := range o.cache.entries.All() {
		size += e.size()
	}
	if size > 1<<20 || size < 1<<19 {
		t.Errorf("the cache holds %d bytes of %d", size, 1<<20)
	}
	for name, read := range map[string]int{"half": 10, "all, and not kept": 1 << 20} {
		r, _ := http.NewRequest("GET", o.url+"/part", nil)
		a, err := o.cache.RoundTrip(r, Partition{}, o)
		if err != nil {
			t.Fatal(err)
		}
		io.CopyN(io.Discard, a.Body, int64(read))
		if name == "half" {
			a.Keep()
		}
		a.Body.Close()
		if _, ok := o.cache.entries.GetIfPresent(keyOf(r, Partition{})); ok {
			t.Errorf("an answer of which %s was read is kept", name)
		}
	}
}

func FuzzDirectives(f *testing.F) {
	for _, s := range []string{"max-age=60", `a="b, \"c", no-store`, `"`, `x=\`, "=,=",
		"max-age=99999999999999999999999"} {
		f.Add(s, "Sun, 22 Nov 2026 12:00:00 GMT", "7")
	}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, control, date, age string) {
		h := http.Header{"Cache-Control": {control}, "Date": {date}, "Expires": {date}, "Age": {age}}
		e := newEntry(place{}, 200, h, false, times{at, at})
		if e.age < 0 || e.currentAge(at.Add(-time.Hour)) < 0 {
			t.Errorf("an age of %s", e.age)
		}
		if !e.fresh(at) && e.fresh(at.Add(time.Hour)) {
			t.Error("an answer got fresh")
		}
		if !e.standsIn(at) && e.standsIn(at.Add(time.Hour)) {
			t.Error("an answer got usable")
		}
		if directivesOf(h).has("no-store") && !strings.Contains(strings.ToLower(control), "no-store") {
			t.Errorf("%q has no such directive", control)
		}
	})
}
