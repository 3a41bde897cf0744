package tools

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const prunePath = "/v1/maintenance/prune"

// deletes prunes for good what was idle for a day, and returns the operation's id.
func deletes(d *rig.Daemon) string {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodPost, prunePath, map[string]any{"stale_days": 1, "mode": "delete", "dry_run": false})
	return actID(d)
}

// entry is an entry of the audit trail with what has become of its operation.
func entry(d *rig.Daemon, id string) map[string]any {
	d.T.Helper()
	return d.Get("/v1/maintenance/audit/" + id)
}

// What was used today is not deleted, whichever way it is asked for.
func TestSeed001Line241NothingUsedTodayIsDeleted(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	d.Call(d.Session("r"), "m", 1)
	for _, dry := range []bool{true, false} {
		p := d.Do(http.StatusUnprocessableEntity, http.MethodPost, prunePath,
			map[string]any{"stale_days": 0, "mode": "delete", "dry_run": dry}).Object(t)
		if text := string(rig.MustJSON(p)); !strings.Contains(text, "/stale_days") ||
			!strings.Contains(text, "at least 1") || !strings.Contains(text, "archive") {
			t.Errorf("dry run %v: %s", dry, text)
		}
		if _, errs, code := d.Client("tools", "prune", "--days", "0", "--mode", "delete",
			fmt.Sprintf("--yes=%v", !dry)); code == 0 || !strings.Contains(errs, "at least 1") {
			t.Errorf("by the command, dry run %v: %d %s", dry, code, errs)
		}
	}
	wanted := map[string]any{"maintenance": map[string]any{"mode": "delete", "stale_days": 0}}
	for method, path := range map[string]string{http.MethodPatch: "/v1/policy",
		http.MethodPost: "/v1/policy/simulate"} {
		body := any(wanted)
		if method == http.MethodPost {
			body = map[string]any{"patch": wanted}
		}
		if text := string(d.Do(http.StatusUnprocessableEntity, method, path,
			body).Body); !strings.Contains(text, "/maintenance/stale_days") || !strings.Contains(text, "at least 1") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if _, errs, code := d.Client("policy", "set", "maintenance.mode=delete",
		"maintenance.stale_days=0"); code == 0 || !strings.Contains(errs, "at least 1") {
		t.Errorf("the policy by the command: %d %s", code, errs)
	}
	d.Get("/v1/tools/r/methods/m")
	d.Policy(map[string]any{"maintenance": map[string]any{"stale_days": 0}})
	d.Do(http.StatusUnprocessableEntity, http.MethodPatch, "/v1/policy",
		map[string]any{"maintenance": map[string]any{"mode": "delete"}})
	d.Do(http.StatusOK, http.MethodPost, prunePath, map[string]any{"stale_days": 0, "dry_run": false})
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/tools/r/methods/m", nil)
}

// A schedule that an earlier version stored to delete what was idle for no time deletes what was idle for a day, and
// says so.
func TestSeed001Line241StoredScheduleOfNoDays(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"old.m": {rig.ProgFixes}, "fresh.m": {rig.ProgFixes}})
	d, set := rig.StartAhead(t, m)
	d.Call(d.Session("old"), "m", 1)
	set("30h")
	d.Call(d.Session("fresh"), "m", 1)
	d.Policy(map[string]any{"maintenance": map[string]any{"stale_days": 91}})
	d.Edit(func(dir string) {
		file := filepath.Join(dir, "policy.json")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.NewReplacer(`"stale_days": 91`, `"stale_days": 0`, `"mode": "archive"`,
			`"mode": "delete"`).Replace(string(text))
		if edited == string(text) || !strings.Contains(edited, `"stale_days": 0`) {
			t.Fatalf("the stored policy is %s", text)
		}
		if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if got := d.Get("/v1/policy")["maintenance"].(map[string]any); got["stale_days"] != 1.0 || got["mode"] != "delete" {
		t.Errorf("the policy says %v", got)
	}
	d.Policy(map[string]any{"maintenance": map[string]any{"interval_hours": 24}})
	rig.Until(t, "scheduled maintenance", func() bool {
		return d.Send(http.MethodGet, "/v1/tools/old/methods/m", nil, nil).Status == http.StatusNotFound
	})
	d.Get("/v1/tools/fresh/methods/m")
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "old"})
	d.Get("/v1/tools/old/methods/m")
}

