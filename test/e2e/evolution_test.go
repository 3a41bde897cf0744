package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
)

// Programs of the movie scenario: one that finds nothing for most wishes, and one that was written under the stronger
// contract.
var (
	progMoviesWeak = program("\tif call.Arg(0, \"wish\") == \"drama\" {\n\t\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"B\"}}, nil\n\t}\n\treturn map[string]any{\"status\": \"success_no_parse\", \"movies\": []any{}}, nil")
	progMoviesFull = program("\twish, _ := call.Arg(0, \"wish\").(string)\n\tif wish == \"drama\" {\n\t\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"B\"}}, nil\n\t}\n\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"A\", \"B\", wish}}, nil")
)

var movieContract = map[string]any{"purpose": "find movies", "deliverable": map[string]any{"type": "object", "required": []any{"status", "movies"}},
	"acceptance": []any{map[string]any{"assert": "the moon is made of cheese"}}}

func (d *proc) recommendations(query string) []map[string]any {
	d.t.Helper()
	return d.list("/v1/recommendations" + query)
}

// tree maps the files of artifacts to their content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// C-01, C-12, C-18, C-20, C-22, C-23, C-27, C-30, C-31, C-38: the movie scenario from end to end. A weak ok is left as it is
// and noted; the user asks again; a stronger contract is recommended with a simulation; a person applies it; the artifact is
// stale and is repaired under the new contract; and all is taken back in one call.
func TestMovieScenario(t *testing.T) {
	m := newModel(t, script{"movie finder.find": {progMoviesWeak, progMoviesFull}})
	d := newDaemon(t, m)
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", movieContract)
	s := d.session("movie finder")
	first := d.call(s, "find", "action")
	d.wantValue(first, map[string]any{"status": "success_no_parse", "movies": []any{}}, "generated")
	second := d.call(s, "find", "action") // warm: C-22
	d.wantValue(second, first.Outcome.Value, "persisted")
	e := d.get("/v1/calls/" + second.CallID)
	if e["weak_success"] != true || !equal([]any{"empty_array:/movies", "weak_status:/status=success_no_parse"}, e["weak_success_reasons"]) {
		t.Errorf("weak success: %v %v", e["weak_success"], e["weak_success_reasons"])
	}
	if e["user_correction_detected"] != true || e["user_correction_signal"] != "temporal_reask" || e["user_correction_reference_call_id"] != first.CallID {
		t.Errorf("correction: %v %v %v", e["user_correction_detected"], e["user_correction_signal"], e["user_correction_reference_call_id"])
	}
	for range 3 {
		d.call(s, "find", "action")
	}
	d.wantValue(d.call(s, "find", "drama"), map[string]any{"status": "success", "movies": []any{"B"}}, "persisted")
	if n := len(d.list("/v1/calls?weak_success=true")); n != 5 {
		t.Errorf("%d weak successes in the log, want 5", n)
	}
	events, _ := d.get("/v1/patterns/movie%20finder")["events"].([]any)
	if len(events) == 0 || events[0].(map[string]any)["corrected"] != second.CallID || events[0].(map[string]any)["weak_success"] != true {
		t.Errorf("pattern memory: %v", events)
	}

	d.restart() // everything is in files
	before := tree(t, filepath.Join(d.state(), "tools"))
	a, b := d.do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil), d.do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil)
	if string(a.Body) != string(b.Body) {
		t.Errorf("two evaluations differ:\n%s\n%s", a.Body, b.Body)
	}
	if !reflect.DeepEqual(before, tree(t, filepath.Join(d.state(), "tools"))) {
		t.Error("an evaluation changed files")
	}
	var rec map[string]any
	for _, r := range d.recommendations("") {
		if r["kind"] == "strengthen_contract" {
			rec = r
		}
	}
	if rec == nil {
		t.Fatalf("no stronger contract is recommended: %s", a.Body)
	}
	proposal, simulation := rec["proposal"].(map[string]any), rec["simulation"].(map[string]any)
	if proposal["constraint"] != "deliverable.constraints.properties.movies.min_items" || proposal["value"] != 1.0 {
		t.Errorf("proposal: %v", proposal)
	}
	if !equal(map[string]any{"calls": 6, "checked": 6, "would_fail": 5, "would_fail_reasked": 4, "would_fail_accepted": 1}, simulation) {
		t.Errorf("simulation: %v", simulation)
	}
	if !strings.Contains(fmt.Sprint(rec["evidence"]), first.CallID) || rec["caller_contracts"] != 0.0 {
		t.Errorf("evidence: %v, caller contracts %v", rec["evidence"], rec["caller_contracts"])
	}
	stdout, _, code := d.client("recommend")
	if code != 0 || !strings.Contains(stdout, rec["id"].(string)) || !strings.Contains(stdout, "min_items = 1") {
		t.Errorf("recurgentd recommend: code %d, %s", code, stdout)
	}

	apply := "/v1/recommendations/" + rec["id"].(string) + "/apply"
	d.do(http.StatusOK, http.MethodPost, apply, map[string]any{"reason": "they keep asking again"})
	s = d.session("movie finder")
	mended := d.call(s, "find", "action")
	d.wantValue(mended, map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "repaired")
	if mended.Program.Selection.Reason != "contract_changed" {
		t.Errorf("selection %+v, want contract_changed", mended.Program.Selection)
	}
	if q := m.last(); q.Kind != "repair" || !strings.Contains(q.User+q.System, "min_items") {
		t.Errorf("the repair request (%s) does not tell of the constraint", q.Kind)
	}
	for _, r := range d.recommendations("") {
		if r["kind"] == "strengthen_contract" {
			t.Errorf("still recommended: %v", r)
		}
	}
	if l := d.recommendations("?status=applied"); len(l) != 1 || l[0]["id"] != rec["id"] {
		t.Errorf("applied: %v", l)
	}
	audit := d.list("/v1/maintenance/audit")
	if audit[0]["action"] != "recommendation.apply" || audit[0]["reason"] != "they keep asking again" || !strings.Contains(audit[0]["undo"].(string), "undo") {
		t.Errorf("audit: %v", audit[0])
	}

	d.restart() // the decision is durable
	d.do(http.StatusOK, http.MethodPost, apply, map[string]any{"undo": true})
	tool := d.get("/v1/tools/movie%20finder")
	if !equal(movieContract["deliverable"], tool["deliverable"]) || tool["methods"] != nil {
		t.Errorf("after the undo: %v", tool)
	}
	d.do(http.StatusNotFound, http.MethodPost, apply, map[string]any{"undo": true})
}

