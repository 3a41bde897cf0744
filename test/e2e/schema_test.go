package e2e

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// storedSchemas compiles the documents of docs/schemas, once.
var storedSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	all := map[string]*jsonschema.Schema{}
	for _, name := range []string{"registry", "artifact"} {
		c := jsonschema.NewCompiler()
		c.AssertFormat = true
		s, err := c.Compile(filepath.Join("..", "..", "docs", "schemas", name+".schema.json"))
		if err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, nil
})

// checkStoredFiles holds every registry and artifact below a data directory to its schema (P-06), archived artifacts too, and
// returns how many artifacts it saw. What is no JSON is another test's matter: the daemon sets it aside.
func checkStoredFiles(t *testing.T, dir string) int {
	t.Helper()
	schemas, err := storedSchemas()
	if err != nil {
		t.Fatal(err)
	}
	tools, seen := filepath.Join(dir, "tools"), 0
	err = filepath.WalkDir(tools, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && (e.IsDir() || !strings.HasSuffix(path, ".json")) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(tools, path)
		kind := "artifact"
		switch {
		case rel == "registry.json":
			kind = "registry"
		case !strings.Contains(rel, string(filepath.Separator)), strings.HasPrefix(filepath.ToSlash(rel), "archive/registry/"):
			return nil // the index, and archived tools
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var v any
		if json.Unmarshal(data, &v) != nil {
			return nil
		}
		if err := schemas[kind].Validate(v); err != nil {
			t.Errorf("%s: %#v", rel, err)
		}
		if kind == "artifact" {
			seen++
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return seen
}

// P-06, P-21..P-33: artifacts that were forged, repaired, refused, regenerated, quarantined, pinned, put, blessed, archived and
// run under several contracts, and a registry with contracts: every file keeps its schema.
func TestFilesKeepTheirSchemas(t *testing.T) {
	f := newFeed(t)
	m := newModel(t, script{"r.m": {progMayPanic, progMends}, "pf.m": {progMayPanic, progBreaks}, "news.read": {progFetches}, "c.m": {progMends}, "ask.ask": {progEcho}, "q.m": {progMends}, "a b.ü c": {progMends}})
	d := newDaemon(t, m, "--fetch-allow", f.host())
	for _, role := range []string{"r", "pf"} {
		s := d.session(role)
		d.call(s, "m", 1)
		d.call(s, "m", "bad")
	}
	d.call(d.session("news"), "read", f.URL)
	f.status(503)
	d.call(d.session("news"), "read", f.URL)
	d.call(d.session("ask"), "ask", "a question")
	d.call(d.session("a b"), "ü c", 1)
	for _, minimum := range []int{0, -1, -2, -3, -4} {
		d.invoke(d.session("c"), map[string]any{"method": "m", "args": []any{1}, "contract": map[string]any{"purpose": "p", "deliverable": map[string]any{"type": "number", "minimum": minimum}}})
	}
	d.do(http.StatusOK, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "p", "deliverable": map[string]any{"type": "number"}, "acceptance": []any{map[string]any{"assert": "a"}},
		"failure_policy": map[string]any{"on_error": "return_error"}, "methods": map[string]any{"other": map[string]any{"purpose": "q"}}})
	d.call(d.session("q"), "m", 1)
	for _, act := range []string{"quarantine", "pin", "approve", "promote"} {
		d.do(http.StatusOK, http.MethodPost, "/v1/tools/q/methods/m/"+act, map[string]any{"reason": "r"})
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/regenerate", map[string]any{})
	d.do(http.StatusOK, http.MethodPut, "/v1/tools/c/methods/m", map[string]any{"code": progEcho})
	d.do(http.StatusNoContent, http.MethodDelete, "/v1/tools/ask/methods/ask", nil)
	d.kill(syscall.SIGTERM)
	if n := checkStoredFiles(t, d.state()); n != 7 {
		t.Errorf("%d artifacts were written, want 7", n)
	}
	d.start()
}
