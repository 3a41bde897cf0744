package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const workflowDir = "testdata/workflows"

// A workflow is what people of a small company ask of a method. In its directory lie the files that they upload, the
// program of a model that saw the request and the first call's files alone, in made/ the files that they expect, and in
// web/ what a server of theirs answers.
//
// In arguments {"$file": "a.csv"} is the file of the directory, and {web} the address of the server; in values
// {"$file": "made/a.csv"} is a file of that name and content.
type workflow struct {
	Asks         string // in a person's words; the contract's purpose where there is none
	Role, Method string
	Contract     object
	Sees         []string // in the request: what a writer needs to know of the files
	Calls        []struct {
		About  string // what is special
		Args   []any
		Kwargs object
		Value  any
		Error  string   // its type
		Posts  []string // bodies that the server gets
		Asked  int      // requests to the model after the first call
	}
	name string
}

func (w *workflow) path(file string) string { return filepath.Join(workflowDir, w.name, file) }

// mediaTypes are what people's browsers and mail programs say of files. What is not listed has none of its own.
var mediaTypes = map[string]string{
	".csv": "text/csv", ".txt": "text/plain", ".xml": "text/xml", ".gz": "application/gzip", ".vcf": "text/vcard",
	".ics": "text/calendar", ".eml": "message/rfc822",
	".html": "text/html", ".json": "application/json", ".png": "image/png", ".pdf": "application/pdf",
	".svg": "image/svg+xml", ".rss": "application/rss+xml", ".atom": "application/atom+xml",
}

func mediaType(file string) string {
	if known := mediaTypes[path.Ext(file)]; known != "" {
		return known
	}
	return "application/octet-stream"
}

// largeFiles are made here, not kept.
var largeFiles = map[string]func(io.Writer){
	"big-sales/till.csv": func(w io.Writer) { tillRows(w, 120_000) },
	"big-sales/next.csv": func(w io.Writer) { tillRows(w, 1_000) },
}

// tillRows writes what a till exports: every tenth receipt is canceled by the row after it.
func tillRows(w io.Writer, n int) {
	fmt.Fprint(w, "\ufeffBon;Zeit;Filiale;Betrag\r\n")
	for i := range n {
		sign := ""
		if i%10 == 9 {
			sign = "-"
		}
		fmt.Fprintf(w, "%08d;2026-%02d-%02d %02d:%02d:00;Filiale %d;\"%s%d.%03d,%02d\"\r\n", i, i%12+1, i%28+1, i%12+8,
			i%60, i%3+1, sign, i%3+1, i%1000, i%100)
	}
}

func workflows(t *testing.T, web string) []*workflow {
	t.Helper()
	dirs, err := os.ReadDir(workflowDir)
	if err != nil {
		t.Fatal(err)
	}
	var list []*workflow
	for _, dir := range dirs {
		w := &workflow{name: dir.Name()}
		data, err := os.ReadFile(w.path("case.json"))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(strings.ReplaceAll(string(data), "{web}", web+"/"+w.name)))
		d.UseNumber()
		d.DisallowUnknownFields()
		if err := d.Decode(w); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		if w.Contract == nil {
			w.Contract = object{"purpose": w.Asks}
		}
		list = append(list, w)
	}
	return list
}

// TestWorkflows has a model write for what the people of an office, a shop, a workshop and a practice ask, with the
// files that they have. What it wrote answers later calls with other files, which it has not seen, and no model is
// asked.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	list := workflows(t, o.URL)
	script := rig.Script{}
	for _, w := range list {
		code, err := os.ReadFile(w.path("program.go"))
		if err != nil {
			t.Fatal(err)
		}
		script[w.Role+"."+w.Method] = []any{string(code), openaitest.Reply{Status: http.StatusBadRequest}}
	}
	m, host := rig.NewModel(t, script), strings.TrimPrefix(o.URL, "http://")
	d := rig.Start(t, m, "--fetch-allow", host)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/connections/partner",
		object{"hosts": []string{host}, "methods": []string{"GET", "POST"}, "roles": []string{"order desk"},
			"auth": object{"type": "bearer", "secret": "canary-of-the-partner"}})
	for _, w := range sampled.Of(list, 4) {
		t.Run(w.name, func(t *testing.T) {
			view := *d
			view.T = t
			w.run(&view, m, o)
		})
	}
}

func (w *workflow) run(d *rig.Daemon, m *rig.Model, o *office) {
	d.T.Helper()
	s := d.Session(w.Role, object{"contract": w.Contract})
	for i, c := range w.Calls {
		source := "persisted"
		if i == 0 {
			source, c.Asked = "generated", 1
		}
		body := object{"method": w.Method, "args": w.uploaded(d, append([]any{}, c.Args...))}
		if c.Kwargs != nil {
			body["kwargs"] = w.uploaded(d, c.Kwargs)
		}
		r := d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+s+"/calls", body)
		var got rig.Reply
		r.Into(d.T, &got)
		at := fmt.Sprintf("call %d (%s)", i+1, c.About)
		if got.Outcome.ErrorType != c.Error {
			d.T.Errorf("%s: error %q (%s), want %q; value %s", at, got.Outcome.ErrorType, got.Outcome.ErrorMessage,
				c.Error, rig.MustJSON(got.Outcome.Value))
		} else if value := exact(d.T, r.Body); c.Error == "" && !w.equal(d, c.Value, value) {
			d.T.Errorf("%s: value %s\nwant %s", at, rig.MustJSON(value), rig.MustJSON(c.Value))
		}
		if got.Program.Source != source || got.Usage.ModelRequests != c.Asked {
			d.T.Errorf("%s: a program that was %s, after %d model requests", at, got.Program.Source,
				got.Usage.ModelRequests)
		}
		w.wantPosts(d.T, at, c.Posts, o.taken())
	}
	w.wantSeen(d.T, m)
}

