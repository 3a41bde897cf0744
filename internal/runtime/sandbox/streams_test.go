package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fakeFile is a file that a program makes.
type fakeFile struct {
	bytes.Buffer
	id    string
	limit int
}

func (f *fakeFile) Write(p []byte) (int, error) {
	if f.limit > 0 && f.Len()+len(p) > f.limit {
		return 0, &recurgent.Failure{Type: agent.ErrInvalidInput, Message: "too large"}
	}
	return f.Buffer.Write(p)
}

func (f *fakeFile) ID() string { return f.id }

func (f *fakeFile) Close() error { return nil }

func (f *fakeFile) Discard() { f.Reset() }

func (f *fakeFile) End() agent.File { return fileOf(f.id, f.String()) }

func fileOf(id, text string) agent.File {
	sum := sha256.Sum256([]byte(text))
	return agent.File{ID: id, Name: "a.csv", MediaType: "text/csv", Bytes: int64(len(text)),
		SHA256: hex.EncodeToString(sum[:])}
}

// closed counts its Close.
type closed struct {
	io.ReadSeeker
	h *fakeHost
}

func (c closed) Close() error {
	c.h.note("closed")
	return nil
}

func (h *fakeHost) OpenFile(_ context.Context, id string) (*OpenFile, *AuthoredError) {
	text, ok := h.files[id]
	for _, f := range h.made {
		if f.id == id {
			text, ok = f.String(), true
		}
	}
	if !ok {
		return nil, &AuthoredError{Type: agent.ErrFileNotFound, Message: "there is no file " + id}
	}
	return &OpenFile{fileOf(id, text), closed{strings.NewReader(text), h}}, nil
}

func (h *fakeHost) CreateFile(_ context.Context, _, name, mediaType string) (NewFile, *AuthoredError) {
	if mediaType == "bad" {
		return nil, &AuthoredError{Type: agent.ErrInvalidInput, Message: "the media type is not valid"}
	}
	f := &fakeFile{id: fmt.Sprint("file_made_", len(h.made))}
	if name == "small" {
		f.limit = 100_000
	}
	h.made = append(h.made, f)
	return f, nil
}

func manyRows(n int) string {
	var b strings.Builder
	b.WriteString("region,units\n")
	for i := range n {
		fmt.Fprintf(&b, "%s,%d\n", []string{"north", "south", "east"}[i%3], i%10)
	}
	return b.String()
}

const sumUnits = `
	in, err := call.Open(call.Arg(0, "sales"))
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	if _, err := rows.Read(); err != nil {
		return nil, err
	}
	sums := map[string]int{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, err
		}
		sums[row[0]] += n
	}
	return sums, nil`

// Programs read files of any length in pieces, by reference and by id, several at once, and need not close them.
func TestProgramsReadFiles(t *testing.T) {
	p := compilePool(t, nil)
	for _, c := range []struct{ name, source, want string }{
		{"csv", program(sumUnits, "encoding/csv", "io", "strconv"), `value {"east":60000,"north":60003,"south":59997}`},
		{"two at once", program(`
	a, err := call.Open("file_a")
	if err != nil {
		return nil, err
	}
	b, err := call.Open("file_a")
	if err != nil {
		return nil, err
	}
	one, two := bufio.NewReader(a), bufio.NewReader(b)
	x, _ := one.ReadString('\n')
	one.ReadString('\n')
	y, _ := two.ReadString('\n')
	z, _ := one.ReadString('\n')
	return []string{x, y, z}, nil`, "bufio"), `value ["region,units\n","region,units\n","south,1\n"]`},
		{"an empty one", program(`
	r, err := call.Open("file_empty")
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	return len(all), err`, "io"), `value 0`},
		{"gone", program(`
	_, err := call.Open("file_gone")
	return nil, err`), `authored file_not_found: there is no file file_gone`},
		{"no reference", program(`
	_, err := call.Open(7)
	return nil, err`), `authored invalid_input: a file is {"$file": "file_..."}, or its id`},
		{"a closed one", program(`
	r, err := call.Open("file_a")
	if err != nil {
		return nil, err
	}
	for range 40 {
		r.(io.Closer).Close()
		if r, err = call.Open("file_a"); err != nil {
			return nil, err
		}
	}
	r.(io.Closer).Close()
	n, err := r.Read(make([]byte, 5))
	return []any{n, err.Error()}, nil`, "io"), `value [0,"the file is closed"]`},
		{"too many", program(`
	for i := 0; i < 20; i++ {
		if _, err := call.Open("file_a"); err != nil {
			return []any{i, err.Error()}, nil
		}
	}
	return nil, nil`), `value [16,"open: 16 files are open; read one to its end, or close one"]`},
	} {
		h := &fakeHost{files: map[string]string{"file_a": manyRows(40_002), "file_empty": ""}}
		got := p.Run(t.Context(), request(c.source, map[string]any{"$file": "file_a"}), h)
		if c.name == "csv" {
			sums := map[string]int{}
			if json.Unmarshal(got.Value, &sums) != nil || sums["north"]+sums["south"]+sums["east"] != 180_001 {
				t.Errorf("%s: %s", c.name, said(got))
			}
		} else if said(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, said(got), c.want)
		}
		opened := strings.Count(string(got.Effects.Journal), `"op":"open"`) - strings.Count(string(got.Effects.Journal),
			`"error"`)
		if h.count("closed") < opened-1 { // a note that says "too many" is an error, too
			t.Errorf("%s: %d files were opened, %d closed", c.name, opened, h.count("closed"))
		}
	}
}

