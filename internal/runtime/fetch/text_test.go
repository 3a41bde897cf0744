package fetch

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/andybalholm/brotli"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func brotlied(text string) string {
	var b bytes.Buffer
	z := brotli.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// served is a body and its header, as sent by a server.
type served struct {
	encoding, contentType, body string
	length                      int // Content-Length, if it differs from the body's length
}

// serve returns a server that answers every request with s.
func (s served) serve(t testing.TB) (*httptest.Server, string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.encoding != "" {
			w.Header().Set("Content-Encoding", s.encoding)
		}
		w.Header()["Content-Type"] = []string{s.contentType}
		w.Header().Set("Content-Length", strconv.Itoa(max(s.length, len(s.body))))
		io.WriteString(w, s.body)
	}))
	t.Cleanup(server.Close)
	return server, strings.TrimPrefix(server.URL, "http://")
}

// A body is unpacked and converted to UTF-8, and the header describes the result. A body that cannot be converted is a
// failure with a kind.
func TestBodiesAreUnpackedAndDecoded(t *testing.T) {
	t.Parallel()
	const umlauts, latin = "Größe", "Gr\xf6\xdfe"
	late := "<html><head></head><body>" + strings.Repeat("x", 2000) + umlauts
	for name, c := range map[string]struct {
		served                       served
		want, contentType, kind, err string
	}{
		"plain": {served: served{"", "text/plain", "hello", 0}, want: "hello", contentType: "text/plain"},
		"gzip": {served: served{"gzip", "text/plain", gzipped("hello"), 0}, want: "hello",
			contentType: "text/plain"},
		"x-gzip": {served: served{"X-GZIP", "text/plain", gzipped("hello"), 0}, want: "hello",
			contentType: "text/plain"},
		"br": {served: served{"br", "application/json", brotlied(`{"a":1}`), 0}, want: `{"a":1}`,
			contentType: "application/json"},
		"both": {served: served{"gzip, br", "text/plain", brotlied(gzipped("hello")), 0}, want: "hello",
			contentType: "text/plain"},
		"identity": {served: served{"identity", "text/plain", "hello", 0}, want: "hello",
			contentType: "text/plain"},
		"coded nothing": {served: served{"gzip", "text/plain", "", 0}, contentType: "text/plain"},
		"three codings": {served: served{"gzip,gzip,gzip", "text/plain", gzipped(gzipped(gzipped("hello"))), 0},
			kind: KindEncoding, err: "too many"},
		"unasked coding": {served: served{"zstd", "text/plain", "hello", 0}, kind: KindEncoding, err: "zstd"},
		"no gzip at all": {served: served{"gzip", "text/plain", "hello hello hello", 0}, kind: KindEncoding,
			err: "cannot be unpacked"},
		"no br at all": {served: served{"br", "text/plain", strings.Repeat("\xff", 99), 0}, kind: KindEncoding,
			err: "cannot be unpacked"},
		"wrong checksum": {served: served{"gzip", "text/plain", gzipped("hello")[:18] + "\x00\x00\x00\x00\x00\x00\x00",
			0}, kind: KindEncoding, err: "cannot be unpacked"},
		"cut gzip": {served: served{"gzip", "text/plain", gzipped(strings.Repeat("hello", 9))[:20], 0},
			kind: KindIncomplete, err: "cut off"},
		"cut br": {served: served{"br", "text/plain", brotlied(strings.Repeat("hello world", 9))[:12], 0},
			kind: KindIncomplete, err: "cut off"},
		"cut": {served: served{"", "text/plain", "hello", 9}, kind: KindIncomplete, err: "cut off"},
		"cut while coded": {served: served{"gzip", "text/plain", gzipped("hello")[:9], 99}, kind: KindIncomplete,
			err: "cut off"},
		"gzip bomb": {served: served{"gzip", "text/plain", gzipped(strings.Repeat("x", testMax+1)), 0},
			kind: KindTooLarge},
		"br bomb": {served: served{"br", "text/plain", brotlied(strings.Repeat("x", testMax+1)), 0},
			kind: KindTooLarge},
		"bomb in a bomb": {served: served{"gzip, gzip", "text/plain", gzipped(gzipped(strings.Repeat("x", 9*testMax))),
			0}, kind: KindTooLarge},
		"text bomb": {served: served{"", "text/plain; charset=windows-1252", strings.Repeat("\x80", testMax/2),
			0}, kind: KindTooLarge},

		"latin1": {served: served{"", "text/plain; charset=ISO-8859-1", latin, 0}, want: umlauts,
			contentType: "text/plain; charset=utf-8"},
		"latin1 of no word": {served: served{"", "text/csv", latin, 0}, want: umlauts,
			contentType: "text/csv; charset=utf-8"},
		"UTF-8 with a damaged byte": {served: served{"", "text/csv", strings.Repeat(umlauts, 9) + "\xe9", 0},
			want: strings.Repeat(umlauts, 9) + "\ufffd", contentType: "text/csv"},
		"a page with a damaged byte": {served: served{"", "text/html", "<p>" + strings.Repeat(umlauts, 9) + "\xe9", 0},
			want: "<p>" + strings.Repeat(umlauts, 9) + "\ufffd", contentType: "text/html"},
		"UTF-16 without a mark": {served: served{"", "text/csv", "N\x00a\x00m\x00e\x00\xfc\x00", 0}, want: "Nameü",
			contentType: "text/csv; charset=utf-8"},
		"no type": {served: served{"", "", umlauts, 0}, want: umlauts},
		"utf-8": {served: served{"", "text/csv;header=present", umlauts, 0}, want: umlauts,
			contentType: "text/csv;header=present"},
		"other parameters": {served: served{"", "text/csv; header=present; charset=latin1", latin, 0},
			want: umlauts, contentType: "text/csv; charset=utf-8; header=present"},
		"meta": {served: served{"", "text/html", `<meta charset="iso-8859-1">` + latin, 0},
			want: `<meta charset="iso-8859-1">` + umlauts, contentType: "text/html; charset=utf-8"},
		"header before meta": {served: served{"", "text/html; charset=utf-8",
			`<meta charset="iso-8859-1">` + umlauts, 0}, want: `<meta charset="iso-8859-1">` + umlauts,
			contentType: "text/html; charset=utf-8"},
		"meta of seven bits": {served: served{"", "text/html", "<meta charset=iso-2022-jp>\x1b$B$\"\x1b(B", 0},
			want: "<meta charset=iso-2022-jp>あ", contentType: "text/html; charset=utf-8"},
		"UTF-8 after much ASCII": {served: served{"", "text/html", late, 0}, want: late, contentType: "text/html"},
		"mark": {served: served{"", "text/plain; charset=latin1", "\xef\xbb\xbf" + umlauts, 0},
			want: umlauts, contentType: "text/plain; charset=utf-8"},
		"XML that says UTF-16": {served: served{"", "text/xml", `<?xml version="1.0" encoding="utf-16"?><a>ö</a>`, 0},
			want: `<?xml version="1.0" encoding="UTF-8"?><a>ö</a>`, contentType: "text/xml"},
		"UTF-16": {served: served{"", "application/json", "\xff\xfe{\x00}\x00", 0}, want: "{}",
			contentType: "application/json; charset=utf-8"},
		"shift jis": {served: served{"", "text/html; charset=shift_jis", "\x83e\x83X\x83g", 0},
			want: "テスト", contentType: "text/html; charset=utf-8"},
		"XML": {served: served{"", "application/rss+xml",
			`<?xml version="1.0" encoding="ISO-8859-1"?><a>` + latin, 0},
			want:        `<?xml version="1.0" encoding="UTF-8"?><a>` + umlauts,
			contentType: "application/rss+xml; charset=utf-8"},
		"JSON is UTF-8": {served: served{"", "application/json; charset=latin1", `"` + umlauts + `"`, 0},
			want: `"` + umlauts + `"`, contentType: "application/json; charset=utf-8"},
		"JSON that is not": {served: served{"", "application/json; charset=latin1", `"` + latin + `"`, 0},
			want: `"` + umlauts + `"`, contentType: "application/json; charset=utf-8"},
		"unknown, yet UTF-8": {served: served{"", "text/plain; charset=klingon", umlauts, 0}, want: umlauts,
			contentType: "text/plain; charset=utf-8"},
		"unknown": {served: served{"", "text/plain; charset=klingon", latin, 0}, kind: KindEncoding,
			err: "klingon"},
		"replaced by standard": {served: served{"", "text/plain; charset=iso-2022-kr", latin, 0}, kind: KindEncoding,
			err: "iso-2022-kr"},
		"broken header": {served: served{"", "text/plain; charset", latin, 0}, want: umlauts,
			contentType: "text/plain; charset=utf-8"},
		"no text": {served: served{"", "image/png", "\x89PNG\xff", 0}, want: "\uFFFDPNG\uFFFD",
			contentType: "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, host := c.served.serve(t)
			r, note, failure := do(t.Context(), testClient(t, host), recurgent.Request{URL: server.URL})
			if note.ErrorKind != c.kind || failure != nil && (c.kind == "" ||
				!strings.Contains(failure.Message, c.err)) {
				t.Fatalf("got kind %q, %+v, want %q", note.ErrorKind, failure, c.kind)
			}
			if c.kind != "" {
				return
			}
			if r.Body != c.want || r.Header["Content-Type"] != c.contentType || note.ContentType != c.contentType {
				t.Errorf("got %.200q of type %q, want %.200q of %q", r.Body, r.Header["Content-Type"], c.want,
					c.contentType)
			}
			if left := r.Header["Content-Encoding"]; left != "" && left != "identity" {
				t.Errorf("the body is plain, and the header still says %q", left)
			}
			if n := r.Header["Content-Length"]; n != "" && n != strconv.Itoa(len(r.Body)) &&
				c.contentType != "image/png" {
				t.Errorf("the body has %d bytes, the header says %s", len(r.Body), n)
			}
		})
	}
}

