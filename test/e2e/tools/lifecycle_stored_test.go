package tools

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A program that an older prompt brought forth is as good as before; corrupt or tampered ones never run.
func TestStoredProgramsAfterChanges(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"p.m": {rig.ProgAdd}, "bad.m": {rig.ProgAdd}, "tamper.m": {rig.ProgAdd}})
	d := rig.Start(t, m)
	for _, role := range []string{"p", "bad", "tamper"} {
		d.Call(d.Session(role), "m", 1, 2)
	}
	edit := func(dir, role string, change func(string) string) {
		path := filepath.Join(dir, "tools", role, "m.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version := regexp.MustCompile(`("prompt_version": ?)"[^"]*"`)
	d.Edit(func(dir string) {
		edit(dir, "p", func(s string) string { return version.ReplaceAllString(s, `$1"an older prompt"`) })
		edit(dir, "bad", func(s string) string { return s[:len(s)/2] })
		edit(dir, "tamper", func(s string) string { return strings.ReplaceAll(s, "a + b", "a - b") })
	})
	got := d.Call(d.Session("p"), "m", 1, 2)
	d.WantValue(got, 3, "persisted")
	if e := d.LogOf(got); e["artifact_prompt_version"] != "an older prompt" {
		t.Errorf("artifact_prompt_version %v", e["artifact_prompt_version"])
	}
	for _, role := range []string{"bad", "tamper"} {
		d.WantValue(d.Call(d.Session(role), "m", 1, 2), 3, "generated")
	}
}

// edit stops the daemon, changes the file of an artifact as somebody with an editor would, and starts it again.
func editArtifact(d *rig.Daemon, role, method string, change func(a map[string]any)) {
	d.T.Helper()
	d.Edit(func(dir string) {
		path := filepath.Join(dir, "tools", role, method+".json")
		text, err := os.ReadFile(path)
		if err != nil {
			d.T.Fatal(err)
		}
		var a map[string]any
		if err := json.Unmarshal(text, &a); err != nil {
			d.T.Fatal(err)
		}
		change(a)
		if err := os.WriteFile(path, rig.MustJSON(a), 0o600); err != nil {
			d.T.Fatal(err)
		}
	})
}

// A program that an older prompt brought forth is as proven as before: it runs, keeps its counters and its version.
func TestPromptRefactorKeepsArtifacts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"p.m": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("p")
	for range 3 {
		d.Call(s, "m", 1, 2)
	}
	editArtifact(d, "p", "m", func(a map[string]any) {
		a["prompt_version"] = "2026-02-15.depth-aware.v3"
		a["history"].([]any)[0].(map[string]any)["prompt_version"] = "2026-02-15.depth-aware.v3"
	})
	got := d.Call(s, "m", 2, 2)
	d.WantValue(got, 4, "persisted")
	if a := d.Artifact("p", "m"); a["success_count"] != 4.0 || a["prompt_version"] != "2026-02-15.depth-aware.v3" ||
		len(m.Questions()) != 1 {
		t.Errorf("%v successes, version %v, %d model requests", a["success_count"], a["prompt_version"],
			len(m.Questions()))
	}
}

// Stored code gets no more trust than fresh code. What imports what programs may not have is not run, whether its
// manifest says so or not; a program of another ABI is forged anew; another interpreter alone changes nothing.
func TestStoredCodeIsNotTrusted(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("stolen"), 0o644); err != nil {
		t.Fatal(err)
	}
	thief := rig.Program("\tdata, _ := os.ReadFile(\""+secret+"\")\n\treturn string(data), nil", "os")
	m := rig.NewModel(t, rig.Script{"thief.m": {rig.ProgFixes}, "manifest.m": {rig.ProgFixes}, "abi.m": {rig.ProgFixes},
		"engine.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	for _, role := range []string{"thief", "manifest", "abi", "engine"} {
		d.Call(d.Session(role), "m", 1)
	}
	latest := func(a map[string]any) map[string]any { return a["history"].([]any)[0].(map[string]any) }
	editArtifact(d, "thief", "m", func(a map[string]any) {
		for _, part := range []map[string]any{a, latest(a)} {
			part["code"], part["code_checksum"] = thief, agent.Checksum(thief)
		}
	})
	editArtifact(d, "manifest", "m", func(a map[string]any) {
		a["dependencies"], latest(a)["dependencies"] = []any{"plugin"}, []any{"plugin"}
	})
	editArtifact(d, "abi", "m", func(a map[string]any) {
		a["runtime_version"], latest(a)["runtime_version"] = "recurgent-abi-0", "recurgent-abi-0"
	})
	editArtifact(d, "engine", "m", func(a map[string]any) { latest(a)["interpreter"] = "another engine 9.9" })
	for _, c := range []struct{ role, source, reason string }{
		{"thief", "repaired", "healthy"}, {"manifest", "generated", "dependencies_not_allowed"},
		{"abi", "generated", "runtime_incompatible"}, {"engine", "persisted", "healthy"},
	} {
		got := d.Call(d.Session(c.role), "m", 1)
		d.WantValue(got, 1, c.source)
		if got.Program.Selection.Reason != c.reason {
			t.Errorf("%s: selected for %q, want %q", c.role, got.Program.Selection.Reason, c.reason)
		}
		if e := string(rig.MustJSON(d.LogOf(got))); strings.Contains(e, "stolen") {
			t.Errorf("%s: the stored program ran", c.role)
		}
	}
}

// A program that fails too often of itself is repaired before it runs again, after a restart too; how often
// counts only what is its own fault.
func TestDegradedIsRepairedFirst(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	operate := func(name string) {
		d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/"+name, map[string]any{})
	}
	operate("pin")
	for range 4 { // a pinned program is never repaired or replaced by itself
		d.WantError(d.Call(s, "m", "bad"), "execution")
	}
	d.Policy(map[string]any{"force_generation": true})
	d.Call(s, "m", 1) // nor by another one that was asked for
	d.Policy(map[string]any{"force_generation": false})
	a := d.Artifact("r", "m")
	if a["lifecycle_state"] != "degraded" || a["code"] != rig.ProgMayPanic || a["recent_failure_rate"] != 0.8 ||
		len(a["history"].([]any)) != 1 {
		t.Errorf("pinned: %v, rate %v, %d generations", a["lifecycle_state"], a["recent_failure_rate"],
			len(a["history"].([]any)))
	}
	operate("unpin")
	d.Restart()
	m.Answer("r", "m", openaiCode(rig.ProgFixes))
	got := d.Call(s, "m", 1) // an argument that the old program would serve
	d.WantValue(got, 1, "repaired")
	if sel := got.Program.Selection; sel.Decision != "repair" || sel.Reason != "degraded" ||
		got.Program.Trigger != "repair:degraded" {
		t.Errorf("selection %+v, trigger %s", sel, got.Program.Trigger)
	}
	if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User, "boom") {
		t.Errorf("the %s request lacks the last failure", q.Kind)
	}
	if failures := d.LogOf(got)["attempt_failures"].([]any); len(failures) != 0 {
		t.Errorf("the degraded program ran first: %v", failures)
	}
	g := d.Artifact("r", "m")["history"].([]any)[0].(map[string]any)
	// the window starts anew
	if g["window"] != "o" || g["success_count"] != 1.0 || g["intrinsic_failure_count"] != 0.0 {
		t.Errorf("the new generation: window %v, %v successes", g["window"], g["success_count"])
	}
}

// What answers one question only is not run for another one, by the syntax tree: neither
// comments nor strings count as a use of the arguments.
func TestCacheabilityByTheSyntaxTree(t *testing.T) {
	t.Parallel()
	cases := []struct {
		method, code string
		reason       string
		forged       int // of three calls with different arguments
	}{
		{"baked", rig.Program("\tcity := \"Paris\"\n\treturn \"the weather of \" + city, nil"), "input_baked_code", 3},
		{"fooled", rig.Program("\t// call.Args is what counts: call.Arg(0, \"x\")\n\treturn \"call.Args \" + \"call.Kwargs\", nil"), "arg_ignored_code", 3},
		{"uses", rig.Program("\t// Paris\n\treturn call.Arg(0, \"x\"), nil"), "stable_method_default", 1},
		{"passes", rig.Program("\treturn first(call), nil") +
			"\nfunc first(c *recurgent.Call) any { return c.Args[0] }\n", "stable_method_default", 1},
	}
	answers := rig.Script{}
	for _, c := range cases {
		answers["cache."+c.method] = []any{c.code}
	}
	m := rig.NewModel(t, answers)
	d := rig.Start(t, m)
	s := d.Session("cache")
	for _, c := range cases {
		for _, x := range []string{"Paris", "Rome", "Oslo"} {
			got := d.Call(s, c.method, x)
			if e := d.LogOf(got); x == "Paris" && (e["cacheability_reason"] != c.reason ||
				e["cacheable"] != (c.forged == 1)) {
				t.Errorf("%s: cacheable %v because of %v, want %s", c.method, e["cacheable"], e["cacheability_reason"],
					c.reason)
			}
		}
		if n := m.Count("cache", c.method); n != c.forged {
			t.Errorf("%s: forged %d times, want %d", c.method, n, c.forged)
		}
	}
}
