package tools

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The movie scenario from end to end. A weak ok is left as it is and noted; the user asks again; a stronger contract is
// recommended with a simulation; a person applies it; the artifact is stale and is repaired under the new contract; and
// all is taken back in one call.
func TestMovieScenario(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak, rig.ProgMoviesFull}})
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", rig.MovieContract)
	s := d.Session("movie finder")
	first := d.Call(s, "find", "action")
	d.WantValue(first, map[string]any{"status": "success_no_parse", "movies": []any{}}, "generated")
	second := d.Call(s, "find", "action") // warm
	d.WantValue(second, first.Outcome.Value, "persisted")
	e := d.Get("/v1/calls/" + second.CallID)
	if e["weak_success"] != true || !rig.Equal([]any{"empty_array:/movies", "weak_status:/status=success_no_parse"},
		e["weak_success_reasons"]) {
		t.Errorf("weak success: %v %v", e["weak_success"], e["weak_success_reasons"])
	}
	if e["user_correction_detected"] != true || e["user_correction_signal"] != "temporal_reask" ||
		e["user_correction_reference_call_id"] != first.CallID {
		t.Errorf("correction: %v %v %v", e["user_correction_detected"], e["user_correction_signal"],
			e["user_correction_reference_call_id"])
	}
	for range 3 {
		d.Call(s, "find", "action")
	}
	d.WantValue(d.Call(s, "find", "drama"), map[string]any{"status": "success", "movies": []any{"B"}}, "persisted")
	if n := len(d.List("/v1/calls?weak_success=true")); n != 5 {
		t.Errorf("%d weak successes in the log, want 5", n)
	}
	events, _ := d.Get("/v1/patterns/movie%20finder")["events"].([]any)
	if len(events) == 0 || events[0].(map[string]any)["corrected"] != second.CallID ||
		events[0].(map[string]any)["weak_success"] != true {
		t.Errorf("pattern memory: %v", events)
	}
	rec := checkStrongerContract(d, first)
	apply := "/v1/recommendations/" + rec["id"].(string) + "/apply"
	checkApplied(d, m, rec, apply)

	d.Restart() // the decision is durable
	d.Do(http.StatusOK, http.MethodPost, apply, map[string]any{"undo": true})
	tool := d.Get("/v1/tools/movie%20finder")
	if !rig.Equal(rig.MovieContract["deliverable"], tool["deliverable"]) || tool["methods"] != nil {
		t.Errorf("after the undo: %v", tool)
	}
	d.Do(http.StatusNotFound, http.MethodPost, apply, map[string]any{"undo": true})
}

// tools are the stored files of tools.
func tools(d *rig.Daemon) map[string][]byte {
	d.T.Helper()
	all := d.Stored()
	maps.DeleteFunc(all, func(path string, _ []byte) bool { return !strings.HasPrefix(path, "tools/") })
	return all
}

// checkStrongerContract checks that an evaluation changes nothing and recommends the stronger contract, and returns
// that.
func checkStrongerContract(d *rig.Daemon, first rig.Reply) map[string]any {
	d.T.Helper()
	d.Restart() // everything is in files
	before := tools(d)
	a, b := d.Do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil),
		d.Do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil)
	if string(a.Body) != string(b.Body) {
		d.T.Errorf("two evaluations differ:\n%s\n%s", a.Body, b.Body)
	}
	if !reflect.DeepEqual(before, tools(d)) {
		d.T.Error("an evaluation changed files")
	}
	var rec map[string]any
	for _, r := range d.Recommendations("") {
		if r["kind"] == "strengthen_contract" {
			rec = r
		}
	}
	if rec == nil {
		d.T.Fatalf("no stronger contract is recommended: %s", a.Body)
	}
	proposal, simulation := rec["proposal"].(map[string]any), rec["simulation"].(map[string]any)
	if proposal["constraint"] != "deliverable.constraints.properties.movies.min_items" || proposal["value"] != 1.0 {
		d.T.Errorf("proposal: %v", proposal)
	}
	if !rig.Equal(map[string]any{"calls": 6, "checked": 6, "would_fail": 5, "would_fail_reasked": 4,
		"would_fail_accepted": 1}, simulation) {
		d.T.Errorf("simulation: %v", simulation)
	}
	if !strings.Contains(fmt.Sprint(rec["evidence"]), first.CallID) || rec["caller_contracts"] != 0.0 {
		d.T.Errorf("evidence: %v, caller contracts %v", rec["evidence"], rec["caller_contracts"])
	}
	stdout, _, code := d.Client("recommend")
	if code != 0 || !strings.Contains(stdout, rec["id"].(string)) || !strings.Contains(stdout, "min_items = 1") {
		d.T.Errorf("recurgentd recommend: code %d, %s", code, stdout)
	}
	return rec
}

