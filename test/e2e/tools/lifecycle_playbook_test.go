package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// toolsCommand runs a subcommand of tools, which must succeed and print want.
func toolsCommand(d *rig.Daemon, want string, args ...string) string {
	d.T.Helper()
	out, errs, code := d.Client(append([]string{"tools"}, args...)...)
	if code != 0 || !strings.Contains(out, want) {
		d.T.Errorf("tools %v: exit %d, want %q in\n%s%s", args, code, want, out, errs)
	}
	return out
}

// The playbook as subcommands: every operation works, and is audited with who, what, why and how to undo it.
func TestPlaybookCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	d.Call(s, "m", "bad")
	tools := func(want string, args ...string) string { return toolsCommand(d, want, args...) }
	tools("r", "list")
	tools("probation", "list", "r")
	tools("func Run", "show", "r", "m")
	tools("repair:execution", "lineage", "r", "m")
	tools("+\t\treturn \"fixed\", nil", "diff", "r", "m")
	tools("SESSIONS", "scorecards", "r")
	tools("healthy", "decisions", "r", "m")
	tools("nothing", "stale", "--days", "1")
	tools("quarantined", "quarantine", "r", "m", "--reason", "suspect")
	asked := len(m.Questions())
	if d.Call(s, "m", 1); len(m.Questions()) != asked+1 {
		t.Error("a quarantined program ran")
	}
	d.Restart()
	if a := d.Artifact("r", "m"); a["quarantined"] != true {
		t.Error("the quarantine did not survive a restart")
	}
	tools("probation", "release", "r", "m")
	tools("pinned", "pin", "r", "m")
	tools("probation", "unpin", "r", "m")
	tools("gen-1", "rollback", "r", "m")
	if a := d.Artifact("r", "m"); a["code"] != rig.ProgMayPanic { // byte-identical
		t.Error("the rollback brought another program")
	}
	tools("gen-2", "rollback", "r", "m", "--generation", "gen-2")
	tools("durable", "promote", "r", "m", "--reset-metrics", "--reason", "checked by hand")
	if a := d.Artifact("r", "m"); a["success_count"] != 0.0 || a["lifecycle_state"] != "durable" {
		t.Errorf("after the promotion: %v, %v", a["success_count"], a["lifecycle_state"])
	}
	tools("regenerates", "regenerate", "r", "m", "--reason", "suspect")
	asked = len(m.Questions())
	got := d.Call(s, "m", 1)
	if len(m.Questions()) != asked+1 || got.Program.Trigger != "regenerate:suspect" ||
		d.Artifact("r", "m")["repair_count_since_regen"] != 0.0 {
		t.Errorf("after regenerate: %+v", got.Program)
	}
	file := filepath.Join(d.Dir, "own.go")
	if err := os.WriteFile(file, []byte(rig.ProgEcho), 0o600); err != nil {
		t.Fatal(err)
	}
	tools("approved", "put", "r", "m", file, "--reason", "mine")
	if out, _, code := d.Client("tools", "put", "r", "m", "-"); code == 0 {
		t.Errorf("an empty program was taken: %s", out)
	}
	out := tools("suspect", "audit", "--json")
	for _, part := range []string{"artifact.quarantine", "artifact.promote", "artifact.rollback", "artifact.put",
		`"actor":"local"`, `"undo":"POST /v1/maintenance/audit/aud_`, "checked by hand"} {
		if !strings.Contains(out, part) {
			t.Errorf("the audit trail lacks %s", part)
		}
	}
}

// The policy as subcommands: parts are shown and changed, a null brings the default back, unknown names are refused.
func TestPolicyCommands(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	if out, _, code := d.Client("policy", "set", "repair_enabled=false",
		"degraded.min_failures=5"); code != 0 || !strings.Contains(out, "degraded.min_failures=5, was 3\n") {
		t.Errorf("policy set: %d %s", code, out)
	}
	if out, _, code := d.Client("policy", "get", "repair_enabled"); code != 0 || strings.TrimSpace(out) != "false" {
		t.Errorf("policy get: %d %s", code, out)
	}
	if out, _, code := d.Client("policy", "get", "degraded.min_failures"); code != 0 || strings.TrimSpace(out) != "5" {
		t.Errorf("policy get with a dot: %d %s", code, out)
	}
	if _, _, code := d.Client("policy", "get", "degraded.min_failures.x"); code == 0 {
		t.Error("a part of a number")
	}
	if out, _, code := d.Client("policy", "set", "repair_enabled=null",
		`{"degraded":null}`); code != 0 || out != "degraded.min_failures=3, was 5\nrepair_enabled=true, was false\n" {
		t.Errorf("a null brings defaults back: %d %s", code, out)
	}
	if _, errs, code := d.Client("policy", "set", "no_such=1"); code == 0 || !strings.Contains(errs, "no_such") {
		t.Errorf("an unknown switch: %d %s", code, errs)
	}
}