// A binary body is complete, whatever type its header has.
func TestBytesOfBinaryBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"PNG": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff",
		"zip": "PK\x03\x04\x14\x00\x00\x00\x08\x00\xc4\x8f", "PDF": "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
		"spreadsheet": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00"} {
		for _, contentType := range []string{"text/plain", "text/csv", "text/html; charset=utf-8", "", "image/png"} {
			server, host := served{"", contentType, body, 0}.serve(t)
			r, _, failure := do(t.Context(), testClient(t, host), recurgent.Request{URL: server.URL})
			if failure != nil || string(r.Bytes()) != body {
				t.Errorf("%s as %q: %q, %+v", name, contentType, r.Bytes(), failure)
			}
		}
	}
	server, host := served{"", "text/plain", "Gr\xf6\xdfe", 0}.serve(t)
	if r, _, failure := do(t.Context(), testClient(t, host),
		recurgent.Request{URL: server.URL}); failure != nil || string(r.Bytes()) != "Größe" {
		t.Errorf("a text: %+v", failure)
	}
}

// Spaces in an address are escaped: servers answer 400 to a request line that has some.
func TestSpacesInAddresses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.RequestURI)
	}))
	t.Cleanup(server.Close)
	r, _, failure := do(t.Context(), testClient(t, strings.TrimPrefix(server.URL, "http://")),
		recurgent.Request{URL: server.URL + "/a b?q=red shoes&n=1"})
	if failure != nil || r.Body != "/a%20b?q=red%20shoes&n=1" {
		t.Errorf("got %+v, %+v", r, failure)
	}
}