// checkApplied applies it: the program is stale and is repaired under the new contract, and the decision is audited.
func checkApplied(d *rig.Daemon, m *rig.Model, rec map[string]any, apply string) {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodPost, apply, map[string]any{"reason": "they keep asking again"})
	s := d.Session("movie finder")
	fixed := d.Call(s, "find", "action")
	d.WantValue(fixed, map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "repaired")
	if fixed.Program.Selection.Reason != "contract_changed" {
		d.T.Errorf("selection %+v, want contract_changed", fixed.Program.Selection)
	}
	if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User+q.System, "min_items") {
		d.T.Errorf("the repair request (%s) does not mention the constraint", q.Kind)
	}
	for _, r := range d.Recommendations("") {
		if r["kind"] == "strengthen_contract" {
			d.T.Errorf("still recommended: %v", r)
		}
	}
	if l := d.Recommendations("?status=applied"); len(l) != 1 || l[0]["id"] != rec["id"] {
		d.T.Errorf("applied: %v", l)
	}
	audit := d.List("/v1/maintenance/audit")
	if audit[0]["action"] != "recommendation.apply" || audit[0]["reason"] != "they keep asking again" ||
		!strings.Contains(audit[0]["undo"].(string), "undo") {
		d.T.Errorf("audit: %v", audit[0])
	}
}

// A value that breaks the contract on a healthy artifact has it repaired in the same call.
func TestViolationOnAHealthyArtifact(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak, rig.ProgMoviesFull}})
	d := rig.Start(t, m)
	strict := map[string]any{"deliverable": map[string]any{"type": "object",
		"constraints": map[string]any{"properties": map[string]any{"movies": map[string]any{"type": "array",
			"min_items": 1}}}}}
	s := d.Session("movie finder", map[string]any{"contract": strict})
	d.WantValue(d.Call(s, "find", "drama"), map[string]any{"status": "success", "movies": []any{"B"}}, "generated")
	got := d.Call(s, "find", "action")
	if !got.Outcome.OK || m.Count("movie finder", "find") != 2 {
		t.Fatalf("got %+v after %d requests", got.Outcome, m.Count("movie finder", "find"))
	}
	if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User, "min_items_violation") {
		t.Errorf("the repair request does not hold the violation")
	}
	e := d.Get("/v1/calls/" + got.CallID)
	failures, _ := e["attempt_failures"].([]any)
	if len(failures) != 1 {
		t.Fatalf("attempt failures: %v", failures)
	}
	meta, _ := failures[0].(map[string]any)["metadata"].(map[string]any)
	if meta["mismatch"] != "min_items_violation" ||
		meta["constraint_path"] != "deliverable.constraints.properties.movies.min_items" ||
		meta["expected_min_items"] != 1.0 || meta["actual_items"] != 0.0 {
		t.Errorf("metadata: %v", meta)
	}
}

// Outcome bytes are the same with every detector on and off, whatever a value says of itself.
func TestDetectorsChangeNothing(t *testing.T) {
	t.Parallel()
	values := []string{`map[string]any{"status": "success_no_parse", "movies": []any{}}`,
		`map[string]any{"status": "empty"}`, `[]any{}`, `"no_results"`,
		`map[string]any{"status": "error", "error": "nothing worked", "movies": []any{}}`, `nil`,
		`map[string]any{"ok": false}`}
	body := "\tn, _ := call.Arg(0, \"n\").(float64)\n\tswitch n {\n"
	for i, v := range values {
		body += fmt.Sprintf("\tcase %d.0:\n\t\treturn %s, nil\n", i, v)
	}
	for i, e := range []string{"low_utility", "wrong_tool_boundary", "unsupported_capability"} {
		body += fmt.Sprintf("\tcase %d.0:\n\t\treturn nil, recurgent.Fail(%q, \"it achieved nothing\")\n",
			len(values)+i, e)
	}
	m := rig.NewModel(t, rig.Script{"t.m": {rig.Program(body + "\t}\n\treturn 1, nil")}})
	d := rig.Start(t, m)
	outcomes := func() []string {
		s := d.Session("t", map[string]any{"contract": map[string]any{"deliverable": map[string]any{"required": []any{}}}})
		var out []string
		for n := range len(values) + 3 {
			for range 2 { // asked again
				raw := string(d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+s+"/calls",
					map[string]any{"method": "m", "args": []any{n}}).Body)
				out = append(out, raw[strings.Index(raw, `"outcome":`):strings.Index(raw, `"program":`)])
			}
		}
		return out
	}
	d.Call(d.Session("t"), "m", 99)
	on := outcomes()
	d.Do(http.StatusOK, http.MethodPatch, "/v1/policy",
		map[string]any{"weak_success": map[string]any{"statuses": []any{}, "empty_arrays": false},
			"user_correction": map[string]any{"window_seconds": 0}})
	off := outcomes()
	if n := strings.Count(strings.Join(on, ""), `"status":"ok"`); n != 2*len(values) || len(m.Questions()) > 3 {
		t.Errorf("%d ok outcomes after %d requests: the test shows nothing", n, len(m.Questions()))
	}
	if !reflect.DeepEqual(on, off) {
		t.Errorf("outcomes differ:\n%s\n%s", on, off)
	}
}