// C-02, C-10, C-11, C-12: a value that breaks the contract on a healthy artifact has it repaired in the same call.
func TestViolationOnAHealthyArtifact(t *testing.T) {
	m := newModel(t, script{"movie finder.find": {progMoviesWeak, progMoviesFull}})
	d := newDaemon(t, m)
	strict := map[string]any{"deliverable": map[string]any{"type": "object", "constraints": map[string]any{"properties": map[string]any{"movies": map[string]any{"type": "array", "min_items": 1}}}}}
	s := d.session("movie finder", map[string]any{"contract": strict})
	d.wantValue(d.call(s, "find", "drama"), map[string]any{"status": "success", "movies": []any{"B"}}, "generated")
	got := d.call(s, "find", "action")
	if !got.Outcome.OK || m.count("movie finder", "find") != 2 {
		t.Fatalf("got %+v after %d requests", got.Outcome, m.count("movie finder", "find"))
	}
	if q := m.last(); q.Kind != "repair" || !strings.Contains(q.User, "min_items_violation") {
		t.Errorf("the repair request does not hold the violation")
	}
	e := d.get("/v1/calls/" + got.CallID)
	failures, _ := e["attempt_failures"].([]any)
	if len(failures) != 1 {
		t.Fatalf("attempt failures: %v", failures)
	}
	meta, _ := failures[0].(map[string]any)["metadata"].(map[string]any)
	if meta["mismatch"] != "min_items_violation" || meta["constraint_path"] != "deliverable.constraints.properties.movies.min_items" || meta["expected_min_items"] != 1.0 || meta["actual_items"] != 0.0 {
		t.Errorf("metadata: %v", meta)
	}
}

