package tools

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// site serves the files of testdata/site.txtar, and what needs more than a file.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/site.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files["/"+f.Name] = string(f.Data)
	}
	var busy, rate atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		if busy.Add(1)%3 != 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, `{"state": "ready"}`)
	})
	mux.HandleFunc("/rate", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		fmt.Fprintf(w, `{"rate": %d}`, rate.Add(1))
	})
	mux.HandleFunc("/orders", func(w http.ResponseWriter, r *http.Request) {
		var order struct {
			Item  string
			Count int
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer canary-of-the-shop":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `[{"id": 1, "item": "lamp", "state": "open"}, {"id": 2, "item": "bulb", "state": "sent"}, {"id": 3, "item": "shade", "state": "open"}]`)
		case json.NewDecoder(r.Body).Decode(&order) != nil || order.Item == "" || order.Count == 0 ||
			!strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id": "%s-%d"}`, order.Item, order.Count)
		}
	})
	mux.HandleFunc("/latin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		fmt.Fprint(w, "<title>K\xe4se f\xfcr \xd6sterreich</title>")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
		fmt.Fprint(w, text)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestPages runs what a model wrote about pages, feeds and services that saw nothing but the prompt, and holds it to
// the answers that are right: the names in the prompt are those that one would guess, and there are enough of them.
func TestPages(t *testing.T) {
	t.Parallel()
	s := site(t)
	list := blindTasks(t, "page", "{site}", s.URL)
	d := rig.Start(t, blindModel(t, "pages", list), "--fetch-allow", strings.TrimPrefix(s.URL, "http://"))
	d.Do(http.StatusCreated, "PUT", "/v1/connections/shop",
		map[string]any{"hosts": []string{strings.TrimPrefix(s.URL, "http://")}, "methods": []string{"GET", "POST"},
			"roles": []string{"orders"},
			"auth":  map[string]any{"type": "bearer", "secret": "canary-of-the-shop"}})
	for i := range list {
		for _, w := range perform(d, &list[i]) {
			t.Error(w)
		}
	}
}

// TestFiles does so with programs that read and make files.
func TestFiles(t *testing.T) {
	t.Parallel()
	model := blindModel(t, "files", blindTasks(t, "file"))
	d := rig.Start(t, model)
	archive, err := txtar.ParseFile("testdata/uploads.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	upload := func(name string, data []byte) {
		f := d.Send(http.MethodPost, "/v1/files?name="+name, data,
			map[string]string{"Content-Type": "application/octet-stream"}).Object(t)
		ids = append(ids, "{file:"+name+"}", f["id"].(string))
	}
	for _, f := range archive.Files {
		upload(f.Name, f.Data)
		if f.Name == "log.jsonl" {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			if _, err := w.Write(f.Data); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			upload("log.jsonl.gz", packed.Bytes())
		}
	}
	list := blindTasks(t, "file", ids...)
	for i := range list {
		k := &list[i]
		s := d.Session(k.Role, map[string]any{"contract": map[string]any{"purpose": k.Purpose}})
		for n, c := range k.Calls {
			got := d.Invoke(s, map[string]any{"method": k.Method, "args": c.Args})
			if c.Error != got.Outcome.ErrorType || c.Error == "" && !rig.Equal(c.Expect, opened(d, got.Outcome.Value)) {
				t.Errorf("%s call %d: got %v (%s: %s), want %v %s", k.ID, n+1, opened(d, got.Outcome.Value),
					got.Outcome.ErrorType, got.Outcome.ErrorMessage, c.Expect, c.Error)
			}
		}
	}
}

// opened puts the content of files in their place.
func opened(d *rig.Daemon, v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if id, ok := m["$file"].(string); ok {
		return string(d.Send(http.MethodGet, "/v1/files/"+id+"/content", nil, nil).Body)
	}
	out := map[string]any{}
	for k, v := range m {
		out[k] = opened(d, v)
	}
	return out
}

// blindTasks reads testdata/KIND-tasks.json, with each text of replace in the place of the one before it.
func blindTasks(t *testing.T, kind string, replace ...string) []rig.Task {
	t.Helper()
	data, err := os.ReadFile("testdata/" + kind + "-tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []rig.Task
	if err := json.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(string(data))), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Deliverable, list[i].Context = json.RawMessage("null"), json.RawMessage("{}")
	}
	return list
}

// blindModel answers with testdata/answers-NAME.txtar, one answer a task.
func blindModel(t *testing.T, name string, list []rig.Task) *rig.Model {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/answers-" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, f := range archive.Files {
		answers[f.Name] = string(f.Data)
	}
	script := rig.Script{}
	for _, k := range list {
		script[k.Role+"."+k.Method] = []any{openaitest.Reply{Content: answers[k.ID]}}
	}
	if len(list) < 5 || len(answers) != len(list) {
		t.Fatalf("%d answers to %d tasks", len(answers), len(list))
	}
	return rig.NewModel(t, script)
}
