package daemon

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progSums groups a CSV by its first column and sums the second, row by row.
var progSums = rig.Program(`	in, err := call.Open(call.Arg(0, "sales"))
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	if _, err := rows.Read(); err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return sums, nil
		}
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return nil, err
		}
		sums[row[0]] += n
	}`, "encoding/csv", "io", "strconv")

// progReport makes a file, and another one that its value does not name.
var progReport = rig.Program(`	f, err := call.Create("report.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(f, "greeting\nhello %v\n", call.Arg(0, "name"))
	draft, err := call.Create("draft.txt", "text/plain")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(draft, "nobody refers to it")
	if call.Arg(0, "name") == "nobody" {
		return nil, recurgent.Fail("not_today", "no report")
	}
	return map[string]any{"rows": 1, "report": f.Ref()}, nil`, "fmt")

// progRelay has another tool make the file, and one sum it.
var progRelay = rig.Program(`	made := call.Tool("reporter").Call("report", "you")
	if !made.OK() {
		return nil, recurgent.Fail(made.ErrorType, made.ErrorMessage)
	}
	r, err := call.Open(made.Value.(map[string]any)["report"])
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	return string(text), err`, "io")

// upload sends a body as a file and wants the status.
func upload(d *rig.Daemon, want int, query, mediaType, body string) map[string]any {
	d.T.Helper()
	r := d.Send(http.MethodPost, "/v1/files"+query, []byte(body), map[string]string{"Content-Type": mediaType})
	if r.Status != want {
		d.T.Fatalf("upload %s: status %d, want %d: %s", query, r.Status, want, r.Body)
	}
	if want >= 400 {
		rig.CheckProblem(d.T, "upload "+query, r)
	}
	return r.Object(d.T)
}

func ref(f map[string]any) map[string]any { return map[string]any{"$file": f["id"]} }

func content(d *rig.Daemon, f map[string]any) rig.Response {
	d.T.Helper()
	id, _ := f["$file"].(string)
	if id == "" {
		id, _ = f["id"].(string)
	}
	return d.Send(http.MethodGet, "/v1/files/"+id+"/content", nil, nil)
}

// keeps waits until that many files are stored: for a moment there can be one, too, that the store writes its own
// things to.
func wantStored(t *testing.T, d *rig.Daemon, want int) {
	t.Helper()
	rig.Until(t, fmt.Sprintf("%d stored files", want), func() bool { return len(stored(d)) == want })
}

