package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// taken is a file written by a download.
type taken struct {
	bytes.Buffer
	name, media string
	begun       int
	most        int // bytes; 0 means any number
}

func (f *taken) begin(name, media string) (io.Writer, error) {
	f.name, f.media = name, media
	f.begun++
	return f, nil
}

func (f *taken) Write(p []byte) (int, error) {
	if f.most > 0 && f.Len()+len(p) > f.most {
		return 0, &recurgent.Failure{Type: "resource_exhausted", Message: "fetch: there is no room"}
	}
	return f.Buffer.Write(p)
}

// files returns a server that answers with files.
func files(t *testing.T) (*httptest.Server, []byte) {
	t.Helper()
	binary := make([]byte, 3<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range binary {
		binary[i] = byte(random.Uint32())
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if d := r.URL.Query().Get("disposition"); d != "" {
			h.Set("Content-Disposition", d)
		}
		if m := r.URL.Query().Get("media"); m != "" {
			h.Set("Content-Type", m)
		}
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/a/report.bin", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/status/"):
			code := 0
			fmt.Sscanf(r.URL.Path, "/status/%d", &code)
			w.WriteHeader(code)
		case r.URL.Path == "/zipped":
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(binary)
			z.Close()
		case r.URL.Path == "/bomb":
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 16 {
				z.Write(make([]byte, 1<<20))
			}
			z.Close()
		case r.URL.Path == "/cut":
			h.Set("Content-Length", "100")
			io.WriteString(w, "short")
		case r.URL.Path == "/text":
			io.WriteString(w, "Name;Ort\nM\xfcller;K\xf6ln\n")
		default:
			w.Write(binary)
		}
	}))
	t.Cleanup(s.Close)
	return s, binary
}

// A body of any length is written to a file unchanged, unpacked, under the name and the type from the host.
func TestDownload(t *testing.T) {
	t.Parallel()
	s, binary := files(t)
	o := DefaultOptions()
	o.MaxBody, o.MaxFile = 1<<10, 4<<20
	c := clientWith(t, o, strings.TrimPrefix(s.URL, "http://"))
	for _, tt := range []struct {
		path, name, media, failed, kind string
		status                          int
	}{
		{"/a/report.bin", "report.bin", "application/octet-stream", "", "", 200},
		{"/moved", "report.bin", "application/octet-stream", "", "", 200},
		{"/zipped", "zipped", "application/octet-stream", "", "", 200},
		{"/", "", "application/octet-stream", "", "", 200},
		{"/a%20b/c%2fd.bin/", "d.bin", "application/octet-stream", "", "", 200},
		{"/x?disposition=attachment;filename=\"../../etc/pass%20wd\"", "pass wd", "application/octet-stream", "", "",
			200},
		{"/x?disposition=attachment;filename=a.bin;filename*=UTF-8''K%25C3%25B6ln.bin", "Köln.bin",
			"application/octet-stream", "", "", 200},
		{"/x.zip?disposition=nonsense;;;&media=%21%21", "x.zip", "application/octet-stream", "", "", 200},
		{"/x.zip?media=application/zip;a=" + strings.Repeat("b", 200), "x.zip", "application/zip", "", "", 200},
		{"/status/404", "", "", "not_found", "", 404},
		{"/status/410", "", "", "not_found", "", 410},
		{"/status/304", "", "", "fetch_failed", "", 304},
		{"/status/403", "", "", "fetch_failed", "", 403},
		{"/status/503", "", "", "fetch_failed", "", 503},
		{"/bomb", "bomb", "", "resource_exhausted", KindTooLarge, 0},
		{"/cut", "cut", "", "fetch_failed", KindIncomplete, 0},
	} {
		f := &taken{}
		a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: s.URL + strings.ReplaceAll(tt.path, ";", "%3b")},
			f.begin)
		failed := ""
		if a.Failure != nil {
			failed = a.Failure.Type
		}
		if failed != tt.failed || a.Note.ErrorKind != tt.kind || a.Note.Status != tt.status || f.name != tt.name ||
			tt.failed == "" && f.media != tt.media {
			t.Errorf("%s: got %+v, %+v, %q %q", tt.path, a.Failure, a.Note, f.name, f.media)
		}
		if tt.failed == "" && (!bytes.Equal(f.Bytes(), binary) || a.Response == nil || a.Response.Body != "" ||
			a.Note.Bytes != len(binary)) {
			t.Errorf("%s: got %d bytes, %+v", tt.path, f.Len(), a.Response)
		}
	}
	if a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: "http://127.0.0.1:1/"},
		(&taken{}).begin); a.Failure == nil || a.Failure.Type != "denied" {
		t.Errorf("where policy forbids it: %+v", a.Failure)
	}
}

