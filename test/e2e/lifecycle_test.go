package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// Programs of the lifecycle tests.
var (
	progMayPanic = program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	progMends    = program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"mended\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	progBreaks   = program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"mended\", nil\n\t}\n\treturn \"broken\", nil")
	progFetches  = program("\tr, err := call.Fetch(call.Arg(0, \"url\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif r.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", r.Body)\n\t}\n\tvar v struct{ Items []string }\n\tif err := json.Unmarshal([]byte(r.Body), &v); err != nil || v.Items == nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no items\")\n\t}\n\treturn v.Items, nil", "encoding/json")
)

func (d *proc) artifact(role, method string) map[string]any {
	d.t.Helper()
	return d.get("/v1/tools/" + role + "/methods/" + method)
}

func (d *proc) policy(patch map[string]any) {
	d.t.Helper()
	d.do(http.StatusOK, http.MethodPatch, "/v1/policy", patch)
}

func (d *proc) logOf(r reply) map[string]any {
	d.t.Helper()
	return d.get("/v1/calls/" + r.CallID)
}

// feed is a source on this machine whose answer a test changes.
type feed struct {
	*httptest.Server
	answer atomic.Value // func(http.ResponseWriter)
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	f := &feed{}
	f.items()
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { f.answer.Load().(func(http.ResponseWriter))(w) }))
	t.Cleanup(f.Close)
	return f
}

func (f *feed) items()          { f.body(`{"items":["a","b"]}`) }
func (f *feed) body(b string)   { f.answer.Store(func(w http.ResponseWriter) { fmt.Fprint(w, b) }) }
func (f *feed) status(code int) { f.answer.Store(func(w http.ResponseWriter) { w.WriteHeader(code) }) }
func (f *feed) host() string    { return strings.TrimPrefix(f.URL, "http://") }

// P-51..P-56, P-60, P-61, P-101: the repair path and the budget path over HTTP, with what the model is told.
func TestRepairPathAndBudgetPath(t *testing.T) {
	m := newModel(t, script{"r.m": {progMayPanic, progMends}, "b.m": {progMayPanic}})
	d := newDaemon(t, m)
	s := d.session("r")
	d.wantValue(d.call(s, "m", 1), 1, "generated")
	repaired := d.call(s, "m", "bad")
	d.wantValue(repaired, "mended", "repaired")
	if q := m.last(); q.Kind != "repair" || !strings.Contains(q.User, "boom") || !strings.Contains(q.User, `<args>["bad"]</args>`) {
		t.Errorf("the repair was asked with %s:\n%s", q.Kind, q.User)
	}
	e := d.logOf(repaired)
	if e["repair_attempted"] != true || e["repair_succeeded"] != true || e["rollback_applied"] != true || len(e["attempt_failures"].([]any)) != 1 {
		t.Errorf("log of the repair: %v", e)
	}
	if a := d.artifact("r", "m"); a["repair_count_since_regen"] != 1.0 || a["intrinsic_failure_count"] != 1.0 {
		t.Errorf("artifact after a repair: %v", a)
	}
	d.policy(map[string]any{"execution_repair_budget": 0, "degraded": map[string]any{"min_failures": 20}})
	s = d.session("b")
	d.call(s, "m", 1)
	for range 4 {
		d.wantError(d.call(s, "m", "bad"), "execution")
	}
	kinds := ""
	for _, q := range m.requests() {
		if q.Role == "b" {
			kinds += q.Kind[:1]
		}
	}
	if kinds != "frfrfrff" { // the first forge, three repairs each followed by a new program, then a new program at once
		t.Errorf("requests %s, want f rf rf rf f", kinds)
	}
	a := d.artifact("b", "m")
	if a["repair_count_since_regen"] != 3.0 {
		t.Errorf("repairs: %v", a["repair_count_since_regen"])
	}
	d.restart() // budgets are durable
	if got := d.artifact("b", "m"); got["repair_count_since_regen"] != 3.0 {
		t.Errorf("repairs after a restart: %v", got["repair_count_since_regen"])
	}
	m.Answer("b", "m", openaiCode(progMends))
	got := d.call(s, "m", "bad")
	d.wantValue(got, "mended", "generated")
	if got.Program.Trigger != "regenerate:budget_exhausted" || d.artifact("b", "m")["repair_count_since_regen"] != 0.0 {
		t.Errorf("trigger %s", got.Program.Trigger)
	}
}