func (h *fakeHost) count(what string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c == what {
			n++
		}
	}
	return n
}

const writeRows = `
	f, err := call.Create("out.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	w := csv.NewWriter(f)
	for i := 0; i < 20000; i++ {
		w.Write([]string{strconv.Itoa(i), "row"})
	}
	w.Flush()
	return map[string]any{"report": f.Ref()}, nil`

// Programs make files in pieces. A file that is not closed is whole, too.
func TestProgramsMakeFiles(t *testing.T) {
	p := compilePool(t, nil)
	h := &fakeHost{}
	got := p.Run(t.Context(), request(program(writeRows, "encoding/csv", "strconv")), h)
	if said(got) != `value {"report":{"$file":"file_made_0"}}` || len(h.made) != 1 ||
		strings.Count(h.made[0].String(), "\n") != 20_000 || !strings.HasSuffix(h.made[0].String(), "19999,row\n") {
		t.Errorf("%s, %d made", said(got), len(h.made))
	}
	if len(got.Effects.Made) != 1 || got.Effects.Made[0].Bytes != int64(h.made[0].Len()) {
		t.Errorf("got %+v", got.Effects.Made)
	}
	for _, c := range []struct{ name, mediaType, want string }{
		{"small", "text/plain", `authored invalid_input: too large`},
		{"x", "bad", `authored invalid_input: the media type is not valid`},
	} {
		source := program(fmt.Sprintf(`
	f, err := call.Create(%q, %q)
	if err != nil {
		return nil, err
	}
	f.Write(make([]byte, 110000))
	return f.Ref(), nil`, c.name, c.mediaType))
		if got := said(p.Run(t.Context(), request(source), &fakeHost{})); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.name, c.mediaType, got, c.want)
		}
	}
}

// A replay reads the same bytes, or cannot be compared. Files that it makes are compared by their bytes and not kept.
func TestReplayOfFiles(t *testing.T) {
	p := compilePool(t, nil)
	live := &fakeHost{files: map[string]string{"file_a": "region,units\nnorth,1\n"}}
	read := request(program(sumUnits, "encoding/csv", "io", "strconv"), map[string]any{"$file": "file_a"})
	write := request(program(writeRows, "encoding/csv", "strconv"))
	for _, c := range []struct {
		name     string
		req      Request
		source   string // of the replay; "" means that of the first run
		files    map[string]string
		equal    bool
		diverged string
	}{
		{"the same file", read, "", live.files, true, ""},
		{"a file that is gone", read, "", nil, false, "replay: the file file_a of the recorded call is gone"},
		{"another file", read, "", map[string]string{"file_a": "other"}, false,
			"replay: the file file_a of the recorded call is gone"},
		{"made the same", write, "", nil, true, ""},
		{"made differently", write, program(strings.Replace(writeRows, `"row"`, `"raw"`, 1), "encoding/csv", "strconv"),
			nil, false, ""},
		{"made under another name", write, program(strings.Replace(writeRows, "out.csv", "o.csv", 1), "encoding/csv",
			"strconv"), nil, false, ""},
	} {
		res := p.Run(t.Context(), c.req, live)
		if res.Failure != nil {
			t.Fatal(said(res))
		}
		rec := Recording{Request: c.req, Journal: res.Effects.Journal, Value: res.Value}
		if c.source != "" {
			rec.Program = Program{Source: c.source, Checksum: "sha256:" + c.name}
		}
		again := &fakeHost{files: c.files}
		got, err := Replay(t.Context(), p, rec, again)
		if err != nil || got.Equal != c.equal || got.Diverged != c.diverged || len(again.made) != 0 {
			t.Errorf("%s: got %+v, %v, %d made", c.name, got, err, len(again.made))
		}
	}
}