// stored lists the files of which bytes are stored, and what is to become one.
func stored(d *rig.Daemon) (names []string) {
	if names, ok := d.Rows("SELECT coalesce('files/' || file, 'tmp/' || id) FROM blobs"); ok {
		return names
	}
	for _, dir := range []string{"files", "tmp"} {
		list, _ := os.ReadDir(filepath.Join(d.State(), dir))
		for _, e := range list {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names
}

// A file goes in, a program reads it, another makes one, a person downloads it; all of it is there after a restart.
func TestFilesInAndOut(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.total": {progSums}, "reporter.report": {progReport},
		"relay.run": {progRelay}}))
	text := "region,units\nnorth,1\nsouth,2\nnorth,3\n"
	f := upload(d, http.StatusCreated, "?name=sales.csv", "text/csv", text)
	sum := sha256.Sum256([]byte(text))
	if f["bytes"] != float64(len(text)) || f["sha256"] != hex.EncodeToString(sum[:]) || f["media_type"] != "text/csv" ||
		f["name"] != "sales.csv" || f["expires_at"] == nil {
		t.Errorf("got %v", f)
	}
	s := d.Session("sales")
	d.WantValue(d.Call(s, "total", ref(f)), map[string]any{"north": 4, "south": 2}, "generated")
	d.WantValue(d.Call(s, "total", ref(f)), map[string]any{"north": 4, "south": 2}, "persisted")
	d.WantValue(d.Call(s, "total", f["id"]), map[string]any{"north": 4, "south": 2}, "persisted")

	got := d.Call(d.Session("reporter"), "report", "you")
	value, _ := got.Outcome.Value.(map[string]any)
	made, _ := value["report"].(map[string]any)
	if r := content(d, made); string(r.Body) != "greeting\nhello you\n" ||
		r.Header.Get("Content-Disposition") != "attachment; filename=report.csv" {
		t.Errorf("the report: %d %v %s", r.Status, r.Header, r.Body)
	}
	d.WantError(d.Call(d.Session("reporter"), "report", "nobody"), "not_today")
	d.WantValue(d.Call(d.Session("relay"), "run"), "greeting\nhello you\n", "generated")
	if list := d.List("/v1/files"); len(list) != 3 || list[2]["id"] != f["id"] || list[1]["call_id"] != got.CallID ||
		list[1]["session_id"] != got.SessionID {
		t.Errorf("got %v", list)
	}
	wantStored(t, d, 3)

	d.Restart()
	d.WantValue(d.Call(s, "total", ref(f)), map[string]any{"north": 4, "south": 2}, "persisted")
	if r := content(d, made); string(r.Body) != "greeting\nhello you\n" {
		t.Errorf("after a restart: %d %s", r.Status, r.Body)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+got.SessionID, nil)
	if r := content(d, made); r.Status != http.StatusNotFound {
		t.Errorf("after its session: status %d", r.Status)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+f["id"].(string), nil)
	gone := d.Call(s, "total", ref(f))
	d.WantError(gone, "file_not_found")
	if a := d.Artifact("sales", "total"); a["intrinsic_failure_count"] != float64(0) {
		t.Errorf("the program is blamed for a file that is gone: %v", a)
	}
	wantStored(t, d, 1)
}

// Nobody sees another owner's files.
func TestFilesAreTheirOwners(t *testing.T) {
	t.Parallel()
	tokens := rig.WriteFile(t, "tokens",
		"ann secret-of-ann-0123 scopes=read,call\nbob secret-of-bob-0123 scopes=read,call\nopal secret-of-opal-0123 scopes=read,operate\n")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.total": {progSums}}), "--auth-tokens-file", tokens)
	ann, bob, opal := d.As("secret-of-ann-0123"), d.As("secret-of-bob-0123"), d.As("secret-of-opal-0123")
	f := upload(ann, http.StatusCreated, "", "text/csv", "region,units\nnorth,1\n")
	path := "/v1/files/" + f["id"].(string)
	ann.Get(path)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		bob.Do(http.StatusNotFound, method, path, nil)
	}
	bob.Do(http.StatusNotFound, http.MethodGet, path+"/content", nil)
	opal.Get(path) // may operate
	if all := bob.List("/v1/files"); len(all) != 0 {
		t.Errorf("bob lists %v", all)
	}
	s := ann.Session("sales")
	upload(bob, http.StatusNotFound, "?session_id="+s, "text/csv", "x")
	ann.WantValue(ann.Call(s, "total", ref(f)), map[string]any{"north": 1}, "generated")
	bob.WantError(bob.Call(bob.Session("sales"), "total", ref(f)), "file_not_found")
}