// An honest error of a repair that proved nothing is no mending: the predecessor stays and the budget bounds the chain (P-61).
func TestHonestRepairIsBounded(t *testing.T) {
	refuses := program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"nothing\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	m := newModel(t, script{"h.m": {progMayPanic, refuses}})
	d := newDaemon(t, m)
	d.policy(map[string]any{"fixtures_enabled": false, "degraded": map[string]any{"min_failures": 20}})
	s := d.session("h")
	d.call(s, "m", 1)
	for range 5 {
		d.wantError(d.call(s, "m", "bad"), "not_found")
	}
	kinds := ""
	for _, q := range m.requests() {
		kinds += q.Kind[:1]
	}
	if kinds != "frrrff" {
		t.Errorf("requests %s, want three repairs, then new programs", kinds)
	}
}

// Proof before serving: a repair that breaks an older answer is refused, the predecessor stays, and the broken fixture is
// named to the model, in the log and with the generations; with fixtures off the same repair is accepted.
func TestProofOverHTTP(t *testing.T) {
	m := newModel(t, script{"pf.m": {progMayPanic, progBreaks}, "off.m": {progMayPanic, progBreaks}})
	d := newDaemon(t, m)
	s := d.session("pf")
	first := d.call(s, "m", 1)
	refused := d.call(s, "m", "bad")
	d.wantError(refused, "outcome_repair_retry_exhausted")
	list := d.get("/v1/tools/pf/methods/m/generations")
	if n := len(list["data"].([]any)); n != 1 {
		t.Errorf("%d generations, want the predecessor alone", n)
	}
	rejections, _ := list["rejections"].([]any)
	if len(rejections) == 0 || rejections[0].(map[string]any)["fixture"] != first.CallID || rejections[0].(map[string]any)["stage"] != "proof" {
		t.Errorf("rejections %v, want the fixture %s", rejections, first.CallID)
	}
	if text := string(mustJSON(d.logOf(refused)["attempt_failures"])); !strings.Contains(text, first.CallID) || !strings.Contains(text, `"proof"`) {
		t.Errorf("the log does not name the fixture: %s", text)
	}
	if !strings.Contains(m.last().User, "broke an earlier call") {
		t.Errorf("the next prompt does not tell what broke:\n%s", m.last().User)
	}
	d.wantValue(d.call(s, "m", 1), 1, "persisted")
	d.policy(map[string]any{"fixtures_enabled": false})
	s = d.session("off")
	d.call(s, "m", 1)
	d.wantValue(d.call(s, "m", "bad"), "mended", "repaired")
}

