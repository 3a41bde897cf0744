package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// actID is the id of the newest operation of the audit trail.
func actID(d *rig.Daemon) string {
	d.T.Helper()
	return d.Get("/v1/maintenance/audit?limit=1")["data"].([]any)[0].(map[string]any)["id"].(string)
}

// archived archives r.m and returns the operation's id.
func archived(d *rig.Daemon) string {
	d.T.Helper()
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/r/methods/m", nil)
	return actID(d)
}

// undo undoes the operation, and returns the id of the undo, "" where it was refused.
func undo(d *rig.Daemon, id string, status int) string {
	d.T.Helper()
	d.Do(status, http.MethodPost, "/v1/maintenance/audit/"+id+"/undo", map[string]any{})
	if status != http.StatusOK {
		return ""
	}
	return actID(d)
}

// Archive, forge again, archive again: each undo restores the program that its own operation archived, also after
// restarts.
func TestSeed001Line256EachUndoRestoresItsOwn(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Program("\treturn \"first\", nil"),
		rig.Program("\treturn \"second\", nil"), rig.Program("\treturn \"third\", nil")}})
	d := rig.Start(t, m)
	s := d.Session("r")
	serves := func(value string) {
		t.Helper()
		d.WantValue(d.Call(s, "m"), value, "persisted")
	}
	d.WantValue(d.Call(s, "m"), "first", "generated")
	first := archived(d)
	d.WantValue(d.Call(s, "m"), "second", "generated")
	second := archived(d)
	d.Restart()
	firstBack := undo(d, first, http.StatusOK)
	serves("first")
	undo(d, first, http.StatusConflict) // it is undone
	firstAway := undo(d, firstBack, http.StatusOK)
	undo(d, second, http.StatusOK)
	d.Restart()
	serves("second")
	archived(d)
	undo(d, firstAway, http.StatusOK)
	serves("first")
}

// The undo of a restore takes away what the restore brought, and no program that came after it.
func TestSeed001Line256UndoOfARestoreSparesLaterPrograms(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Program("\treturn \"first\", nil"),
		rig.Program("\treturn \"second\", nil")}, "r.other": {rig.ProgEcho}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m")
	restored := undo(d, archived(d), http.StatusOK)
	d.Call(s, "other")
	again := archived(d)
	d.WantValue(d.Call(s, "m"), "second", "generated")
	undo(d, restored, http.StatusConflict)
	archived(d)
	undo(d, again, http.StatusOK)
	undo(d, restored, http.StatusOK)
	if r := d.Send(http.MethodGet, "/v1/tools/r/methods/m", nil, nil); r.Status != http.StatusNotFound {
		t.Errorf("r.m answers %d", r.Status)
	}
	d.Get("/v1/tools/r/methods/other")
}