// A browser saves what it gets and runs nothing, whatever the file calls itself.
func TestContentsAreNeverRun(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	d.HTTP = &http.Client{Timeout: rig.Patience} // the checker of exchanges cannot decode every media type
	for _, c := range []struct{ name, mediaType, stored, media, disposition string }{
		{"page.html", "text/html; charset=utf-8", "page.html", "text/html; charset=utf-8",
			`attachment; filename=page.html`},
		{"x.svg", "IMAGE/SVG+XML", "x.svg", "image/svg+xml", `attachment; filename=x.svg`},
		{"../../etc/passwd", "", ".._.._etc_passwd", "application/octet-stream",
			`attachment; filename=.._.._etc_passwd`},
		{"a\r\nSet-Cookie: x=1\x00\"b\u202e", "text/plain", "aSet-Cookie: x=1_b", "text/plain",
			`attachment; filename="aSet-Cookie: x=1_b"`},
		{"Übersicht 1.csv", "text/csv", "Übersicht 1.csv", "text/csv",
			`attachment; filename*=utf-8''%C3%9Cbersicht%201.csv`},
		{"..", "application/x-www-form-urlencoded", "_", "application/octet-stream", `attachment; filename=_`},
		{strings.Repeat("é", 200), "text/plain", strings.Repeat("é", 127), "text/plain", ""},
	} {
		f := upload(d, http.StatusCreated, "?name="+url.QueryEscape(c.name), c.mediaType, "<script>alert(1)</script>")
		r := content(d, f)
		h := r.Header
		if f["name"] != c.stored || f["media_type"] != c.media || h.Get("Content-Type") != c.media ||
			c.disposition != "" && h.Get("Content-Disposition") != c.disposition ||
			!strings.HasPrefix(h.Get("Content-Disposition"), "attachment") ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || h.Get("Set-Cookie") != "" {
			t.Errorf("%q %q: got %v %v %v", c.name, c.mediaType, f["name"], f["media_type"], h)
		}
	}
	for _, bad := range []string{"text", "text/", "a/b/c", "text/csv; charset", strings.Repeat("a", 200) + "/b"} {
		upload(d, http.StatusUnprocessableEntity, "", bad, "x")
	}
	r := d.Send(http.MethodPost, "/v1/files", []byte("x"), map[string]string{"Content-Encoding": "gzip"})
	if r.Status != http.StatusUnsupportedMediaType {
		t.Errorf("gzip: status %d", r.Status)
	}
	wantStored(t, d, 7)
}