// C-01, C-17, C-21: outcome bytes are the same with every detector on and off, whatever a value says of itself.
func TestDetectorsChangeNothing(t *testing.T) {
	values := []string{`map[string]any{"status": "success_no_parse", "movies": []any{}}`, `map[string]any{"status": "empty"}`, `[]any{}`, `"no_results"`,
		`map[string]any{"status": "error", "error": "nothing worked", "movies": []any{}}`, `nil`, `map[string]any{"ok": false}`}
	body := "\tn, _ := call.Arg(0, \"n\").(float64)\n\tswitch n {\n"
	for i, v := range values {
		body += fmt.Sprintf("\tcase %d.0:\n\t\treturn %s, nil\n", i, v)
	}
	for i, e := range []string{"low_utility", "wrong_tool_boundary", "unsupported_capability"} {
		body += fmt.Sprintf("\tcase %d.0:\n\t\treturn nil, recurgent.Fail(%q, \"it achieved nothing\")\n", len(values)+i, e)
	}
	m := newModel(t, script{"t.m": {program(body + "\t}\n\treturn 1, nil")}})
	d := newDaemon(t, m)
	outcomes := func() []string {
		s := d.session("t", map[string]any{"contract": map[string]any{"deliverable": map[string]any{"required": []any{}}}})
		var out []string
		for n := range len(values) + 3 {
			for range 2 { // asked again
				raw := string(d.do(http.StatusOK, http.MethodPost, "/v1/sessions/"+s+"/calls", map[string]any{"method": "m", "args": []any{n}}).Body)
				out = append(out, raw[strings.Index(raw, `"outcome":`):strings.Index(raw, `"program":`)])
			}
		}
		return out
	}
	d.call(d.session("t"), "m", 99)
	on := outcomes()
	d.do(http.StatusOK, http.MethodPatch, "/v1/policy", map[string]any{"weak_success": map[string]any{"statuses": []any{}, "empty_arrays": false}, "user_correction": map[string]any{"window_seconds": 0}})
	off := outcomes()
	if n := strings.Count(strings.Join(on, ""), `"status":"ok"`); n != 2*len(values) || len(m.requests()) > 3 {
		t.Errorf("%d ok outcomes after %d requests: the test shows nothing", n, len(m.requests()))
	}
	if !reflect.DeepEqual(on, off) {
		t.Errorf("outcomes differ:\n%s\n%s", on, off)
	}
}

// C-24 to C-32: kinds, thresholds and dismissals.
func TestRecommendationsByKind(t *testing.T) {
	m := newModel(t, script{
		"boundary.m": {program("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"not mine\")")},
		"low.m":      {program("\treturn map[string]any{\"status\": \"partial\", \"n\": call.Arg(0, \"n\")}, nil")},
		"fine.m":     {progAdd},
	})
	d := newDaemon(t, m)
	// An authored error of a first call keeps no program; each call asks the model, which answers the same.
	for _, role := range []string{"boundary", "low", "fine"} {
		s := d.session(role)
		for i := range 4 {
			d.call(s, "m", i, 1)
		}
	}
	kinds := func(query string) map[string]string {
		out := map[string]string{}
		for _, r := range d.recommendations(query) {
			out[r["role"].(string)] = r["kind"].(string)
		}
		return out
	}
	if got := kinds(""); !reflect.DeepEqual(got, map[string]string{"boundary": "split_boundary", "low": "reforge"}) {
		t.Errorf("recommended: %v", got)
	}
	d.do(http.StatusOK, http.MethodPatch, "/v1/policy", map[string]any{"recommendations": map[string]any{"boundary_referrals": 5}}) // C-32
	if got := kinds(""); !reflect.DeepEqual(got, map[string]string{"low": "reforge"}) {
		t.Errorf("with another threshold: %v", got)
	}
	id := d.recommendations("")[0]["id"].(string)
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss", map[string]any{"reason": "it is meant so"})
	d.restart()
	if got := kinds(""); len(got) != 0 {
		t.Errorf("after a dismissal: %v", got)
	}
	if got := kinds("?status=dismissed"); got["low"] != "reforge" {
		t.Errorf("dismissed: %v", got)
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss", map[string]any{"undo": true})
	asked := m.count("low", "m")
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/apply", nil)
	if a := d.get("/v1/tools/low/methods/m"); a["force_regenerate"] == nil {
		t.Errorf("a reforge was applied, but nothing is asked for: %v", a["force_regenerate"])
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/apply", map[string]any{"undo": true})
	d.wantValue(d.call(d.session("low"), "m", 1), map[string]any{"status": "partial", "n": 1}, "persisted")
	if n := m.count("low", "m"); n != asked {
		t.Errorf("the model was asked %d times more after the undo", n-asked)
	}
	d.do(http.StatusNotFound, http.MethodPost, "/v1/recommendations/rec_none/apply", nil)
}

// A recommendation about calls that bring their own deliverable builds on it and says that theirs wins.
func TestRecommendationKnowsCallersContracts(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"movie finder.find": {progMoviesWeak}}))
	s := d.session("movie finder", map[string]any{"contract": movieContract})
	for range 4 {
		d.call(s, "find", "action")
	}
	for _, r := range d.recommendations("") {
		if r["kind"] != "strengthen_contract" {
			continue
		}
		deliverable := r["proposal"].(map[string]any)["deliverable"].(map[string]any)
		if r["caller_contracts"] != 4.0 || !equal([]any{"status", "movies"}, deliverable["required"]) {
			t.Errorf("got %v", r)
		}
		return
	}
	t.Error("nothing is recommended")
}

