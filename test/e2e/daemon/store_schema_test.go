package daemon

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Artifacts that were forged, repaired, refused, regenerated, quarantined, pinned, put, blessed, archived and
// run under several contracts, and a registry with contracts: every file keeps its schema.
func TestFilesKeepTheirSchemas(t *testing.T) {
	t.Parallel()
	f := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes},
		"pf.m": {rig.ProgMayPanic, rig.ProgBreaks}, "news.read": {rig.ProgFetches}, "c.m": {rig.ProgFixes},
		"ask.ask": {rig.ProgEcho}, "q.m": {rig.ProgFixes}, "a b.ü c": {rig.ProgFixes}})
	d := rig.Start(t, m, "--fetch-allow", f.Host())
	for _, role := range []string{"r", "pf"} {
		s := d.Session(role)
		d.Call(s, "m", 1)
		d.Call(s, "m", "bad")
	}
	d.Call(d.Session("news"), "read", f.URL)
	f.Status(503)
	d.Call(d.Session("news"), "read", f.URL)
	d.Call(d.Session("ask"), "ask", "a question")
	d.Call(d.Session("a b"), "ü c", 1)
	for _, minimum := range []int{0, -1, -2, -3, -4} {
		d.Invoke(d.Session("c"), map[string]any{"method": "m", "args": []any{1},
			"contract": map[string]any{"purpose": "p", "deliverable": map[string]any{"type": "number",
				"minimum": minimum}}})
	}
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "p",
		"deliverable": map[string]any{"type": "number"}, "acceptance": []any{map[string]any{"assert": "a"}},
		"failure_policy": map[string]any{"on_error": "return_error"},
		"methods":        map[string]any{"other": map[string]any{"purpose": "q"}}})
	d.Call(d.Session("q"), "m", 1)
	for _, action := range []string{"quarantine", "pin", "approve", "promote"} {
		d.Do(http.StatusOK, http.MethodPost, "/v1/tools/q/methods/m/"+action, map[string]any{"reason": "r"})
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/regenerate", map[string]any{})
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/c/methods/m", map[string]any{"code": rig.ProgEcho})
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/ask/methods/ask", nil)
	d.Stop(syscall.SIGTERM)
	if n := rig.CheckStoredFiles(t, d.State()); n != 7 {
		t.Errorf("%d artifacts were written, want 7", n)
	}
	d.Start()
}