func TestRanges(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	f := upload(d, http.StatusCreated, "", "text/plain", "0123456789")
	path := "/v1/files/" + f["id"].(string) + "/content"
	tag := strconv.Quote(f["sha256"].(string))
	for _, c := range []struct {
		header map[string]string
		status int
		body   string
		ranged string
	}{
		{nil, 200, "0123456789", ""},
		{map[string]string{"Range": "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		{map[string]string{"Range": "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		{map[string]string{"Range": "bytes=8-"}, 206, "89", "bytes 8-9/10"},
		{map[string]string{"Range": "bytes=2-4", "If-Range": tag}, 206, "234", "bytes 2-4/10"},
		{map[string]string{"Range": "bytes=2-4", "If-Range": `"other"`}, 200, "0123456789", ""},
		{map[string]string{"Range": "lines=1-2"}, 200, "0123456789", ""},
		{map[string]string{"If-Match": tag}, 200, "0123456789", ""},
		{map[string]string{"If-Match": `"other"`}, 412, "", ""},
		{map[string]string{"If-None-Match": tag}, 304, "", ""},
		{map[string]string{"Range": "bytes=10-"}, 416, "", "bytes */10"},
	} {
		r := d.Send(http.MethodGet, path, nil, c.header)
		refused := c.status == 412 || c.status == 416
		if r.Status != c.status || !refused && string(r.Body) != c.body || r.Header.Get("Content-Range") != c.ranged {
			t.Errorf("%v: got %d %q %v", c.header, r.Status, r.Body, r.Header)
		}
		if refused {
			rig.CheckProblem(t, "refused", r)
		}
	}
	if r := d.Send(http.MethodHead, path, nil, nil); r.Status != 200 || r.Header.Get("Content-Length") != "10" ||
		len(r.Body) != 0 {
		t.Errorf("HEAD: got %d %v", r.Status, r.Header)
	}
}

// What is over a bound is refused with the bound's own problem, and leaves nothing.
func TestBounds(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--file-max", "2MiB", "--files-max", "5MiB")
	one := d.One() // other replicas learn within a second what was stored
	big := strings.Repeat("x", 2<<20)
	code := func(want int, query, body string) any {
		t.Helper()
		return upload(one, want, query, "text/plain", body)["code"]
	}
	if got := code(http.StatusRequestEntityTooLarge, "", big+"x"); got != "file_too_large" {
		t.Errorf("announced: %v", got)
	}
	// of unknown length
	req, err := http.NewRequest(http.MethodPost, one.URL+"/v1/files",
		io.MultiReader(strings.NewReader(big), strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: status %d", resp.StatusCode)
	}
	one.Policy(map[string]any{"retention": map[string]any{"session_file_mib": 3}})
	s := one.Session("sales")
	code(http.StatusCreated, "", big)
	if got := code(http.StatusTooManyRequests, "", big); got != "file_quota_exceeded" {
		t.Errorf("mine: %v", got)
	}
	code(http.StatusCreated, "?session_id="+s, big)
	if got := code(http.StatusTooManyRequests, "?session_id="+s, big); got != "file_quota_exceeded" {
		t.Errorf("the session's: %v", got)
	}
	if got := code(http.StatusInsufficientStorage, "?session_id="+one.Session("other"), big); got != "files_full" {
		t.Errorf("the daemon's: %v", got)
	}
	code(http.StatusNotFound, "?session_id=sess_none", "x")
	wantStored(t, d, 2)
	one.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	code(http.StatusCreated, "?session_id="+one.Session("other"), big)
}

// An upload that ends in the middle leaves nothing; nor does one that the daemon did not live to see the end of.
func TestUploadsCutShort(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	begin := func(head string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", head)
		return conn
	}
	half := strings.Repeat("x", 300_000)
	conn := begin("Content-Length: 1000000")
	fmt.Fprint(conn, half)
	rig.Until(t, "the upload to be under way", func() bool { return len(stored(d)) == 1 })
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that ends early: %v, %v", resp, err)
	}
	conn.Close()
	rig.Until(t, "it to be gone", func() bool { return len(stored(d)) == 0 })

	conn = begin("Transfer-Encoding: chunked")
	fmt.Fprintf(conn, "%x\r\n%s\r\n", len(half), half)
	rig.Until(t, "the upload to be under way", func() bool { return len(stored(d)) == 1 })
	conn.Close()
	rig.Until(t, "it to be gone", func() bool { return len(stored(d)) == 0 })

	kept := upload(d, http.StatusCreated, "", "text/plain", "kept")
	conn = begin("Content-Length: 1000000")
	defer conn.Close()
	fmt.Fprint(conn, half)
	rig.Until(t, "the upload to be under way", func() bool { return len(stored(d)) == 2 })
	d.Stop(syscall.SIGKILL)
	d.Start()
	left := 1
	if rig.Store(t) != "disk" {
		// others could still write it: a database keeps it until nobody has held it for a minute, and then until the
		// next sweep
		left++
	}
	wantStored(t, d, left)
	if text := string(content(d, kept).Body); text != "kept" {
		t.Errorf("after a kill it is %q", text)
	}
}

// Files expire, and maintenance deletes their bytes.
func TestFilesExpire(t *testing.T) {
	t.Parallel()
	d, ahead := rig.StartAhead(t, nil)
	d.Policy(map[string]any{"retention": map[string]any{"file_hours": 2}})
	f := upload(d, http.StatusCreated, "", "text/plain", "expires")
	ahead("1h")
	if r := content(d, f); string(r.Body) != "expires" {
		t.Errorf("after one hour: %d", r.Status)
	}
	ahead("3h")
	rig.Until(t, "it to expire", func() bool { return content(d, f).Status == http.StatusNotFound })
	rig.Until(t, "its bytes to go", func() bool { return len(stored(d)) == 0 })
}

// An upload is over when the client gives up.
func TestUploadGivenUp(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/v1/files", r)
		_, err := http.DefaultClient.Do(req)
		done <- err
	}()
	if _, err := w.Write(bytes.Repeat([]byte("x"), 200_000)); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, "the upload to be under way", func() bool { return len(stored(d)) == 1 })
	cancel()
	w.CloseWithError(context.Canceled)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	rig.Until(t, "it to be gone", func() bool { return len(stored(d)) == 0 })
}

