package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func roles(tools []map[string]any) (names []string) {
	for _, t := range tools {
		names = append(names, t["role"].(string))
	}
	return names
}

// Tools are listed by use, failures, cost and name, found by words, and say how their programs do, also after a
// restart.
func TestToolsInOrder(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd},
		"movies.find": {rig.ProgPanic, rig.ProgPanic, rig.ProgPanic, rig.ProgPanic}, hostile + ".m": {rig.ProgEcho}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"eve token-of-eve-0001\ncal token-of-cal-0002 scopes=read,call\n"))
	eve, cal := d.As("token-of-eve-0001"), d.As("token-of-cal-0002")
	eve.Do(http.StatusCreated, http.MethodPut, "/v1/tools/idle", object{"purpose": "nobody uses it"})
	eve.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movies", object{"purpose": "Find MOVIES nearby"})
	eve.Do(http.StatusOK, http.MethodPut, rig.MethodPath("movies", "given"), object{"code": rig.ProgMayPanic})
	eve.Policy(object{"repair_enabled": false, "max_generation_attempts": 1})
	for range 3 {
		eve.Call(eve.Session("calculator"), "add", 1, 2)
	}
	eve.Call(eve.Session(hostile), "m", 1)
	eve.Call(eve.Session("movies"), "given", "bad")
	look := func() {
		t.Helper()
		for query, want := range map[string][]string{
			"?sort=used": {"calculator", hostile, "movies", "idle"},
			"?sort=name": {hostile, "calculator", "idle", "movies"}, "": {hostile, "calculator", "idle", "movies"},
			"?q=nearby+movies": {"movies"}, "?q=" + "%3Cimg": {hostile}, "?q=add&sort=used": {"calculator"},
			"?q=nothing": nil,
		} {
			if got := roles(eve.List("/v1/tools" + query)); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", query, got, want)
			}
		}
		if got := roles(eve.List("/v1/tools?sort=failed")); got[0] != "movies" {
			t.Errorf("failed: %q", got)
		}
		costly := eve.List("/v1/tools?sort=cost")
		if last := costly[len(costly)-1]; last["role"] != "idle" || last["usage"] != nil {
			t.Errorf("cost: %q, at last %v", roles(costly), last)
		}
		for _, tool := range costly {
			var row map[string]any
			for _, u := range eve.Get("/v1/usage?by=role")["data"].([]any) {
				if u.(map[string]any)["key"] == tool["role"] {
					row = u.(map[string]any)
				}
			}
			if (row == nil) != (tool["usage"] == nil) || row != nil && !rig.Equal(row, tool["usage"]) {
				t.Errorf("%s: usage %v, want %v", tool["role"], tool["usage"], row)
			}
		}
	}
	look()
	failed := eve.Get("/v1/tools?q=movies")["data"].([]any)[0].(map[string]any)["health"].(map[string]any)
	if last, _ := failed["last_failure"].(map[string]any); failed["failure_count"] != 1.0 ||
		last["method"] != "given" || last["class"] != "intrinsic" ||
		!strings.Contains(fmt.Sprint(last["reason"]), "boom") {
		t.Errorf("the health of movies: %v", failed)
	}
	if got := eve.Get("/v1/tools/movies")["health"]; !rig.Equal(failed, got) {
		t.Errorf("by itself: %v, want %v", got, failed)
	}

	// Who may not operate sees neither what others spent nor the texts of their calls.
	for _, path := range []string{"/v1/tools?q=movies", "/v1/tools/movies"} {
		if text := string(cal.Do(http.StatusOK, http.MethodGet, path,
			nil).Body); strings.Contains(text, "usage\":") || strings.Contains(text, "boom") ||
			!strings.Contains(text, `"last_failure":{"method":"given"`) {
			t.Errorf("cal sees %s", text)
		}
	}
	if p := cal.Do(http.StatusForbidden, http.MethodGet, "/v1/tools?sort=cost",
		nil).Object(t); p["missing"] != "operate" {
		t.Errorf("cal: %v", p)
	}
	if me := cal.Get("/v1/me"); me["owner"] != "cal" || !rig.Equal([]any{"read", "call"}, me["scopes"]) ||
		me["tokens"] != true {
		t.Errorf("cal is %v", me)
	}
	d.Restart()
	eve.URL, cal.URL = d.URL, d.URL
	look()
}