// The writer of a file may refuse it with its own failure. A body whose announced length exceeds the bound is not
// started.
func TestDownloadWithoutRoom(t *testing.T) {
	t.Parallel()
	s, _ := files(t)
	o := DefaultOptions()
	o.MaxFile = 4 << 20
	c := clientWith(t, o, strings.TrimPrefix(s.URL, "http://"))
	f := &taken{most: 1 << 20}
	a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: s.URL + "/a"}, f.begin)
	if a.Failure == nil || a.Failure.Type != "resource_exhausted" || a.Failure.Message != "fetch: there is no room" ||
		a.Note.ErrorKind != KindTooLarge {
		t.Errorf("got %+v, %+v", a.Failure, a.Note)
	}
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(5<<20))
	}))
	defer long.Close()
	f = &taken{}
	c = clientWith(t, o, strings.TrimPrefix(long.URL, "http://"))
	if a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: long.URL},
		f.begin); a.Note.ErrorKind != KindTooLarge || f.begun != 0 {
		t.Errorf("too long: got %+v, begun %d times", a.Failure, f.begun)
	}
}

// The shape of a source that becomes a file is that of its decoded text. A long document has no shape.
func TestDownloadShape(t *testing.T) {
	t.Parallel()
	s, _ := files(t)
	c := clientWith(t, DefaultOptions(), strings.TrimPrefix(s.URL, "http://"))
	f := &taken{}
	a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: s.URL + "/text?media=text/csv"}, f.begin)
	if a.Note.Outline != "Name;Ort" || !strings.HasPrefix(a.Note.Shape, "csv:") ||
		!strings.Contains(a.Note.Sample, "Müller") || f.String() != "Name;Ort\nM\xfcller;K\xf6ln\n" {
		t.Errorf("got %+v, %q", a.Note, f.String())
	}
	if a := c.Download(t.Context(), Caller{}, recurgent.Request{URL: s.URL + "/b?media=application/json"},
		f.begin); a.Note.Shape != shapeEmpty {
		t.Errorf("a long one has the shape %q", a.Note.Shape)
	}
}

// No echo of a credential reaches a file, wherever the body is cut. A body without echoes is unchanged to the byte.
func TestDownloadMasks(t *testing.T) {
	t.Parallel()
	const filler = 1_300_003
	body := func(echoes bool) string {
		var b strings.Builder
		for i := 0; b.Len() < filler; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
			if echoes && i%7919 == 0 {
				b.WriteString("<secret-0>")
			}
		}
		return b.String()
	}
	for _, echoes := range []bool{true, false} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Disposition", "attachment; filename=secret-0.txt")
			io.WriteString(w, body(echoes))
		}))
		f := &fakeConnection{host: strings.TrimPrefix(api.URL, "http://"), methods: []string{"GET"}}
		o := DefaultOptions()
		o.Connector = f
		got := &taken{}
		a := clientWith(t, o, f.host).Download(t.Context(), Caller{}, recurgent.Request{URL: api.URL}, got.begin)
		want := strings.ReplaceAll(body(echoes), "secret-0", "[masked]")
		if a.Failure != nil || got.String() != want || got.name != "[masked].txt" || a.Note.Connection != "fake" {
			t.Errorf("echoes %v: got %+v, %q, %d bytes, want %d", echoes, a.Failure, got.name, got.Len(), len(want))
		}
		api.Close()
	}
}

// A body is cut only between echoes. A body without such a place is refused.
func TestMaskerCuts(t *testing.T) {
	t.Parallel()
	mask := func(text []byte) ([]byte, error) {
		return bytes.ReplaceAll(text, []byte("0123456789"), []byte("[masked]")), nil
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var in bytes.Buffer
		for in.Len() < 2*maskWindow {
			in.Write(bytes.Repeat([]byte("."), random.IntN(9000)))
			in.WriteString("0123456789")
		}
		var out bytes.Buffer
		m := &masker{to: &out, mask: mask}
		for rest := in.Bytes(); len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(downloadPiece))
			if _, err := m.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want, _ := mask(in.Bytes())
		if err := m.end(); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("got %d bytes, %v, want %d", out.Len(), err, len(want))
		}
	}
	m := &masker{to: io.Discard, mask: func([]byte) ([]byte, error) { return []byte("[masked]"), nil }}
	var refusal *Refusal
	if _, err := m.Write(make([]byte, maskWindow)); !errors.As(err, &refusal) || refusal.Kind != KindConnection {
		t.Errorf("nothing but echoes: %v", err)
	}
}