// BenchmarkReadFile reads 16 MiB of CSV in a program that only counts its rows, and in one that sums a column.
func BenchmarkReadFile(b *testing.B) {
	text := manyRows(16 << 20 / 9)
	count := `
	in, err := call.Open("file_a")
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(io.Discard, in)
	return n, err`
	for _, c := range []struct{ name, source string }{{"bytes", program(count, "io")},
		{"csv", program(sumUnits, "encoding/csv", "io", "strconv")}} {
		b.Run(c.name, func(b *testing.B) {
			p := compilePool(b, nil)
			req := request(c.source, map[string]any{"$file": "file_a"})
			req.Timeout = defaultTimeout
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if got := p.Run(b.Context(), req,
					&fakeHost{files: map[string]string{"file_a": text}}); got.Value == nil {
					b.Fatal(said(got))
				}
			}
		})
	}
}

const countFetched = `
	f, err := call.FetchFile(call.Arg(0, "url").(string))
	if err != nil {
		return nil, err
	}
	info, err := call.FileInfo(f)
	if err != nil {
		return nil, err
	}
	data, err := call.ReadFile(f)
	if err != nil {
		return nil, err
	}
	return []any{f, info.Bytes, len(data), strings.Count(string(data), "\n")}, nil`

const readOwn = `
	f, err := call.Create("a.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(f, "\xef\xbb\xbfa;b\n")
	if _, err := call.Open(f); call.Arg(0, "unclosed") != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	in, err := call.OpenText(f.Ref())
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	info, _ := call.FileInfo(f)
	return []any{string(text), info.Encoding, info.Bytes, f}, err`

// A program fetches a file and reads it. A replay has its bytes from the journal or, if they are many, from the stored
// file.
func TestFetchFileFromProgram(t *testing.T) {
	rows := map[string]string{"/small": manyRows(1000), "/large": manyRows(400_000), "/binary": "\x00\xff\xfe\x01\n"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := rows[r.URL.Path]; ok {
			io.WriteString(w, text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t, strings.TrimPrefix(s.URL, "http://")) })
	for path, text := range rows {
		h := &fakeHost{}
		req := request(program(countFetched, "strings"), s.URL+path)
		got := p.Run(t.Context(), req, h)
		want := fmt.Sprintf(`value [{"$file":"file_made_0"},%d,%d,%d]`, len(text), len(text), strings.Count(text, "\n"))
		if said(got) != want || len(got.Effects.Fetches) != 1 || got.Effects.Fetches[0].Status != 200 ||
			len(got.Effects.Made) != 1 {
			t.Fatalf("%s: %s, want %s, %+v", path, said(got), want, got.Effects.Fetches)
		}
		rec := Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value}
		again, err := Replay(t.Context(), p, rec, &fakeHost{files: map[string]string{}})
		if large := path == "/large"; err != nil || again.Equal == large || (again.Diverged != "") != large {
			t.Errorf("%s, without the stored file: %+v, %v", path, again, err)
		}
		if again, err := Replay(t.Context(), p, rec,
			&fakeHost{files: map[string]string{"file_made_0": text}}); err != nil || !again.Equal {
			t.Errorf("%s, with the stored file: %+v, %v", path, again, err)
		}
	}
	h := &fakeHost{}
	req := request(program(countFetched, "strings"), s.URL+"/none")
	got := p.Run(t.Context(), req, h)
	if got.Authored == nil || got.Authored.Type != "not_found" || len(h.made) != 0 ||
		got.Effects.Fetches[0].Status != 404 {
		t.Errorf("of a page that is not there: %s, %+v", said(got), got.Effects.Fetches)
	}
	if again, err := Replay(t.Context(), p, Recording{Request: req, Journal: got.Effects.Journal,
		Authored: got.Authored}, h); err != nil || !again.Equal {
		t.Errorf("replay: %+v, %v", again, err)
	}
	req.Fetches = 0
	if got := p.Run(t.Context(), req, h); got.Authored == nil || got.Authored.Type != "denied" {
		t.Errorf("over the number: %s", said(got))
	}
}