// An answer to HEAD has the header of a body, and no body.
func TestHeadHasNoBodyToUnpack(t *testing.T) {
	t.Parallel()
	server, host := served{"gzip", "text/plain", gzipped("hello"), 0}.serve(t)
	r, note, failure := do(t.Context(), testClient(t, host), recurgent.Request{URL: server.URL, Method: "HEAD"})
	if failure != nil || r.Status != 200 || r.Body != "" || note.ErrorKind != "" {
		t.Errorf("got %+v, %+v, %+v, want an answer of no bytes", failure, r, note)
	}
}

// Large bodies wait for each other, and the time of a waiting request stands still.
func TestLargeBodiesAreFewAtATime(t *testing.T) {
	t.Parallel()
	server, host := served{"", "text/plain", strings.Repeat("x", testMax), 0}.serve(t)
	o := DefaultOptions()
	o.MaxBody = largeBodies // room for one
	c := clientWith(t, o, host)
	first := c.Do(t.Context(), Caller{}, recurgent.Request{URL: server.URL})
	if first.Failure != nil {
		t.Fatal(first.Failure)
	}
	second := make(chan Answer)
	go func() { second <- c.Do(t.Context(), Caller{}, recurgent.Request{URL: server.URL}) }()
	small, smallHost := served{"", "text/plain", "hello", 0}.serve(t)
	if r, _, failure := do(t.Context(), clientWith(t, o, smallHost),
		recurgent.Request{URL: small.URL}); failure != nil || r.Body != "hello" {
		t.Errorf("a small body beside a large one: %+v", failure)
	}
	select {
	case a := <-second:
		t.Fatalf("a second large body came in while the first was held: %+v", a.Failure)
	default:
	}
	first.Release()
	first.Release()
	a := <-second
	if a.Failure != nil || len(a.Response.Body) != testMax {
		t.Errorf("the second large body: %+v", a.Failure)
	}
	a.Release()
	if n, _ := c.large.Used(); n != 0 {
		t.Errorf("%d places of large bodies are taken, want none", n)
	}
}