// A deletion is undone for a day, to the byte, over kills and restarts; so is its undo. After the day nothing brings it
// back; when its bytes go is the store's conformance test.
func TestSeed001Line256DeletionIsUndoneForADay(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	d, set := rig.StartAhead(t, m)
	d.Call(d.Session("r"), "m", 1)
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/r/methods/m/examples",
		map[string]any{"examples": []any{map[string]any{"args": []any{7}, "expect": map[string]any{"value": 7}}}})
	const path = "/v1/tools/r/methods/m"
	view, file := storedBody(d, path), fileOf(d, "m")
	set("48h")
	if out, errs, code := d.Client("tools", "prune", "--days", "1", "--mode", "delete",
		"--yes"); code != 0 || !strings.Contains(out, "2 deleted; tools restore") {
		t.Fatalf("prune: %d %s%s", code, out, errs)
	}
	first := actID(d)
	if e := entry(d, first); e["undo_request"] == nil || !strings.Contains(string(rig.MustJSON(e["after"])),
		"restorable_until") {
		t.Errorf("the entry of the deletion: %v", e)
	}
	d.Stop(syscall.SIGKILL)
	d.Start()
	d.Do(http.StatusNotFound, http.MethodGet, path, nil)
	back := undo(d, first, http.StatusOK)
	undo(d, first, http.StatusConflict)
	if is := storedBody(d, path); is != view {
		t.Errorf("undone:\n%s\nwas:\n%s", is, view)
	}
	if is := fileOf(d, "m"); is != file {
		t.Errorf("the file undone:\n%s\nwas:\n%s", is, file)
	}
	away := undo(d, back, http.StatusOK)
	d.Do(http.StatusNotFound, http.MethodGet, path, nil)
	undo(d, away, http.StatusOK)
	second := deletes(d)
	set("71h")
	d.Restart()
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "r", "method": "m"})
	d.Do(http.StatusNotFound, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "r", "method": "m"})
	undo(d, second, http.StatusConflict) // a part of it is back
	third := deletes(d)
	set("96h")
	for _, body := range []map[string]any{{"role": "r"}, {"role": "r", "method": "m"}} {
		d.Do(http.StatusNotFound, http.MethodPost, "/v1/maintenance/restore", body)
	}
	for _, id := range []string{second, third} {
		undo(d, id, http.StatusConflict)
		if e := entry(d, id); e["undo_request"] != nil || !strings.Contains(fmt.Sprint(e["undo_refused"]),
			"more than a day ago") {
			t.Errorf("a day after: %v", e)
		}
	}
}

