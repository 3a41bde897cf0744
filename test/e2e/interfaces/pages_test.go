package interfaces

import (
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

// TestPages runs what a model wrote about pages, feeds and services that saw nothing but the prompt, and holds it to the answers that are right: the names
// in the prompt are those that one would guess, and there are enough of them.
func TestPages(t *testing.T) {
	t.Parallel()
	s := site(t)
	data, err := os.ReadFile("testdata/page-tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []task
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "{site}", s.URL)), &list); err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/answers-pages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, f := range archive.Files {
		answers[f.Name] = string(f.Data)
	}
	script := rig.Script{}
	for i := range list {
		k := &list[i]
		k.Deliverable, k.Context = json.RawMessage("null"), json.RawMessage("{}")
		script[k.Role+"."+k.Method] = []any{openaitest.Reply{Content: answers[k.ID]}}
	}
	d := rig.Start(t, rig.NewModel(t, script), "--fetch-allow", strings.TrimPrefix(s.URL, "http://"))
	for i := range list {
		for _, w := range perform(d, &list[i]) {
			t.Error(w)
		}
	}
	if len(list) < 15 || len(answers) != len(list) {
		t.Errorf("%d answers to %d tasks", len(answers), len(list))
	}
}