func FuzzText(f *testing.F) {
	f.Add("text/html", []byte("<meta charset=utf-16le>\xff"))
	f.Add("application/xml; charset=", []byte(`<?xml version="1.0" encoding='utf-7'?>`))
	f.Add("text/plain; charset=gb18030", []byte("\xff\xfe\x81\x30\x81\x30"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		const most = 1 << 10
		text, now, err := toText(bytes.Clone(body), contentType, most)
		if err != nil {
			return
		}
		if !utf8.Valid(text) || len(text) > max(most, len(body))+8 {
			t.Fatalf("%q of %q became %q", body, contentType, text)
		}
		again, then, err := toText(bytes.Clone(text), now, 8*most)
		if err == nil && (!bytes.Equal(again, bytes.TrimPrefix(text, []byte("\ufeff"))) || then != now) &&
			strings.Contains(now, "utf-8") {
			t.Fatalf("%q of %q became %q of %q, and then %q of %q", body, contentType, text, now, again, then)
		}
	})
}

func FuzzCoding(f *testing.F) {
	f.Add("gzip", []byte(gzipped("hello")))
	f.Add("br", []byte(brotlied("hello")))
	f.Add("br,gzip", []byte(gzipped(brotlied("hello"))))
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		const most = 1 << 12
		answer := &http.Response{Header: http.Header{"Content-Encoding": {encoding}},
			Body: io.NopCloser(bytes.NewReader(body))}
		got, raw, err := bodyReader{most: most, large: func() error { return nil }}.read(answer)
		if err == nil && (len(got) > most || !utf8.Valid(got) || raw != nil && utf8.Valid(raw)) {
			t.Fatalf("%d bytes", len(got))
		}
		if err != nil && refusalOf(err).Kind == KindNetwork {
			t.Fatalf("a fault of the body passes for one of the network: %v", err)
		}
	})
}