// exact reads a reply's value with the digits that it has.
func exact(t *testing.T, reply []byte) any {
	t.Helper()
	var got struct{ Outcome struct{ Value any } }
	d := json.NewDecoder(bytes.NewReader(reply))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got.Outcome.Value
}

// uploaded puts references to uploaded files in the place of files of the directory.
func (w *workflow) uploaded(d *rig.Daemon, v any) any {
	d.T.Helper()
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = w.uploaded(d, v[i])
		}
	case object:
		name, ok := v["$file"].(string)
		if !ok {
			for k := range v {
				v[k] = w.uploaded(d, v[k])
			}
			break
		}
		r := d.Send(http.MethodPost, "/v1/files?name="+name, w.content(d.T, name),
			map[string]string{"Content-Type": mediaType(name)})
		if r.Status != http.StatusCreated {
			d.T.Fatalf("upload of %s: status %d: %s", name, r.Status, r.Body)
		}
		return object{"$file": r.Object(d.T)["id"]}
	}
	return v
}

func (w *workflow) content(t *testing.T, name string) []byte {
	t.Helper()
	if write := largeFiles[w.name+"/"+name]; write != nil {
		var b bytes.Buffer
		write(&b)
		return b.Bytes()
	}
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// equal compares a value to the digit, and files by name, media type and content.
func (w *workflow) equal(d *rig.Daemon, want, got any) bool {
	d.T.Helper()
	switch want := want.(type) {
	case []any:
		list, ok := got.([]any)
		same := ok && len(list) == len(want)
		for i := 0; same && i < len(want); i++ {
			same = w.equal(d, want[i], list[i])
		}
		return same
	case object:
		members, ok := got.(object)
		same := ok && len(members) == len(want)
		if file, ok := want["$file"].(string); ok && same {
			id, _ := members["$file"].(string)
			return w.sameFile(d, file, id)
		}
		for k := range want {
			same = same && w.equal(d, want[k], members[k])
		}
		return same
	}
	return reflect.DeepEqual(want, got)
}

func (w *workflow) sameFile(d *rig.Daemon, want, id string) bool {
	d.T.Helper()
	f := d.Get("/v1/files/" + id)
	data := d.Send(http.MethodGet, "/v1/files/"+id+"/content", nil, nil).Body
	kind, _, err := mime.ParseMediaType(fmt.Sprint(f["media_type"]))
	if f["name"] != path.Base(want) || err != nil || kind != mediaType(want) {
		d.T.Errorf("made was %v of %v, want %s of %s", f["name"], f["media_type"], path.Base(want), mediaType(want))
		return false
	}
	if !bytes.Equal(data, w.content(d.T, want)) {
		d.T.Errorf("%s is\n%q\nwant\n%q", want, data, w.content(d.T, want))
		return false
	}
	return true
}

func (w *workflow) wantPosts(t *testing.T, at string, want []string, got [][]byte) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d bodies were posted, want %d", at, len(got), len(want))
		return
	}
	for i := range want {
		if data := w.content(t, want[i]); !bytes.Equal(got[i], bytes.TrimSpace(data)) {
			t.Errorf("%s: posted was %s, want %s", at, got[i], data)
		}
	}
}

// wantSeen holds the request for the program to what it shows of the files.
func (w *workflow) wantSeen(t *testing.T, m *rig.Model) {
	t.Helper()
	for _, q := range m.Questions() {
		if q.Role != w.Role || q.Method != w.Method {
			continue
		}
		_, files, _ := strings.Cut(q.User, "<files>")
		files, _, _ = strings.Cut(files, "</files>")
		for _, part := range w.Sees {
			if !strings.Contains(files, part) {
				t.Errorf("the request does not show %q", part)
			}
		}
		t.Logf("the request shows:%s", files)
	}
}

// An office is the web server of those whom the people work with.
type office struct {
	*httptest.Server
	mu     sync.Mutex
	posted [][]byte // since they were last taken
	busy   int
}

// taken returns what was posted since the last time.
func (o *office) taken() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	posted := o.posted
	o.posted = nil
	return posted
}

func newOffice(t *testing.T) *office {
	o := &office{}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// ServeHTTP gives files of web/, pages of the lists of pages/, and takes what is posted with the connection's
// credential.
func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	workflow, file, _ := strings.Cut(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "/")
	dir := filepath.Join(workflowDir, workflow)
	list, paged := strings.CutPrefix(file, "pages/")
	switch {
	case r.Method == http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer canary-of-the-partner" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		o.posted = append(o.posted, body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"accepted": true}`)
	case paged:
		o.page(w, r, filepath.Join(dir, "pages", list))
	default:
		data, err := os.ReadFile(filepath.Join(dir, "web", file))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mediaType(file))
		_, _ = w.Write(bytes.ReplaceAll(data, []byte("{web}"), []byte(o.URL+"/"+workflow)))
	}
}

// page gives at most limit items of a list, and at most two; every second request comes too early.
func (o *office) page(w http.ResponseWriter, r *http.Request, file string) {
	if o.busy++; o.busy%2 == 0 {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	var items []json.RawMessage
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &items) != nil {
		http.NotFound(w, r)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor")) // none is the beginning
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 2 {
		limit = 2
	}
	to := min(from+limit, len(items))
	answer := object{"items": items[min(from, to):to], "next": nil}
	if to < len(items) {
		answer["next"] = strconv.Itoa(to)
	}
	_, _ = w.Write(rig.MustJSON(answer))
}
