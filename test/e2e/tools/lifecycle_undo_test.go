package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// undoRequest reads what an audit entry says of its undo, as a person would.
var undoRequest = regexp.MustCompile(`^(POST|PUT|PATCH|DELETE) (/\S+)$`)

// undoLast undoes the newest operation as the audit trail says.
func undoLast(d *rig.Daemon) {
	d.T.Helper()
	e := d.Get("/v1/maintenance/audit?limit=1")["data"].([]any)[0].(map[string]any)
	m := undoRequest.FindStringSubmatch(e["undo"].(string))
	if m == nil {
		d.T.Fatalf("%s says %q of its undo", e["action"], e["undo"])
	}
	d.Do(http.StatusOK, m[1], m[2], map[string]any{"reason": "by mistake"})
}

// An undoable is an operation of the playbook in a test of its undo.
type undoable struct {
	name, path, file string // path and file (of tools/r) show what it changes
	do               func()
	onFile, redo     bool // whether the file is compared, and whether the undo can be undone
}

// operationsOn lists the operations on r.m and the policy.
func operationsOn(d *rig.Daemon) []undoable {
	const m, methods = "/v1/tools/r/methods/m", "/v1/tools/r/methods"
	put := func(path string) func() {
		return func() {
			d.Do(http.StatusOK, http.MethodPut, path, map[string]any{"code": rig.ProgEcho, "reason": "mine"})
		}
	}
	do := func(name string, body map[string]any) func() {
		return func() { d.Do(http.StatusOK, http.MethodPost, m+"/"+name, body) }
	}
	remove := func(path string) func() { return func() { d.Do(http.StatusNoContent, http.MethodDelete, path, nil) } }
	return []undoable{
		{"quarantine", m, "m", do("quarantine", map[string]any{"reason": "suspect"}), true, true},
		{"release of what is not quarantined", m, "m", do("release", map[string]any{}), false, true},
		{"pin", m, "m", do("pin", map[string]any{}), false, true},
		{"unpin of what is not pinned", m, "m", do("unpin", map[string]any{}), false, true},
		{"approve", m, "m", do("approve", map[string]any{}), false, true},
		{"regenerate", m, "m", do("regenerate", map[string]any{"reason": "suspect"}), false, true},
		{"promote", m, "m", do("promote", map[string]any{}), false, true},
		{"promote with reset", m, "m", do("promote", map[string]any{"reset_metrics": true}), true, true},
		{"rollback", m, "m", do("rollback", map[string]any{"generation": "gen-1"}), true, true},
		{"put over three generations", m, "m", put(m), true, false},
		{"put where there was none", methods + "/own", "own", put(methods + "/own"), true, true},
		{"archive", m, "m", remove(m), true, true},
		{"archive of the tool", methods, "m", remove("/v1/tools/r"), true, true},
		{"prune", m, "m", func() {
			d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/prune",
				map[string]any{"stale_days": 0, "dry_run": false})
		}, true, true},
		{"policy", "/v1/policy", "m", func() {
			d.Policy(map[string]any{"repair_enabled": false, "degraded": map[string]any{"rate": 0.5},
				"artifact_read_roles": []any{"r"}})
		}, false, true},
	}
}

// body is the reply of GET, or "none".
func storedBody(d *rig.Daemon, path string) string {
	r := d.Send(http.MethodGet, path, nil, nil)
	if r.Status == http.StatusNotFound {
		return "none"
	}
	return string(r.Body)
}

var journalPlace = regexp.MustCompile(`"lsn": \d+`)

// fileOf is an artifact's file of role r, except for its place in the journal; "" when there is none.
func fileOf(d *rig.Daemon, name string) string {
	d.T.Helper()
	var data []byte
	d.Look(func(dir string) {
		var err error
		if data, err = os.ReadFile(filepath.Join(dir, "tools", "r", name+".json")); err != nil && !os.IsNotExist(err) {
			d.T.Fatal(err)
		}
	})
	return journalPlace.ReplaceAllString(string(data), "")
}

