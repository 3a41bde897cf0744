package tools

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The repair path and the budget path over HTTP, with the requests to the model.
func TestRepairPathAndBudgetPath(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}, "b.m": {rig.ProgMayPanic}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.WantValue(d.Call(s, "m", 1), 1, "generated")
	repaired := d.Call(s, "m", "bad")
	d.WantValue(repaired, "fixed", "repaired")
	if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User, "boom") ||
		!strings.Contains(q.User, `<args>["bad"]</args>`) {
		t.Errorf("the repair was asked with %s:\n%s", q.Kind, q.User)
	}
	e := d.LogOf(repaired)
	if e["repair_attempted"] != true || e["repair_succeeded"] != true || e["execution_repair_attempts"] != 1.0 ||
		e["rollback_applied"] != true || len(e["attempt_failures"].([]any)) != 1 {
		t.Errorf("log of the repair: %v", e)
	}
	if a := d.Artifact("r", "m"); a["repair_count_since_regen"] != 1.0 || a["intrinsic_failure_count"] != 1.0 {
		t.Errorf("artifact after a repair: %v", a)
	}
	d.Policy(map[string]any{"execution_repair_budget": 0, "backoff": map[string]any{"base_seconds": 0},
		"degraded": map[string]any{"min_failures": 20}})
	s = d.Session("b")
	d.Call(s, "m", 1)
	for range 4 {
		d.WantError(d.Call(s, "m", "bad"), "execution")
	}
	kinds := ""
	for _, q := range m.Questions() {
		if q.Role == "b" {
			kinds += q.Kind[:1]
		}
	}
	// the first forge, three repairs each followed by a new program, then a new program at once
	if kinds != "frfrfrff" {
		t.Errorf("requests %s, want f rf rf rf f", kinds)
	}
	a := d.Artifact("b", "m")
	if a["repair_count_since_regen"] != 3.0 {
		t.Errorf("repairs: %v", a["repair_count_since_regen"])
	}
	d.Restart() // budgets are durable
	if got := d.Artifact("b", "m"); got["repair_count_since_regen"] != 3.0 {
		t.Errorf("repairs after a restart: %v", got["repair_count_since_regen"])
	}
	m.Answer("b", "m", openaiCode(rig.ProgFixes))
	got := d.Call(s, "m", "bad")
	d.WantValue(got, "fixed", "generated")
	if got.Program.Trigger != "regenerate:budget_exhausted" || d.Artifact("b", "m")["repair_count_since_regen"] != 0.0 {
		t.Errorf("trigger %s", got.Program.Trigger)
	}
}

// A repair that ends in an honest error and proved nothing is not a success: the predecessor stays and the budget
// bounds the chain.
func TestHonestRepairIsBounded(t *testing.T) {
	t.Parallel()
	refuses := rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"nothing\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	m := rig.NewModel(t, rig.Script{"h.m": {rig.ProgMayPanic, refuses}})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"fixtures_enabled": false, "degraded": map[string]any{"min_failures": 20},
		"backoff": map[string]any{"base_seconds": 0}})
	s := d.Session("h")
	d.Call(s, "m", 1)
	for range 5 {
		d.WantError(d.Call(s, "m", "bad"), "not_found")
	}
	kinds := ""
	for _, q := range m.Questions() {
		kinds += q.Kind[:1]
	}
	if kinds != "frrrff" {
		t.Errorf("requests %s, want three repairs, then new programs", kinds)
	}
}

// Proof before serving: a repair that breaks an older answer is refused, the predecessor stays, and the broken fixture
// is named to the model, in the log and with the generations; with fixtures off the same repair is accepted.
func TestProofOverHTTP(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"pf.m": {rig.ProgMayPanic, rig.ProgBreaks},
		"off.m": {rig.ProgMayPanic, rig.ProgBreaks}})
	d := rig.Start(t, m)
	s := d.Session("pf")
	first := d.Call(s, "m", 1)
	refused := d.Call(s, "m", "bad")
	d.WantError(refused, "outcome_repair_retry_exhausted")
	list := d.Get("/v1/tools/pf/methods/m/generations")
	if n := len(list["data"].([]any)); n != 1 {
		t.Errorf("%d generations, want the predecessor alone", n)
	}
	rejections, _ := list["rejections"].([]any)
	if len(rejections) == 0 || rejections[0].(map[string]any)["fixture"] != first.CallID ||
		rejections[0].(map[string]any)["stage"] != "proof" {
		t.Errorf("rejections %v, want the fixture %s", rejections, first.CallID)
	}
	if text := string(rig.MustJSON(d.LogOf(
		refused)["attempt_failures"])); !strings.Contains(text, first.CallID) || !strings.Contains(text, `"proof"`) {
		t.Errorf("the log does not name the fixture: %s", text)
	}
	if !strings.Contains(m.LastQuestion().User, "broke an earlier call") {
		t.Errorf("the next prompt does not say what broke:\n%s", m.LastQuestion().User)
	}
	d.WantValue(d.Call(s, "m", 1), 1, "persisted")
	d.Policy(map[string]any{"fixtures_enabled": false})
	s = d.Session("off")
	d.Call(s, "m", 1)
	d.WantValue(d.Call(s, "m", "bad"), "fixed", "repaired")
}