// P-43, P-101: a changed deliverable makes the program stale: it is repaired before it runs, on its code and the new contract;
// a reworded purpose does not; callers with different contracts do not take turns in repairing (decision 7).
func TestContractMismatch(t *testing.T) {
	object := program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil")
	m := newModel(t, script{"c.m": {progMends, object}})
	d := newDaemon(t, m)
	s := d.session("c")
	call := func(deliverable map[string]any, purpose string) reply {
		return d.invoke(s, map[string]any{"method": "m", "args": []any{1}, "contract": map[string]any{"purpose": purpose, "deliverable": deliverable}})
	}
	number, wrapped := map[string]any{"type": "number"}, map[string]any{"type": "object", "required": []any{"v"}}
	d.wantValue(call(number, "one"), 1, "generated")
	d.wantValue(call(number, "reworded"), 1, "persisted")
	changed := call(wrapped, "one")
	d.wantValue(changed, map[string]any{"v": 1}, "repaired")
	if q := m.last(); changed.Program.Trigger != "repair:contract_changed" || !strings.Contains(q.User, "mended") || !strings.Contains(q.User, "required") {
		t.Errorf("trigger %s, asked:\n%s", changed.Program.Trigger, q.User)
	}
	for range 3 {
		d.wantValue(call(number, "one"), 1, "persisted")
		d.wantValue(call(wrapped, "one"), map[string]any{"v": 1}, "persisted")
	}
	if n := len(m.requests()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// P-49, P-50, P-59, P-104, P-102: outages do not touch health; a changed form is adaptive and repaired; after the
// outage the same program answers, over a restart too.
func TestOutageDoesNotDemote(t *testing.T) {
	f := newFeed(t)
	m := newModel(t, script{"news.read": {progFetches}})
	d := newDaemon(t, m, "--fetch-allow", f.host())
	s := d.session("news")
	d.wantValue(d.call(s, "read", f.URL), []any{"a", "b"}, "generated")
	for _, code := range []int{503, 500, 429, 502} {
		f.status(code)
		for range 6 {
			got := d.call(s, "read", f.URL)
			d.wantError(got, "fetch_failed")
			if e := d.logOf(got); e["failure_class"] != "extrinsic" || got.Program.Source != "persisted" {
				t.Errorf("status %d: class %v, source %s", code, e["failure_class"], got.Program.Source)
			}
		}
	}
	a := d.artifact("news", "read")
	if a["extrinsic_failure_count"] != 24.0 || a["recent_failure_rate"] != 0.0 || a["lifecycle_state"] != "probation" || a["last_failure_class"] != "extrinsic" {
		t.Errorf("artifact after the outage: %v", a)
	}
	f.items()
	d.restart()
	d.wantValue(d.call(s, "read", f.URL), []any{"a", "b"}, "persisted")
	if n := len(m.requests()); n != 1 {
		t.Errorf("%d model requests, want 1", n)
	}
	f.body(`{"entries":["a"]}`)
	m.Answer("news", "read", openaiCode(strings.ReplaceAll(progFetches, "Items", "Entries")))
	got := d.call(s, "read", f.URL)
	d.wantValue(got, []any{"a"}, "repaired")
	if a := d.artifact("news", "read"); a["adaptive_failure_count"] != 1.0 || got.Program.Trigger != "repair:parse_failed" {
		t.Errorf("after the drift: adaptive %v, trigger %s", a["adaptive_failure_count"], got.Program.Trigger)
	}
}

// P-08, P-103: a program that an older prompt brought forth is as good as before; P-40, P-42: corrupt or tampered ones never run.
func TestStoredProgramsAfterChanges(t *testing.T) {
	m := newModel(t, script{"p.m": {progAdd}, "bad.m": {progAdd}, "tamper.m": {progAdd}})
	d := newDaemon(t, m)
	for _, role := range []string{"p", "bad", "tamper"} {
		d.call(d.session(role), "m", 1, 2)
	}
	d.kill(syscall.SIGTERM)
	edit := func(role string, change func(string) string) {
		path := filepath.Join(d.state(), "tools", role, "m.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version := regexp.MustCompile(`("prompt_version": ?)"[^"]*"`)
	edit("p", func(s string) string { return version.ReplaceAllString(s, `$1"an older prompt"`) })
	edit("bad", func(s string) string { return s[:len(s)/2] })
	edit("tamper", func(s string) string { return strings.ReplaceAll(s, "a + b", "a - b") })
	d.start()
	got := d.call(d.session("p"), "m", 1, 2)
	d.wantValue(got, 3, "persisted")
	if e := d.logOf(got); e["artifact_prompt_version"] != "an older prompt" {
		t.Errorf("artifact_prompt_version %v", e["artifact_prompt_version"])
	}
	for _, role := range []string{"bad", "tamper"} {
		d.wantValue(d.call(d.session(role), "m", 1, 2), 3, "generated")
	}
}

// P-65, P-66, P-105: of 150 tools the prompt holds the 12 that rank best, and stays as long as with 12.
func TestKnownToolsAreBounded(t *testing.T) {
	m := newModel(t, script{"good.m": {progAdd}, "x.y": {progAdd}, "x.z": {progAdd}})
	d := newDaemon(t, m)
	put := func(from, to int) {
		for i := from; i < to; i++ {
			d.do(http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/tools/tool_%03d", i), map[string]any{"purpose": "purpose of a tool"})
		}
	}
	put(0, 12)
	d.call(d.session("x"), "y", 1, 2)
	before := len(m.last().User)
	put(12, 150)
	d.call(d.session("good"), "m", 1, 2)
	d.call(d.session("x"), "z", 1, 2)
	user := m.last().User
	_, list, _ := strings.Cut(user, "<known_tools>")
	list, _, _ = strings.Cut(list, "</known_tools>")
	if n := strings.Count(list, "\n- "); n != 12 || !strings.Contains(list, "- good") {
		t.Errorf("%d known tools, want 12 with the one that works among them:\n%s", n, list)
	}
	if grown := len(user) - before; grown > 400 {
		t.Errorf("138 more tools made the prompt %d bytes longer", grown)
	}
}

// P-85..P-91: switches hold from the very next call and over a restart, and figures go on being written.
func TestSwitches(t *testing.T) {
	m := newModel(t, script{"w.m": {progMayPanic}, "v.m": {progAdd}})
	d := newDaemon(t, m)
	s, other := d.session("w"), d.session("v")
	d.call(s, "m", 1)
	d.call(other, "m", 1, 2)
	asked := func(want int, what string, f func()) {
		t.Helper()
		before := len(m.requests())
		f()
		if n := len(m.requests()) - before; n != want {
			t.Errorf("%s: %d model requests, want %d", what, n, want)
		}
	}
	asked(0, "warm", func() { d.call(s, "m", 1) })
	d.policy(map[string]any{"artifact_read_enabled": false})
	was := d.artifact("w", "m")["success_count"].(float64)
	asked(1, "reads off", func() { d.call(s, "m", 1) })
	if is := d.artifact("w", "m")["success_count"].(float64); is != was+1 {
		t.Errorf("success_count %v after %v: figures must go on", is, was)
	}
	d.restart()
	asked(1, "reads off after a restart", func() { d.call(s, "m", 1) })
	d.policy(map[string]any{"artifact_read_enabled": true, "artifact_read_roles": []any{"v"}})
	asked(1, "no canary", func() { d.call(s, "m", 1) })
	asked(0, "canary", func() { d.call(other, "m", 1, 2) })
	d.policy(map[string]any{"artifact_read_roles": []any{}, "force_generation": true})
	asked(1, "forced", func() { d.call(other, "m", 1, 2) })
	d.policy(map[string]any{"force_generation": false, "repair_enabled": false})
	m.Answer("w", "m", openaiCode(progMends))
	got := d.call(s, "m", "bad")
	if d.wantValue(got, "mended", "generated"); m.last().Kind != "forge" || got.Program.Trigger != "regenerate:repair_disabled" {
		t.Errorf("repair off: %s, %s", m.last().Kind, got.Program.Trigger)
	}
}

// P-37, P-101: two sessions and many more at once on one artifact: nothing torn, nothing lost.
func TestConcurrentWriters(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	const n = 64
	var wg sync.WaitGroup
	for range n {
		s := d.session("calculator")
		wg.Go(func() {
			if r, err := d.try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"add","args":[2,3]}`), nil); err != nil || r.Status != 200 {
				t.Errorf("%v %d", err, r.Status)
			}
		})
	}
	wg.Wait()
	if a := d.artifact("calculator", "add"); a["success_count"] != float64(n) {
		t.Errorf("success_count %v, want %d", a["success_count"], n)
	}
	if k := m.count("calculator", "add"); k != 1 {
		t.Errorf("%d forges, want 1", k)
	}
	d.restart()
	if a := d.artifact("calculator", "add"); a["success_count"] != float64(n) {
		t.Errorf("success_count %v after a restart, want %d", a["success_count"], n)
	}
}

