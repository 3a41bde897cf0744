package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// P-99, P-100: a tool that was forged in one session serves another one, of another client, without the model.
func TestCrossSessionReuse(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	first := d.call(d.session("calculator"), "add", 2, 3)
	d.wantValue(first, 5, "generated")
	second := d.call(d.session("calculator"), "add", 20, 22)
	d.wantValue(second, 42, "persisted")
	if first.Program.Checksum != second.Program.Checksum || second.Usage.ModelRequests != 0 || len(m.requests()) != 1 {
		t.Errorf("%s and %s, %d model requests", first.Program.Checksum, second.Program.Checksum, len(m.requests()))
	}
}

// P-102: the news workflow over restarts, Google and Yahoo by local feeds: forged once, through an outage of one of them and a
// change of the other one's format, the rest answers as before.
func TestNewsWorkflowOverRestarts(t *testing.T) {
	google, yahoo := newFeed(t), newFeed(t)
	yahoo.body(`{"items":["y"]}`)
	m := newModel(t, script{
		"google news.read": {progFetches, strings.ReplaceAll(progFetches, "Items", "Entries")}, "yahoo news.read": {progFetches},
		"assistant.ask": {program("\tall := map[string]any{}\n\tfor role, url := range map[string]any{\"google news\": call.Arg(1, \"google\"), \"yahoo news\": call.Arg(2, \"yahoo\")} {\n" +
			"\t\to := call.Tool(role).Call(\"read\", url)\n\t\tif o.OK() {\n\t\t\tall[role] = o.Value\n\t\t} else {\n\t\t\tall[role] = o.ErrorType\n\t\t}\n\t}\n\treturn all, nil")},
	})
	d := newDaemon(t, m, "--fetch-allow", google.host()+","+yahoo.host())
	s := d.session("assistant")
	ask := func(what string, google2, yahoo2 any) {
		t.Helper()
		got := d.call(s, "ask", what, google.URL, yahoo.URL)
		d.wantValue(got, map[string]any{"google news": google2, "yahoo news": yahoo2}, "generated") // a dispatch-like method is asked anew
	}
	both := []any{"a", "b"}
	ask("what is new?", both, []any{"y"})
	d.restart()
	ask("and now?", both, []any{"y"})
	yahoo.status(503)
	for range 5 {
		ask("and now?", both, "fetch_failed")
	}
	d.restart()
	yahoo.body(`{"items":["z"]}`)
	google.body(`{"entries":["c"]}`)
	ask("and now?", []any{"c"}, []any{"z"})
	d.restart()
	ask("and now?", []any{"c"}, []any{"z"})
	if g, y := m.count("google news", "read"), m.count("yahoo news", "read"); g != 2 || y != 1 {
		t.Errorf("asked for google %d times, for yahoo %d; want a forge and a repair, and a forge", g, y)
	}
	if a := d.artifact("google%20news", "read"); a["adaptive_failure_count"] != 1.0 || a["history"].([]any)[0].(map[string]any)["trigger"] != "repair:parse_failed" {
		t.Errorf("google: %v", a["history"])
	}
	if a := d.artifact("yahoo%20news", "read"); a["extrinsic_failure_count"] != 5.0 || a["recent_failure_rate"] != 0.0 || a["success_count"] != 4.0 {
		t.Errorf("yahoo: %v failures of the outside, %v successes", a["extrinsic_failure_count"], a["success_count"])
	}
}