// A changed deliverable makes the program stale: it is repaired before it runs, on its code and the new contract;
// a reworded purpose does not; callers with different contracts do not take turns in repairing.
func TestContractMismatch(t *testing.T) {
	t.Parallel()
	object := rig.Program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil")
	m := rig.NewModel(t, rig.Script{"c.m": {rig.ProgFixes, object}})
	d := rig.Start(t, m)
	s := d.Session("c")
	call := func(deliverable map[string]any, purpose string) rig.Reply {
		return d.Invoke(s, map[string]any{"method": "m", "args": []any{1},
			"contract": map[string]any{"purpose": purpose, "deliverable": deliverable}})
	}
	number, wrapped := map[string]any{"type": "number"}, map[string]any{"type": "object", "required": []any{"v"}}
	d.WantValue(call(number, "one"), 1, "generated")
	d.WantValue(call(number, "reworded"), 1, "persisted")
	changed := call(wrapped, "one")
	d.WantValue(changed, map[string]any{"v": 1}, "repaired")
	if q := m.LastQuestion(); changed.Program.Trigger != "repair:contract_changed" ||
		!strings.Contains(q.User, "fixed") || !strings.Contains(q.User, "required") {
		t.Errorf("trigger %s, asked:\n%s", changed.Program.Trigger, q.User)
	}
	for range 3 {
		d.WantValue(call(number, "one"), 1, "persisted")
		d.WantValue(call(wrapped, "one"), map[string]any{"v": 1}, "persisted")
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// Outages do not touch health; a changed form is adaptive and repaired; after the
// outage the same program answers, over a restart too.
func TestOutageDoesNotDemote(t *testing.T) {
	t.Parallel()
	f := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"news.read": {rig.ProgFetches}})
	d := rig.Start(t, m, "--fetch-allow", f.Host())
	s := d.Session("news")
	d.WantValue(d.Call(s, "read", f.URL), []any{"a", "b"}, "generated")
	for _, code := range []int{503, 500, 429, 502} {
		f.Status(code)
		for range 6 {
			got := d.Call(s, "read", f.URL)
			d.WantError(got, "fetch_failed")
			if e := d.LogOf(got); e["failure_class"] != "extrinsic" || got.Program.Source != "persisted" {
				t.Errorf("status %d: class %v, source %s", code, e["failure_class"], got.Program.Source)
			}
		}
	}
	a := d.Artifact("news", "read")
	if a["extrinsic_failure_count"] != 24.0 || a["recent_failure_rate"] != 0.0 || a["lifecycle_state"] != "probation" ||
		a["last_failure_class"] != "extrinsic" {
		t.Errorf("artifact after the outage: %v", a)
	}
	f.Body(rig.ItemsBody)
	d.Restart()
	d.WantValue(d.Call(s, "read", f.URL), []any{"a", "b"}, "persisted")
	if n := len(m.Questions()); n != 1 {
		t.Errorf("%d model requests, want 1", n)
	}
	f.Body(`{"entries":["a"]}`)
	m.Answer("news", "read", openaiCode(strings.ReplaceAll(rig.ProgFetches, "Items", "Entries")))
	got := d.Call(s, "read", f.URL)
	d.WantValue(got, []any{"a"}, "repaired")
	if a := d.Artifact("news", "read"); a["adaptive_failure_count"] != 1.0 ||
		got.Program.Trigger != "repair:parse_failed" {
		t.Errorf("after the drift: adaptive %v, trigger %s", a["adaptive_failure_count"], got.Program.Trigger)
	}
}