// A program reads a file that it has made and closed, also in a replay.
func TestProgramsReadWhatTheyMake(t *testing.T) {
	p := compilePool(t, nil)
	req := request(program(readOwn, "fmt", "io"))
	got := p.Run(t.Context(), req, &fakeHost{})
	if said(got) != `value ["a;b\n","utf-8",7,{"$file":"file_made_0"}]` {
		t.Fatal(said(got))
	}
	if again, err := Replay(t.Context(), p, Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value},
		&fakeHost{}); err != nil || !again.Equal {
		t.Errorf("replay: %+v, %v", again, err)
	}
	open := p.Run(t.Context(), request(program(readOwn, "fmt", "io"), true), &fakeHost{})
	if open.Authored == nil || !open.Authored.Plain || !strings.Contains(open.Authored.Message, "is not closed") {
		t.Errorf("before it is closed: %s", said(open))
	}
}

// decodes is the body of a program that returns the text of bytes that it makes itself, packs and unpacks.
const decodes = `
	var out []any
	for _, given := range call.Args {
		raw, err := base64.StdEncoding.DecodeString(given.(string))
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(raw)
		z.Close()
		in, err := gzip.NewReader(&packed)
		if err != nil {
			return nil, err
		}
		unpacked, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		text, err := call.DecodeText(unpacked)
		if err != nil {
			text = err.Error()
		}
		out = append(out, text)
	}
	return out, nil`

// A program decodes bytes as a file of them is decoded. A replay decodes them again. The journal records only character
// sets other than UTF-8.
func TestProgramsDecodeText(t *testing.T) {
	p := compilePool(t, nil)
	large := strings.Repeat("M\xfcller;1\r\n", 20_000) // many pieces
	req := request(program(decodes, "bytes", "compress/gzip", "encoding/base64", "io"), []byte("M\xfcller;K\xf6ln"),
		[]byte("\xff\xfea\x00\xe4\x00"), []byte("\xef\xbb\xbfä\rb"), []byte("M\x81ller;Stra\xe1e\r\nK\x94ln;\r\n"),
		[]byte{0, 1, 2}, []byte{}, []byte(large))
	got := p.Run(t.Context(), req, &fakeHost{})
	want, err := json.Marshal([]string{"Müller;Köln", "aä", "ä\nb", "Müller;Straße\r\nKöln;\r\n",
		"decode: the bytes are no text", "", strings.ReplaceAll(large, "\xfc", "ü")})
	if err != nil || string(got.Value) != string(want) {
		t.Fatalf("%v: %s, want %s", err, clip(said(got)), clip(string(want)))
	}
	if journal := string(got.Effects.Journal); journal != `{"v":1,"asks":[{"op":"decode","params":{},"result":{"charset":"windows-1252"}},{"op":"decode","params":{},"result":{"charset":"utf-16le","marked":true}},`+
		`{"op":"decode","params":{},"result":{"charset":"ibm850"}},{"op":"decode","params":{},"result":{"charset":"windows-1252"}}]}` {
		t.Errorf("the journal is %s", journal)
	}
	if again, err := Replay(t.Context(), p, Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value},
		&fakeHost{}); err != nil || !again.Equal {
		t.Errorf("replay: %+v, %v", again, err)
	}
	most := "\treturn call.DecodeText(make([]byte, 16<<20+1))"
	if over := p.Run(t.Context(), request(program(most)),
		&fakeHost{}); over.Authored == nil || over.Authored.Type != agent.ErrInvalidInput {
		t.Errorf("over the bound: %s", clip(said(over)))
	}
	many := "\tfor range 40 {\n\t\tif text, err := call.DecodeText([]byte(\"abc\")); err != nil || text != \"abc\" {\n\t\t\treturn nil, err\n\t\t}\n\t}\n\treturn 1, nil"
	if got := p.Run(t.Context(), request(program(many)), &fakeHost{}); said(got) != "value 1" {
		t.Errorf("many: %s", said(got))
	}
}

func clip(text string) string { return text[:min(len(text), 300)] }