// P-107: the seven acceptance criteria of seed 001.
func TestSevenCriteria(t *testing.T) {
	f := newFeed(t)
	m := newModel(t, script{"r.m": {progMayPanic}, "p.m": {progAdd}, "news.read": {progFetches}, "x.before": {progEcho}, "x.after": {progEcho}})
	d := newDaemon(t, m, "--fetch-allow", f.host())
	criteria := []struct {
		name  string
		holds func(t *testing.T)
	}{
		{"1 tool contracts persist and reload across restarts", func(t *testing.T) {
			d.do(http.StatusCreated, http.MethodPut, "/v1/tools/p", map[string]any{"purpose": "arithmetic", "deliverable": map[string]any{"type": "number"}})
			before := d.get("/v1/tools/p")
			d.restart()
			if after := d.get("/v1/tools/p"); !equal(before, after) {
				t.Errorf("%v, before %v", after, before)
			}
		}},
		{"2 method artifacts execute from disk with deterministic selection", func(t *testing.T) {
			d.call(d.session("p"), "m", 1, 2)
			d.restart()
			for range 5 {
				got := d.call(d.session("p"), "m", 40, 2)
				if d.wantValue(got, 42, "persisted"); got.Program.Selection.Reason != "healthy" {
					t.Errorf("selection %+v", got.Program.Selection)
				}
			}
		}},
		{"3 prompt changes do not force full artifact invalidation", func(t *testing.T) {
			asked := len(m.requests())
			d.edit("p", "m", func(a map[string]any) {
				a["prompt_version"] = "an older prompt"
				a["history"].([]any)[0].(map[string]any)["prompt_version"] = "an older prompt"
			})
			d.wantValue(d.call(d.session("p"), "m", 1, 1), 2, "persisted")
			if n := len(m.requests()); n != asked {
				t.Errorf("%d model requests", n-asked)
			}
		}},
		{"4 repair budget prevents infinite patch chains", func(t *testing.T) {
			s := d.session("r")
			d.policy(map[string]any{"execution_repair_budget": 0, "degraded": map[string]any{"min_failures": 20}})
			d.call(s, "m", 1)
			for range 5 {
				d.wantError(d.call(s, "m", "bad"), "execution")
			}
			repairs := 0
			for _, q := range m.requests() {
				if q.Role == "r" && q.Kind == "repair" {
					repairs++
				}
			}
			if repairs != 3 {
				t.Errorf("%d repairs, want 3", repairs)
			}
		}},
		{"5 intrinsic, adaptive and extrinsic failures separate in selection", func(t *testing.T) {
			s := d.session("news")
			d.call(s, "read", f.URL)
			f.status(503)
			for range 100 { // P-59
				d.call(s, "read", f.URL)
			}
			f.items()
			d.wantValue(d.call(s, "read", f.URL), []any{"a", "b"}, "persisted")
			asked := m.count("news", "read")
			f.body(`{"entries":[]}`)
			d.call(s, "read", f.URL)
			if q := m.requests(); m.count("news", "read") == asked || q[len(q)-1].Role != "news" {
				t.Error("a changed format started no repair")
			}
			if a := d.artifact("news", "read"); a["extrinsic_failure_count"] != 100.0 || a["adaptive_failure_count"] != 1.0 || a["intrinsic_failure_count"] != 0.0 {
				t.Errorf("counted %v, %v, %v", a["extrinsic_failure_count"], a["adaptive_failure_count"], a["intrinsic_failure_count"])
			}
		}},
		{"6 known-tools prompt remains bounded while the registry grows", func(t *testing.T) {
			known := func(method string) int {
				d.call(d.session("x"), method, 1)
				_, list, _ := strings.Cut(m.last().User, "<known_tools>")
				list, _, _ = strings.Cut(list, "</known_tools>")
				return strings.Count(list, "\n- ")
			}
			few := known("before")
			for i := range 110 {
				d.do(http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/tools/more_%03d", i), map[string]any{"purpose": "one more"})
			}
			if n := known("after"); n != 12 || few > 12 {
				t.Errorf("%d known tools in the prompt, %d before", n, few)
			}
		}},
		{"7 full plan covered by tests", func(t *testing.T) {
			covered := rowsInTests(t)
			var missing []string
			for n := 1; n <= 107; n++ {
				if !covered[n] {
					missing = append(missing, fmt.Sprintf("P-%02d", n))
				}
			}
			if len(missing) > 0 {
				t.Errorf("no test names %s", strings.Join(missing, ", "))
			}
		}},
	}
	for _, c := range criteria {
		t.Run(c.name, c.holds)
	}
}

var rowNames = regexp.MustCompile(`P-(\d+)(?:\.\.(?:P-)?(\d+))?`)

// rowsInTests are the rows P-nn that comments of tests name, with those between P-nn..P-mm.
func rowsInTests(t *testing.T) map[int]bool {
	t.Helper()
	rows := map[int]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.Contains(filepath.ToSlash(path), "/storetest/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			_, comment, _ := strings.Cut(line, "//")
			for _, m := range rowNames.FindAllStringSubmatch(comment, -1) {
				from, _ := strconv.Atoi(m[1])
				to := from
				if m[2] != "" {
					to, _ = strconv.Atoi(m[2])
				}
				for n := from; n <= to && n <= 107; n++ {
					rows[n] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// edit stops the daemon, changes the file of an artifact as somebody with an editor would, and starts it again.
func (d *proc) edit(role, method string, change func(a map[string]any)) {
	d.t.Helper()
	d.kill(syscall.SIGTERM)
	path := filepath.Join(d.state(), "tools", role, method+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	var a map[string]any
	if err := json.Unmarshal(text, &a); err != nil {
		d.t.Fatal(err)
	}
	change(a)
	if err := os.WriteFile(path, mustJSON(a), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.start()
}

// P-08, P-103: a program that an older prompt brought forth is as proven as before: it runs, keeps its counters and its version.
func TestPromptRefactorKeepsArtifacts(t *testing.T) {
	m := newModel(t, script{"p.m": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("p")
	for range 3 {
		d.call(s, "m", 1, 2)
	}
	d.edit("p", "m", func(a map[string]any) {
		a["prompt_version"] = "2026-02-15.depth-aware.v3"
		a["history"].([]any)[0].(map[string]any)["prompt_version"] = "2026-02-15.depth-aware.v3"
	})
	got := d.call(s, "m", 2, 2)
	d.wantValue(got, 4, "persisted")
	if a := d.artifact("p", "m"); a["success_count"] != 4.0 || a["prompt_version"] != "2026-02-15.depth-aware.v3" || len(m.requests()) != 1 {
		t.Errorf("%v successes, version %v, %d model requests", a["success_count"], a["prompt_version"], len(m.requests()))
	}
}

// P-09, P-10, P-41: stored code gets no more trust than fresh code. What imports what programs may not have is not run,
// whether its manifest says so or not; a program of another ABI is forged anew; another interpreter alone changes nothing.
func TestStoredCodeIsNotTrusted(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("stolen"), 0o644); err != nil {
		t.Fatal(err)
	}
	thief := program("\tdata, _ := os.ReadFile(\""+secret+"\")\n\treturn string(data), nil", "os")
	m := newModel(t, script{"thief.m": {progMends}, "manifest.m": {progMends}, "abi.m": {progMends}, "engine.m": {progMends}})
	d := newDaemon(t, m)
	for _, role := range []string{"thief", "manifest", "abi", "engine"} {
		d.call(d.session(role), "m", 1)
	}
	latest := func(a map[string]any) map[string]any { return a["history"].([]any)[0].(map[string]any) }
	d.edit("thief", "m", func(a map[string]any) {
		for _, part := range []map[string]any{a, latest(a)} {
			part["code"], part["code_checksum"] = thief, agent.Checksum(thief)
		}
	})
	d.edit("manifest", "m", func(a map[string]any) {
		a["dependencies"], latest(a)["dependencies"] = []any{"os"}, []any{"os"}
	})
	d.edit("abi", "m", func(a map[string]any) {
		a["runtime_version"], latest(a)["runtime_version"] = "recurgent-abi-0", "recurgent-abi-0"
	})
	d.edit("engine", "m", func(a map[string]any) { latest(a)["interpreter"] = "another engine 9.9" })
	for _, c := range []struct{ role, source, reason string }{
		{"thief", "repaired", "healthy"}, {"manifest", "generated", "dependencies_not_allowed"}, {"abi", "generated", "runtime_incompatible"}, {"engine", "persisted", "healthy"},
	} {
		got := d.call(d.session(c.role), "m", 1)
		d.wantValue(got, 1, c.source)
		if got.Program.Selection.Reason != c.reason {
			t.Errorf("%s: selected for %q, want %q", c.role, got.Program.Selection.Reason, c.reason)
		}
		if e := string(mustJSON(d.logOf(got))); strings.Contains(e, "stolen") {
			t.Errorf("%s: the stored program ran", c.role)
		}
	}
}

// P-45, P-57, P-58: a program that fails too often of itself is repaired before it runs again, after a restart too; how often
// counts only what is its own fault.
func TestDegradedIsRepairedFirst(t *testing.T) {
	m := newModel(t, script{"r.m": {progMayPanic, progMends}})
	d := newDaemon(t, m)
	s := d.session("r")
	d.call(s, "m", 1)
	act := func(name string) {
		d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/"+name, map[string]any{})
	}
	act("pin")
	for range 4 { // a pinned program is never repaired or replaced by itself
		d.wantError(d.call(s, "m", "bad"), "execution")
	}
	d.policy(map[string]any{"force_generation": true})
	d.call(s, "m", 1) // nor by another one that was asked for
	d.policy(map[string]any{"force_generation": false})
	a := d.artifact("r", "m")
	if a["lifecycle_state"] != "degraded" || a["code"] != progMayPanic || a["recent_failure_rate"] != 0.8 || len(a["history"].([]any)) != 1 {
		t.Errorf("pinned: %v, rate %v, %d generations", a["lifecycle_state"], a["recent_failure_rate"], len(a["history"].([]any)))
	}
	act("unpin")
	d.restart()
	m.Answer("r", "m", openaiCode(progMends))
	got := d.call(s, "m", 1) // an argument that the old program would serve
	d.wantValue(got, 1, "repaired")
	if sel := got.Program.Selection; sel.Decision != "repair" || sel.Reason != "degraded" || got.Program.Trigger != "repair:degraded" {
		t.Errorf("selection %+v, trigger %s", sel, got.Program.Trigger)
	}
	if q := m.last(); q.Kind != "repair" || !strings.Contains(q.User, "boom") {
		t.Errorf("asked with %s, last failure not told", q.Kind)
	}
	if failures := d.logOf(got)["attempt_failures"].([]any); len(failures) != 0 {
		t.Errorf("the degraded program ran first: %v", failures)
	}
	g := d.artifact("r", "m")["history"].([]any)[0].(map[string]any)
	if g["window"] != "o" || g["success_count"] != 1.0 || g["intrinsic_failure_count"] != 0.0 { // the window starts anew
		t.Errorf("the new generation: window %v, %v successes", g["window"], g["success_count"])
	}
}

// P-62, P-46: the same past gives the same path, twenty times.
func TestSamePathTwentyTimes(t *testing.T) {
	answers := script{}
	for i := range 20 {
		answers[fmt.Sprintf("r%02d.m", i)] = []any{progMayPanic, progMayPanic, progMends}
	}
	m := newModel(t, answers)
	d := newDaemon(t, m)
	var first []string
	for i := range 20 {
		role := fmt.Sprintf("r%02d", i)
		s := d.session(role)
		var path []string
		for _, x := range []any{1, 1, "bad", "bad", 1} {
			got := d.call(s, "m", x)
			path = append(path, fmt.Sprint(got.Program.Selection.Decision, got.Program.Selection.Reason, got.Program.Source, got.Program.Trigger, got.Program.Generation, got.Outcome.Value, got.Outcome.ErrorType, got.Attempts))
		}
		for _, q := range m.requests() {
			if q.Role == role {
				path = append(path, q.Kind)
			}
		}
		if first == nil {
			first = path
		} else if !reflect.DeepEqual(path, first) {
			t.Fatalf("%s went\n%v\nthe first one went\n%v", role, path, first)
		}
	}
	if !strings.Contains(strings.Join(first, " "), "repair") {
		t.Errorf("nothing was repaired: %v", first)
	}
}

// P-31, P-33: of seven generations the latest three are kept, their parents told, the first ever without one; a rollback runs
// the old program; each has its own health.
func TestThreeGenerationsAreKept(t *testing.T) {
	m := newModel(t, script{"r.m": {progMends}})
	d := newDaemon(t, m)
	s := d.session("r")
	d.call(s, "m", 1)
	if g := d.artifact("r", "m")["history"].([]any)[0].(map[string]any); g["parent_id"] != nil || g["trigger"] != "initial_forge" {
		t.Errorf("the first generation: %v", g)
	}
	for i := range 6 {
		m.Answer("r", "m", openaiCode(strings.Replace(progMends, "mended", fmt.Sprintf("mended %d", i), 1)))
		d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/regenerate", map[string]any{})
		d.call(s, "m", i)
	}
	var told []string
	for _, g := range d.list("/v1/tools/r/methods/m/generations") {
		told = append(told, fmt.Sprint(g["id"], " of ", g["parent_id"], " by ", g["trigger"], ": ", g["success_count"]))
		if !strings.Contains(g["code"].(string), "mended") {
			t.Errorf("%s has no code", g["id"])
		}
	}
	want := []string{"gen-7 of gen-6 by regenerate:requested: 1", "gen-6 of gen-5 by regenerate:requested: 1", "gen-5 of gen-4 by regenerate:requested: 1"}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("kept: %q", told)
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/rollback", map[string]any{"generation": "gen-5"})
	got := d.call(s, "m", "bad")
	if d.wantValue(got, "mended 3", "persisted"); got.Program.Generation != "gen-5" {
		t.Errorf("after the rollback %s ran", got.Program.Generation)
	}
}

// Decision 19; the issue, point 5: what answers one question only is not run for another one, by the syntax tree: neither
// comments nor strings count as a use of the arguments.
func TestCacheabilityByTheSyntaxTree(t *testing.T) {
	cases := []struct {
		method, code string
		reason       string
		forged       int // of three calls with different arguments
	}{
		{"baked", program("\tcity := \"Paris\"\n\treturn \"the weather of \" + city, nil"), "input_baked_code", 3},
		{"fooled", program("\t// call.Args is what counts: call.Arg(0, \"x\")\n\treturn \"call.Args \" + \"call.Kwargs\", nil"), "arg_ignored_code", 3},
		{"uses", program("\t// Paris\n\treturn call.Arg(0, \"x\"), nil"), "stable_method_default", 1},
		{"passes", program("\treturn first(call), nil") + "\nfunc first(c *recurgent.Call) any { return c.Args[0] }\n", "stable_method_default", 1},
	}
	answers := script{}
	for _, c := range cases {
		answers["cache."+c.method] = []any{c.code}
	}
	m := newModel(t, answers)
	d := newDaemon(t, m)
	s := d.session("cache")
	for _, c := range cases {
		for _, x := range []string{"Paris", "Rome", "Oslo"} {
			got := d.call(s, c.method, x)
			if e := d.logOf(got); x == "Paris" && (e["cacheability_reason"] != c.reason || e["cacheable"] != (c.forged == 1)) {
				t.Errorf("%s: cacheable %v because of %v, want %s", c.method, e["cacheable"], e["cacheability_reason"], c.reason)
			}
		}
		if n := m.count("cache", c.method); n != c.forged {
			t.Errorf("%s: forged %d times, want %d", c.method, n, c.forged)
		}
	}
}

// P-72..P-84: the thirteen fields stand on every line of the call log, whatever the call was and wherever it is read.
func TestThirteenFieldsOnEveryLine(t *testing.T) {
	m := newModel(t, script{"r.m": {progMayPanic, progMends}, "r.broken": {"package tool\n\nfunc Run(call"}, "r.honest": {program("\treturn nil, recurgent.Fail(\"no\", \"no\")")},
		"r.dead": {status(http.StatusUnauthorized)}, "r.nests": {program("\treturn call.Tool(\"r\").Call(\"m\", 1).Value, nil")}})
	d := newDaemon(t, m)
	s := d.session("r")
	d.call(s, "m", 1)
	d.call(s, "m", 1)
	d.call(s, "m", "bad")
	for _, method := range []string{"broken", "honest", "dead", "nests", "nests"} {
		d.call(s, method)
	}
	d.call(s, "name=", "Ann")
	fields := strings.Fields("program_source artifact_hit artifact_prompt_version artifact_contract_fingerprint artifact_success_count artifact_failure_count artifact_intrinsic_failure_count artifact_adaptive_failure_count artifact_extrinsic_failure_count artifact_generation_trigger repair_attempted repair_succeeded failure_class")
	check := func(where string, e map[string]any) {
		t.Helper()
		for _, k := range fields {
			if v, ok := e[k]; !ok || v == nil {
				t.Errorf("%s, %v (%v): no %s", where, e["method"], e["program_source"], k)
			}
		}
		if sum := e["artifact_intrinsic_failure_count"].(float64) + e["artifact_adaptive_failure_count"].(float64) + e["artifact_extrinsic_failure_count"].(float64); sum != e["artifact_failure_count"] {
			t.Errorf("%s, %v: failures %v, their sum is %v", where, e["method"], e["artifact_failure_count"], sum)
		}
	}
	listed := d.list("/v1/calls")
	for _, e := range listed {
		check("GET /v1/calls", e)
		check("GET /v1/calls/{id}", d.get("/v1/calls/"+e["call_id"].(string)))
	}
	d.kill(syscall.SIGTERM)
	data, err := os.ReadFile(filepath.Join(d.state(), "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(data)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		check("calls.jsonl", e)
		lines++
	}
	if lines != len(listed) || lines != 11 { // nine calls, two of them with a nested one
		t.Errorf("%d lines, %d listed, want 11", lines, len(listed))
	}
	d.start()
}

// P-30, and the windows that clients meet: when a program was made, used and repaired; a re-ask is a correction for three
// minutes. The clock is the test's.
func TestTimesOfArtifacts(t *testing.T) {
	weak := program("\treturn map[string]any{\"status\": \"no_results\", \"for\": call.Arg(0, \"x\")}, nil")
	m := newModel(t, script{"r.m": {progMayPanic, progMends}, "w.m": {weak}})
	d, set := ahead(t, m)
	s, w := d.session("r"), d.session("w")
	stamps := func() (created, used, repaired time.Time) {
		t.Helper()
		a := d.artifact("r", "m")
		read := func(v any) time.Time {
			text, _ := v.(string)
			at, _ := time.Parse(time.RFC3339Nano, text) // null is the zero time
			return at
		}
		return read(a["created_at"]), read(a["last_used_at"]), read(a["last_repaired_at"])
	}
	d.call(s, "m", 1)
	made, used, repaired := stamps()
	if used.Before(made) || !repaired.IsZero() {
		t.Errorf("new: made %s, used %s, repaired %s", made, used, repaired)
	}
	reask := func() bool { return d.logOf(d.call(w, "m", "x"))["user_correction_detected"].(bool) }
	if reask() || !reask() {
		t.Error("a first ask is a correction, or a second one is none")
	}
	const day = 24 * time.Hour
	set("24h")
	if reask() {
		t.Error("a day later it is a correction")
	}
	d.call(s, "m", 1)
	later, usedLater, repaired := stamps()
	if !later.Equal(made) || usedLater.Sub(used) < day || !repaired.IsZero() {
		t.Errorf("a day later: made %s, used %s, repaired %s", later, usedLater, repaired)
	}
	set("48h")
	d.call(s, "m", "bad")
	if later, usedLater, repaired = stamps(); !later.Equal(made) || repaired.Sub(made) < 2*day || usedLater.Sub(used) < 2*day {
		t.Errorf("repaired: made %s, used %s, repaired %s", later, usedLater, repaired)
	}
}

// Decision 7: of six contracts' programs all are kept that are healthy, beyond the latest three, and each serves its own
// callers without a model.
func TestHealthyOneOfEachContractIsKept(t *testing.T) {
	m := newModel(t, script{"c.m": {progMends}})
	d := newDaemon(t, m)
	s := d.session("c")
	const contracts = 6
	call := func(n int) reply {
		return d.invoke(s, map[string]any{"method": "m", "args": []any{1}, "contract": map[string]any{"deliverable": map[string]any{"type": "number", "minimum": -n}}})
	}
	for n := range contracts {
		m.Answer("c", "m", openaiCode(strings.Replace(progMends, "mended", fmt.Sprintf("mended %d", n), 1)))
		call(n)
	}
	if n := len(d.artifact("c", "m")["history"].([]any)); n != contracts {
		t.Errorf("%d generations are kept, want one a contract", n)
	}
	asked := len(m.requests())
	d.restart()
	for range 2 {
		for n := range contracts {
			got := call(n)
			if d.wantValue(got, 1, "persisted"); got.Program.Generation != fmt.Sprintf("gen-%d", n+1) {
				t.Errorf("contract %d was served by %s", n, got.Program.Generation)
			}
		}
	}
	if n := len(m.requests()); n != asked {
		t.Errorf("%d more model requests", n-asked)
	}
}

// The lifecycle over HTTP, shadow on: candidate and probation with the first ok, durable by ten calls of two sessions, degraded
// by failures of its own, durable again by a person's word; each decision is told in the log.
func TestLifecycleOverHTTP(t *testing.T) {
	m := newModel(t, script{"r.m": {progMayPanic}})
	d := newDaemon(t, m)
	one, two := d.session("r"), d.session("r")
	state := func(want, decision string, got reply) {
		t.Helper()
		if a := d.artifact("r", "m"); a["lifecycle_state"] != want {
			t.Errorf("%v after %v calls, want %s", a["lifecycle_state"], a["success_count"], want)
		}
		if e := d.logOf(got); e["lifecycle_state"] != want || e["lifecycle_decision"] != decision {
			t.Errorf("the log says %v, %v; want %s, %s", e["lifecycle_state"], e["lifecycle_decision"], want, decision)
		}
	}
	state("probation", "", d.call(one, "m", 1))
	for range 8 {
		state("probation", "hold", d.call(one, "m", 1))
	}
	state("probation", "hold", d.call(one, "m", 1)) // ten calls, one session
	state("durable", "promote", d.call(two, "m", 1))
	d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/promote", map[string]any{"reset_metrics": true})
	d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/pin", map[string]any{})
	state("durable", "hold", d.call(one, "m", "bad"))
	state("durable", "hold", d.call(one, "m", "bad"))
	state("degraded", "demote", d.call(one, "m", "bad"))
	d.restart()
	if a := d.artifact("r", "m"); a["lifecycle_state"] != "degraded" {
		t.Errorf("%v after a restart", a["lifecycle_state"])
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/promote", map[string]any{})
	if a := d.artifact("r", "m"); a["lifecycle_state"] != "durable" {
		t.Errorf("%v after a promotion", a["lifecycle_state"])
	}
}