// Of 150 tools the prompt holds the 12 that rank best, and stays as long as with 12.
func TestKnownToolsAreBounded(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"good.m": {rig.ProgAdd}, "good tool.y": {rig.ProgAdd},
		"good tool.z": {rig.ProgAdd}})
	d := rig.Start(t, m)
	put := func(from, to int) {
		for i := from; i < to; i++ {
			d.Do(http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/tools/tool_%03d", i),
				map[string]any{"purpose": "purpose of a tool"})
		}
	}
	put(0, 12)
	d.Call(d.Session("good tool"), "y", 1, 2)
	before := len(m.LastQuestion().User)
	put(12, 150)
	d.Call(d.Session("good"), "m", 1, 2)
	d.Call(d.Session("good tool"), "z", 1, 2)
	user := m.LastQuestion().User
	_, list, _ := strings.Cut(user, "<known_tools>")
	list, _, _ = strings.Cut(list, "</known_tools>")
	if n := strings.Count(list, "\n- "); n != 12 || !strings.Contains(list, "- good") {
		t.Errorf("%d known tools, want 12 with the one that works among them:\n%s", n, list)
	}
	if grown := len(user) - before; grown > 400 {
		t.Errorf("138 more tools made the prompt %d bytes longer", grown)
	}
}

// Switches hold from the very next call and over a restart, and figures go on being written.
func TestSwitches(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"w.m": {rig.ProgMayPanic}, "v.m": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s, other := d.Session("w"), d.Session("v")
	d.Call(s, "m", 1)
	d.Call(other, "m", 1, 2)
	asked := func(want int, what string, f func()) {
		t.Helper()
		before := len(m.Questions())
		f()
		if n := len(m.Questions()) - before; n != want {
			t.Errorf("%s: %d model requests, want %d", what, n, want)
		}
	}
	asked(0, "warm", func() { d.Call(s, "m", 1) })
	d.Policy(map[string]any{"artifact_read_enabled": false})
	was := d.Artifact("w", "m")["success_count"].(float64)
	asked(1, "reads off", func() { d.Call(s, "m", 1) })
	if is := d.Artifact("w", "m")["success_count"].(float64); is != was+1 {
		t.Errorf("success_count %v after %v: figures must go on", is, was)
	}
	d.Restart()
	asked(1, "reads off after a restart", func() { d.Call(s, "m", 1) })
	d.Policy(map[string]any{"artifact_read_enabled": true, "artifact_read_roles": []any{"v"}})
	asked(1, "no canary", func() { d.Call(s, "m", 1) })
	asked(0, "canary", func() { d.Call(other, "m", 1, 2) })
	d.Policy(map[string]any{"artifact_read_roles": []any{}, "force_generation": true})
	asked(1, "forced", func() { d.Call(other, "m", 1, 2) })
	d.Policy(map[string]any{"force_generation": false, "repair_enabled": false})
	m.Answer("w", "m", openaiCode(rig.ProgFixes))
	got := d.Call(s, "m", "bad")
	if d.WantValue(got, "fixed", "generated"); m.LastQuestion().Kind != "forge" ||
		got.Program.Trigger != "regenerate:repair_disabled" {
		t.Errorf("repair off: %s, %s", m.LastQuestion().Kind, got.Program.Trigger)
	}
}

// Two sessions and many more at once on one artifact: nothing torn, nothing lost.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	const n = 64
	var wg sync.WaitGroup
	for range n {
		s := d.Session("calculator")
		wg.Go(func() {
			if r, err := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls",
				[]byte(`{"method":"add","args":[2,3]}`), nil); err != nil || r.Status != 200 {
				t.Errorf("%v %d", err, r.Status)
			}
		})
	}
	wg.Wait()
	if a := d.Artifact("calculator", "add"); a["success_count"] != float64(n) {
		t.Errorf("success_count %v, want %d", a["success_count"], n)
	}
	if k := m.Count("calculator", "add"); k != 1 {
		t.Errorf("%d forges, want 1", k)
	}
	d.Restart()
	if a := d.Artifact("calculator", "add"); a["success_count"] != float64(n) {
		t.Errorf("success_count %v after a restart, want %d", a["success_count"], n)
	}
}

func openaiCode(code string) openaitest.Reply { return openaitest.Code(code) }