// The command lists tools in the orders of the daemon, and what waits with commands that are safe to copy.
func TestCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, hostile + ".m": {rig.ProgEcho}})
	d := rig.Start(t, m)
	for range 2 {
		d.Call(d.Session("calculator"), "add", 1, 2)
	}
	d.Call(d.Session(hostile), "m", 1)
	out, errs, code := d.Client("tools", "list", "--sort", "used")
	lines := strings.Split(out, "\n")
	if code != 0 || !strings.HasPrefix(lines[0], "ROLE ") || !strings.HasPrefix(lines[1], "calculator ") ||
		!strings.HasPrefix(lines[2], "<img ") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if out, _, _ := d.Client("tools", "list", "-q", "calc"); strings.Contains(out, "<img") ||
		!strings.Contains(out, "calculator") {
		t.Errorf("a search: %s", out)
	}
	if _, errs, code := d.Client("tools", "list", "calculator", "--sort", "used"); code != 2 || errs == "" {
		t.Errorf("a role with an order: %d %s", code, errs)
	}
	if out, _, _ := d.Client("inbox"); out != "nothing waits for a decision\n" {
		t.Errorf("an empty inbox: %s", out)
	}
	d.Policy(object{"approval_required": true})
	out, errs, code = d.Client("inbox", hostile)
	if want := `  approve the program: recurgentd tools approve '<img src=x onerror=alert(1)>'\''; touch x; $(id)' m` +
		"\n"; code != 0 || !strings.Contains(out, want) || strings.Contains(out, "calculator") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if out, _, _ := d.Client("inbox", "--kind", "approval", "--json"); strings.Count(out, `"kind":"approval"`) != 2 {
		t.Errorf("as JSON: %s", out)
	}
	if out, errs, code := d.Client("tools", "approve", hostile, "m"); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if out, _, _ := d.Client("inbox"); strings.Contains(out, "<img") ||
		!strings.Contains(out, "approval calculator.add, since ") {
		t.Errorf("after the approval: %s", out)
	}
}

// The entry of a call that took long, or asked a model, says how long each stage took; what the daemon does is for
// admins.
func TestStagesAndSystem(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"eve token-of-eve-0001\ncal token-of-cal-0002 scopes=read,call,operate\n")).One()
	eve, cal := d.As("token-of-eve-0001"), d.As("token-of-cal-0002")
	s := eve.Session("r")
	for i, call := range []rig.Reply{eve.Call(s, "m", 1), eve.Call(s, "m", 2), eve.Call(s, "m", "bad"),
		eve.Call(eve.Session("calculator"), "add", 1, 2)} {
		e := eve.LogOf(call)
		stages, _ := e["stages"].(map[string]any)
		took, asked := e["duration_ms"].(float64), e["usage"].(map[string]any)["model_requests"].(float64)
		if (stages != nil) != (asked > 0 || took >= 10) {
			t.Errorf("call %d took %v ms and asked %v times: stages %v", i, took, asked, stages)
		}
		if stages == nil {
			continue
		}
		sum := 0.0
		for _, ms := range stages {
			sum += ms.(float64)
		}
		if sum > took+1 || asked > 0 && (stages["forge_ms"] == 0.0 || stages["gate_ms"] == 0.0) ||
			stages["run_ms"] == 0.0 || len(stages) != 6 {
			t.Errorf("call %d took %v ms: stages %v", i, took, stages)
		}
	}
	if p := cal.Do(http.StatusForbidden, http.MethodGet, "/v1/system", nil).Object(t); p["missing"] != "admin" {
		t.Errorf("cal: %v", p)
	}
	v := eve.Get("/v1/system")
	provider, store := v["provider"].(map[string]any), v["store"].(map[string]any)
	if v["ready"] != true || !rig.Equal(map[string]any{"ok": 3}, provider) || store["sessions"] != 2.0 ||
		store["tools"] != 2.0 || v["runners"].(map[string]any)["started"] == 0.0 {
		t.Errorf("the system: %v", v)
	}
}