// A file that a program closes is its reference wherever it is encoded: in the value, below it, in what another tool is
// given. One that it leaves open is not a value, nor is one that would encode to nothing.
func TestFileIsItsReference(t *testing.T) {
	t.Parallel()
	const create = "\tf, err := call.Create(\"report.txt\", \"text/plain\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tfmt.Fprint(f, \"hello\")\n"
	const closed = create + "\tif err := f.Close(); err != nil {\n\t\treturn nil, err\n\t}\n"
	m := rig.NewModel(t, rig.Script{
		"clerk.file":  {rig.Program(closed+"\treturn f, nil", "fmt")},
		"clerk.below": {rig.Program(closed+"\treturn map[string]any{\"reports\": []*recurgent.File{f}}, nil", "fmt")},
		"clerk.given": {rig.Program(closed+
			"\to := call.Tool(\"reader\").Call(\"read\", f)\n\tif !o.OK() {\n\t\treturn o.ErrorType + \": \" + o.ErrorMessage, nil\n\t}\n\treturn o.Value, nil", "fmt")},
		"reader.read": {rig.Program("\treturn fmt.Sprintf(\"%T\", call.Args[0].(map[string]any)[\"$file\"]), nil",
			"fmt")},
	})
	d := rig.Start(t, m)
	s := d.Session("clerk")
	for method, at := range map[string]func(any) any{
		"file":  func(v any) any { return v },
		"below": func(v any) any { return v.(object)["reports"].([]any)[0] },
	} {
		got := d.Call(s, method)
		if !got.Outcome.OK {
			t.Fatalf("%s: %+v", method, got.Outcome)
		}
		if c := content(d, at(got.Outcome.Value).(object)); c.Status != http.StatusOK || string(c.Body) != "hello" {
			t.Errorf("%s: the file is %d %q", method, c.Status, c.Body)
		}
	}
	d.WantValue(d.Call(s, "given"), "string", "generated")

	for name, c := range map[string]struct{ code, says string }{
		"open": {create + "\treturn f, nil", "is not closed: Close it"},
		"late": {create + "\tif err := f.Close(); err != nil {\n\t\treturn nil, err\n\t}\n\tfmt.Fprint(f, \"more\")\n\treturn f, nil",
			"was written to after it was closed"},
		"passed": {create + "\to := call.Tool(\"reader\").Call(\"read\", f)\n\treturn o.ErrorMessage, nil", ""},
		"buffer": {"\treturn bytes.NewBufferString(fmt.Sprint(\"text\")), nil", "bytes.Buffer has no JSON form"},
		"error": {"\treturn map[string]any{\"error\": errors.New(fmt.Sprint(\"it failed\"))}, nil",
			"has no JSON form"},
		"hidden": {"\ttype sums struct{ total int }\n\treturn []any{sums{len(fmt.Sprint(1))}}, nil",
			"has no JSON form"},
	} {
		imports := map[string][]string{"buffer": {"bytes", "fmt"}, "error": {"errors", "fmt"}}[name]
		if imports == nil {
			imports = []string{"fmt"}
		}
		d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("clerk", name),
			object{"code": rig.Program(c.code, imports...)})
		got := d.Call(s, name)
		switch {
		case name == "passed":
			if text, _ := got.Outcome.Value.(string); !strings.Contains(text, "is not closed") {
				t.Errorf("%s: %+v", name, got.Outcome)
			}
		case c.says == "":
			d.WantValue(got, true, "persisted")
		case got.Outcome.OK || !strings.Contains(got.Outcome.ErrorMessage, c.says):
			t.Errorf("%s: %+v; want an error that says %q", name, got.Outcome, c.says)
		}
	}
}