// A site answers like a web site of the baseline scenarios: it can be down, and it can change its format.
type site struct {
	*httptest.Server
	status atomic.Int32
	body   atomic.Pointer[string]
}

func newSite(t *testing.T, body string) *site {
	s := &site{}
	s.status.Store(http.StatusOK)
	s.body.Store(&body)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(s.status.Load()))
		_, _ = w.Write([]byte(*s.body.Load()))
	}))
	t.Cleanup(s.Close)
	return s
}

func progHeadlines(address string) string {
	return program("\tres, err := call.Fetch(\""+address+"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif res.Status >= 500 {\n\t\treturn nil, recurgent.Fail(\"upstream\", \"the site is down\")\n\t}\n"+
		"\tvar v struct {\n\t\tItems []struct {\n\t\t\tTitle string `json:\"title\"`\n\t\t} `json:\"items\"`\n\t}\n\tif err := json.Unmarshal([]byte(res.Body), &v); err != nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", err.Error())\n\t}\n"+
		"\ttitles := []any{}\n\tfor _, i := range v.Items {\n\t\ttitles = append(titles, i.Title)\n\t}\n\treturn map[string]any{\"status\": \"success\", \"headlines\": titles}, nil", "encoding/json")
}

// C-33, C-34: the baseline scenarios with local sites: three news sites, one with nothing, one that is down, and a control
// without an open world. docs/baselines holds these counts.
func TestNewsScenario(t *testing.T) {
	google, yahoo, nyt := newSite(t, `{"items":[{"title":"G1"},{"title":"G2"}]}`), newSite(t, `{"items":[]}`), newSite(t, `{"items":[{"title":"N1"}]}`)
	var hosts []string
	for _, s := range []*site{google, yahoo, nyt} {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Host)
	}
	m := newModel(t, script{"news.google": {progHeadlines(google.URL)}, "news.yahoo": {progHeadlines(yahoo.URL)}, "news.nyt": {progHeadlines(nyt.URL)}, "calculator.add": {progAdd}})
	d := newDaemon(t, m, "--fetch-allow", strings.Join(hosts, ","))
	k := map[string]any{"purpose": "headlines", "deliverable": map[string]any{"type": "object", "required": []any{"status", "headlines"}}}
	s := d.session("news", map[string]any{"contract": k})
	for range 4 {
		d.wantValue(d.call(s, "google"), map[string]any{"status": "success", "headlines": []any{"G1", "G2"}}, "")
		d.wantValue(d.call(s, "yahoo"), map[string]any{"status": "success", "headlines": []any{}}, "")
		d.wantValue(d.call(s, "nyt"), map[string]any{"status": "success", "headlines": []any{"N1"}}, "")
		d.wantValue(d.call(d.session("calculator"), "add", 2, 3), 5, "")
	}
	nyt.status.Store(http.StatusServiceUnavailable)
	for range 3 {
		if got := d.call(s, "nyt"); got.Outcome.OK || !got.Outcome.Authored {
			t.Errorf("a site that is down: %+v", got.Outcome)
		}
	}
	nyt.status.Store(http.StatusOK)
	d.wantValue(d.call(s, "nyt"), map[string]any{"status": "success", "headlines": []any{"N1"}}, "persisted")

	total := d.get("/v1/reports/trends?window=1h")["total"].(map[string]any)
	for name, want := range map[string]any{"calls": 20, "errors": 3, "weak_successes": 4, "corrections": 3 + 2 + 1, "failure_class": map[string]any{"extrinsic": 3}, "program_source": map[string]any{"generated": 4, "persisted": 16}} {
		if !equal(want, total[name]) {
			t.Errorf("%s: got %v, want %v", name, total[name], want)
		}
	}
	t.Logf("counts: %v", total)
	if n := len(m.requests()); n != 4 {
		t.Errorf("the model was asked %d times, want once a method", n)
	}
	got := d.recommendations("")
	if len(got) != 1 || got[0]["kind"] != "strengthen_contract" || got[0]["method"] != "yahoo" {
		t.Errorf("recommended: %v", got)
	}
	for _, c := range d.list("/v1/calls?role=calculator") {
		if c["weak_success"] != false || c["user_correction_detected"] != false {
			t.Errorf("the control: %v", c)
		}
	}
}