// P-72..P-84: the thirteen fields stand on the log lines of fresh, warm, repaired and extrinsic calls.
func TestThirteenFields(t *testing.T) {
	f := newFeed(t)
	m := newModel(t, script{"r.m": {progMayPanic, progMends}, "news.read": {progFetches}})
	d := newDaemon(t, m, "--fetch-allow", f.host())
	s, news := d.session("r"), d.session("news")
	fresh, warm, repaired := d.call(s, "m", 1), d.call(s, "m", 1), d.call(s, "m", "bad")
	d.call(news, "read", f.URL)
	f.status(503)
	extrinsic := d.call(news, "read", f.URL)
	for _, tt := range []struct {
		name string
		call reply
		want map[string]any
	}{
		{"fresh", fresh, map[string]any{"program_source": "generated", "artifact_hit": false, "artifact_success_count": 1, "artifact_generation_trigger": "initial_forge", "repair_attempted": false, "failure_class": ""}},
		{"warm", warm, map[string]any{"program_source": "persisted", "artifact_hit": true, "artifact_success_count": 2, "artifact_failure_count": 0, "repair_succeeded": false}},
		{"repaired", repaired, map[string]any{"program_source": "repaired", "artifact_intrinsic_failure_count": 1, "artifact_failure_count": 1, "artifact_generation_trigger": "repair:execution", "repair_attempted": true, "repair_succeeded": true}},
		{"extrinsic", extrinsic, map[string]any{"program_source": "persisted", "artifact_extrinsic_failure_count": 1, "artifact_intrinsic_failure_count": 0, "artifact_adaptive_failure_count": 0, "failure_class": "extrinsic"}},
	} {
		e := d.logOf(tt.call)
		for _, k := range strings.Fields("program_source artifact_hit artifact_prompt_version artifact_contract_fingerprint artifact_success_count artifact_failure_count artifact_intrinsic_failure_count artifact_adaptive_failure_count artifact_extrinsic_failure_count artifact_generation_trigger repair_attempted repair_succeeded failure_class") {
			if _, ok := e[k]; !ok {
				t.Errorf("%s: no %s", tt.name, k)
			}
		}
		for k, v := range tt.want {
			if !equal(v, e[k]) {
				t.Errorf("%s: %s is %v, want %v", tt.name, k, e[k], v)
			}
		}
	}
}

func openaiCode(code string) openaitest.Reply { return openaitest.Code(code) }