// Dry runs change nothing; what was archived comes back to the byte.
func TestArchiveIsUndoneToTheByte(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	d.Call(d.Session("r"), "m", 1)
	before := fileOf(d, "m")
	view := string(d.Do(http.StatusOK, http.MethodGet, "/v1/tools/r/methods/m", nil).Body)
	for _, args := range [][]string{{"archive", "r"}, {"prune", "--days", "0"}} { // dry runs
		if out, errs, code := d.Client(append([]string{"tools"},
			args...)...); code != 0 || !strings.Contains(out, "would be archived") {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
	if is := string(d.Do(http.StatusOK, http.MethodGet, "/v1/tools/r/methods/m", nil).Body); is != view {
		t.Error("a dry run changed the artifact")
	}
	if out, errs, code := d.Client("tools", "archive", "r", "--yes", "--reason", "old"); code != 0 {
		t.Fatalf("archive: %s%s", out, errs)
	}
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/tools/r/methods/m", nil)
	if out, errs, code := d.Client("tools", "restore", "r"); code != 0 {
		t.Fatalf("restore: %s%s", out, errs)
	}
	if is := string(d.Do(http.StatusOK, http.MethodGet, "/v1/tools/r/methods/m", nil).Body); is != view {
		t.Errorf("restored:\n%s\nwas:\n%s", is, view)
	}
	if after := fileOf(d, "m"); after != before || before == "" {
		t.Errorf("the restored file is\n%s\nwas\n%s", after, before)
	}
}

// Time passes by the test's clock. A stale tool leaves the prompt and is still callable; the schedule is
// off by default, archives when it is on, and says so in the audit trail.
func TestTimePasses(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"old.m": {rig.ProgFixes}, "fresh.m": {rig.ProgFixes}, "x.y": {rig.ProgFixes}})
	d, set := rig.StartAhead(t, m)
	d.Policy(map[string]any{"known_tools_prompt_limit": 1})
	old := d.Session("old")
	d.Call(old, "m", 1)
	set("1440h")
	d.Call(d.Session("fresh"), "m", 1)
	d.Call(d.Session("x"), "y", 1)
	if user := m.LastQuestion().User; strings.Contains(user, "- old") || !strings.Contains(user, "- fresh") {
		t.Errorf("the stale tool is not behind the fresh one:\n%s", user)
	}
	// the tool and its program
	if got := d.Get("/v1/maintenance/stale?days=30")["data"].([]any); len(got) != 2 || got[0].(map[string]any)["role"] != "old" {
		t.Errorf("stale: %v", got)
	}
	d.WantValue(d.Call(old, "m", 2), 2, "persisted")
	set("4320h")
	d.Policy(map[string]any{"maintenance": map[string]any{"interval_hours": 24, "stale_days": 90}})
	rig.Until(t, "scheduled maintenance", func() bool {
		return d.Send(http.MethodGet, "/v1/tools/old", nil, nil).Status == http.StatusNotFound
	})
	rig.Until(t, "the audit trail says so", func() bool { // after it has happened
		out, _, _ := d.Client("tools", "audit", "--json")
		return strings.Contains(out, "maintenance.scheduled") && strings.Contains(out, `"actor":"recurgentd"`)
	})
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore", map[string]any{"role": "old"})
}

// With approval_required, no program that a model wrote runs before a person said so: neither a new one nor a repair.
func TestApproval(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"approval_required": true})
	s := d.Session("r")
	d.WantError(d.Call(s, "m", 1), "denied")
	waits := d.Call(s, "m", 1)
	if d.WantError(waits, "denied"); !strings.HasSuffix(waits.Outcome.ErrorMessage,
		" waits for a person's approval: recurgentd tools approve r m") {
		t.Errorf("the message is %q", waits.Outcome.ErrorMessage)
	}
	approve := func() { d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/approve", map[string]any{}) }
	approve()
	d.WantValue(d.Call(s, "m", 1), 1, "persisted")
	d.WantError(d.Call(s, "m", "bad"), "execution") // the repair waits, and the approved program goes on answering
	d.WantValue(d.Call(s, "m", 2), 2, "persisted")
	approve()
	d.WantValue(d.Call(s, "m", "bad"), "fixed", "persisted")
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}