// Every operation of the playbook is undone by what its audit entry says, to the byte: what the interface answers and
// what the file holds, except for the file's own place in the journal. So is the undo, except for programs that were
// put in.
func TestEveryActIsUndoneToTheByte(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	d.Call(s, "m", "bad") // gen-2
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/regenerate", map[string]any{})
	d.Call(s, "m", 2) // gen-3
	// its first program made it known
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "first"})
	for _, a := range operationsOn(d) {
		checkUndone(d, a)
	}
	checkContractUndone(d)
	d.WantValue(d.Call(s, "m", 3), 3, "persisted")
}

// checkUndone does, undoes, does again and undoes again.
func checkUndone(d *rig.Daemon, a undoable) {
	d.T.Helper()
	want := func(what, is, was string) {
		d.T.Helper()
		if is != was {
			d.T.Errorf("%s: %s:\n%s\nwas:\n%s", a.name, what, is, was)
		}
	}
	before, stored := storedBody(d, a.path), ""
	if a.onFile {
		stored = fileOf(d, a.file)
	}
	a.do()
	after := storedBody(d, a.path)
	undoLast(d)
	want("undone", storedBody(d, a.path), before)
	if a.onFile {
		want("the file undone", fileOf(d, a.file), stored)
	}
	if !a.redo {
		return
	}
	undoLast(d) // the undo
	want("done again", storedBody(d, a.path), after)
	undoLast(d)
	want("undone again", storedBody(d, a.path), before)
}

// checkContractUndone does the same for a contract: all but its revision and use, which only ever grow.
func checkContractUndone(d *rig.Daemon) {
	d.T.Helper()
	terms := func() string {
		o := d.Get("/v1/tools/r")
		delete(o, "revision")
		return string(rig.MustJSON(o))
	}
	before := terms()
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "second",
		"deliverable": map[string]any{"type": "number"}})
	undoLast(d)
	if is := terms(); is != before {
		d.T.Errorf("contract: undone %s, was %s", is, before)
	}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/new", map[string]any{"purpose": "none"})
	undoLast(d)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/tools/new", nil)
}

// An undo keeps what happened since, nothing is undone twice, and an undo of what a later operation changed again is
// refused.
func TestUndoLater(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	for range 3 {
		d.Call(s, "m", 1)
	}
	id := func() string {
		return d.Get("/v1/maintenance/audit?limit=1")["data"].([]any)[0].(map[string]any)["id"].(string)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/promote", map[string]any{"reset_metrics": true})
	reset := id()
	d.Call(s, "m", 1)
	d.Call(s, "m", 1)
	if out, errs, code := d.Client("tools", "undo", reset, "--reason",
		"by mistake"); code != 0 || !strings.Contains(out, "r.m: undone") {
		t.Errorf("tools undo: %d %s%s", code, out, errs)
	}
	if a := d.Artifact("r", "m"); a["success_count"] != 5.0 || a["lifecycle_state"] != "probation" ||
		!rig.Equal("ooooo", a["history"].([]any)[0].(map[string]any)["window"]) {
		t.Errorf("after the undo: %v calls, %v", a["success_count"], a["lifecycle_state"])
	}
	problem := func(status int, path, code string) {
		t.Helper()
		if p := d.Do(status, http.MethodPost, path, nil).Object(t); p["code"] != code {
			t.Errorf("%s: %v", path, p)
		}
	}
	problem(http.StatusConflict, "/v1/maintenance/audit/"+reset+"/undo", "cannot_undo")
	problem(http.StatusNotFound, "/v1/maintenance/audit/aud_none/undo", "not_found")
	d.Policy(map[string]any{"repair_enabled": false})
	first := id()
	d.Policy(map[string]any{"repair_enabled": true, "force_generation": false})
	problem(http.StatusConflict, "/v1/maintenance/audit/"+first+"/undo", "cannot_undo")
	audit := d.List("/v1/maintenance/audit")
	for _, e := range audit {
		for _, k := range []string{"id", "timestamp", "actor", "action", "target", "undo"} {
			if e[k] == nil || e[k] == "" {
				t.Errorf("an entry without %s: %v", k, e)
			}
		}
	}
	if last := audit[len(audit)-2]; last["undoes"] != reset || last["reason"] != "by mistake" ||
		last["actor"] != "local" || last["action"] != "artifact.undo" {
		t.Errorf("the undo's own entry: %v", last)
	}
}