// A name that was grown anew since its program was taken away: what comes back stands behind the newer program, can be
// picked, and loses nothing.
func TestSeed001Line256RestoredBelowANewerProgram(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(d *rig.Daemon) string{"archived": archived, "deleted": deletes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := func(what string) string { return rig.Program("\treturn \"" + what + "\", nil") }
			m := rig.NewModel(t, rig.Script{"r.m": {says("first"), says("second"), says("third"), says("fourth")}})
			d, set := rig.StartAhead(t, m)
			d.WantValue(d.Call(d.Session("r"), "m"), "first", "generated")
			set("30h")
			gone := take(d)
			s := d.Session("r")
			serves := func(value string) {
				t.Helper()
				d.WantValue(d.Call(s, "m"), value, "persisted")
			}
			d.WantValue(d.Call(s, "m"), "second", "generated")
			const path = "/v1/tools/r/methods/m"
			before := storedBody(d, path)
			r := d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "r"}).Object(t)
			if got := fmt.Sprint(r["older_generations"]); got != "[map[generation:gen-2 method:m role:r]]" {
				t.Errorf("the reply says %s", got)
			}
			restored := actID(d)
			if p := d.Do(http.StatusConflict, http.MethodPost, "/v1/maintenance/restore",
				map[string]any{"role": "r", "method": "m"}).Object(t); !strings.Contains(fmt.Sprint(p["detail"]),
				"gen-2") {
				t.Errorf("restored twice: %v", p)
			}
			undo(d, gone, http.StatusConflict) // it is back
			again := undo(d, restored, http.StatusOK)
			if is := storedBody(d, path); is != before {
				t.Errorf("undone:\n%s\nwas:\n%s", is, before)
			}
			undo(d, restored, http.StatusConflict)
			restored = undo(d, again, http.StatusOK)
			serves("second")
			rollback := func(to string) {
				d.Do(http.StatusOK, http.MethodPost, path+"/rollback", map[string]any{"generation": to})
			}
			rollback("gen-2")
			serves("first")
			undo(d, restored, http.StatusConflict) // it answers
			rollback("gen-1")
			d.Restart()
			serves("second")
			undo(d, restored, http.StatusOK)
			if n := len(d.Artifact("r", "m")["history"].([]any)); n != 1 {
				t.Errorf("%d generations are left, want 1", n)
			}
			undo(d, gone, http.StatusOK)
			for _, next := range []string{"third", "fourth"} {
				d.Do(http.StatusOK, http.MethodPost, path+"/regenerate", map[string]any{"reason": "another"})
				m.Answer("r", "m", openaiCode(says(next)))
				d.Call(s, "m")
			}
			if n := len(d.Artifact("r", "m")["history"].([]any)); n > 3 {
				t.Errorf("%d generations are kept", n)
			}
		})
	}
}

// Where one of many deleted programs is back below a newer one, the undo of the deletion brings the others. It is
// refused once all are back.
func TestSeed001Line256DeletionOfManyIsUndoneInPart(t *testing.T) {
	t.Parallel()
	says := func(what string) string { return rig.Program("\treturn \"" + what + "\", nil") }
	m := rig.NewModel(t, rig.Script{"r.m": {says("first"), says("second")}, "b.m": {says("other")}})
	d, set := rig.StartAhead(t, m)
	d.Call(d.Session("r"), "m")
	d.Call(d.Session("b"), "m")
	set("30h")
	gone := deletes(d)
	s := d.Session("r")
	d.WantValue(d.Call(s, "m"), "second", "generated")
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "r", "method": "m"})
	undo(d, gone, http.StatusOK)
	d.WantValue(d.Call(d.Session("b"), "m"), "other", "persisted")
	d.WantValue(d.Call(s, "m"), "second", "persisted")
	if n := len(d.Artifact("r", "m")["history"].([]any)); n != 2 {
		t.Errorf("%d generations, want the newer one and the one that was restored", n)
	}
	undo(d, gone, http.StatusConflict)
}

// Of a tool whose newest program waited for a person, a restore below a newer program brings the one that answered
// meanwhile. It does not take over under promotion.enforce, however far it had come.
func TestSeed001Line256RestoredIsWhatServed(t *testing.T) {
	t.Parallel()
	const path = "/v1/tools/units/methods/convert"
	d, _, s := warm(t, progKelvin, progRankine)
	examples(d, "units", "convert", example(413.6, 212))
	d.Do(http.StatusOK, http.MethodPost, path+"/promote", map[string]any{})
	registers(d, object{"purpose": toKelvin})
	wantStale(d, d.Call(s, "convert", 0), 32) // the new one breaks the example, and waits
	d.Do(http.StatusNoContent, http.MethodDelete, path, nil)
	d.WantValue(d.Call(s, "convert", 0), 491.67, "generated")
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore",
		map[string]any{"role": "units", "method": "convert"})
	d.Policy(object{"promotion": object{"enforce": true}})
	d.WantValue(d.Call(s, "convert", 0), 491.67, "persisted")
	d.Do(http.StatusOK, http.MethodPost, path+"/rollback", map[string]any{"generation": "gen-2"})
	d.WantValue(d.Call(s, "convert", 0), 32, "persisted")
}
