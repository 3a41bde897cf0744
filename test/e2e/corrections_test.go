package e2e

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// wantCorrection checks that two calls are linked both ways by call id, in their own entries and in the list.
func (d *proc) wantCorrection(first, second reply, signal string) {
	d.t.Helper()
	a, b := d.get("/v1/calls/"+first.CallID), d.get("/v1/calls/"+second.CallID)
	if b["user_correction_detected"] != true || b["user_correction_signal"] != signal || b["user_correction_reference_call_id"] != first.CallID {
		d.t.Errorf("the re-ask: %v %v %v, want %s of %s", b["user_correction_detected"], b["user_correction_signal"], b["user_correction_reference_call_id"], signal, first.CallID)
	}
	if a["corrected_by"] != second.CallID {
		d.t.Errorf("the corrected call is corrected by %v, want %s", a["corrected_by"], second.CallID)
	}
	for _, e := range d.list("/v1/calls?session_id=" + first.SessionID) {
		if e["call_id"] == first.CallID && e["corrected_by"] != second.CallID {
			d.t.Errorf("the list: corrected by %v, want %s", e["corrected_by"], second.CallID)
		}
	}
}

// C-22: a question asked again is a correction on cold and on warm calls, of weak values and of errors, in the same and in
// similar words; both calls name each other, also after the daemon was killed; and a correction that spans a restart is one.
func TestCorrections(t *testing.T) {
	m := newModel(t, script{
		"movie finder.find": {progMoviesWeak}, "closed.m": {progFails}, "calculator.add": {progAdd}, "chatter.ask": {progGiven},
	})
	d := newDaemon(t, m)
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", movieContract)
	s := d.session("movie finder")
	cold := d.call(s, "find", "good action movies of the nineties")
	warm := d.call(s, "find", "Good action movies of the nineties!")
	again := d.call(s, "find", "show me good action movies of the nineties") // six words of eight
	other := d.call(s, "find", "weather in Paris")
	fine := d.call(s, "find", "drama")
	same := d.call(s, "find", "drama") // of a good answer: used again, not corrected
	failed := d.call(d.session("closed"), "m", 1)
	sum := d.session("calculator")
	d.call(sum, "add", 1, 2)
	summed := d.call(sum, "add", 1, 2)
	chat := d.session("chatter")
	asked := d.call(chat, "ask", "what are the best movies of this year")
	rephrased := d.call(chat, "ask", "what were the best movies of this year") // a method that takes free text, of a good answer
	retried := d.call(failed.SessionID, "m", 1)
	check := func() {
		d.t.Helper()
		d.wantCorrection(cold, warm, "temporal_reask")
		d.wantCorrection(warm, again, "temporal_reask")
		d.wantCorrection(failed, retried, "temporal_reask")
		d.wantCorrection(asked, rephrased, "temporal_reask_dispatch")
		for _, r := range []reply{other, fine, same, summed} {
			if e := d.logOf(r); e["user_correction_detected"] != false || e["corrected_by"] != nil {
				t.Errorf("%s.%s: %v %v", r.Role, r.Method, e["user_correction_detected"], e["corrected_by"])
			}
		}
	}
	check()
	d.kill(syscall.SIGKILL)
	d.start()
	check()
	spanning := d.call(failed.SessionID, "m", 1)
	d.wantCorrection(retried, spanning, "temporal_reask")
	if e := d.logOf(d.call(s, "find", "drama")); e["user_correction_detected"] != false {
		t.Error("a good answer, asked for again after a restart, is called a correction")
	}
	// The pattern memory knows the pairs too, whatever the daemon has been through.
	events, _ := d.get("/v1/patterns/movie%20finder")["events"].([]any)
	pairs := map[string]any{}
	for _, e := range events {
		o := e.(map[string]any)
		pairs[o["call_id"].(string)] = o["corrected"]
	}
	if pairs[cold.CallID] != warm.CallID || pairs[warm.CallID] != again.CallID || pairs[again.CallID] != nil {
		t.Errorf("pattern memory: %v", pairs)
	}
	// The window is policy.
	d.policy(map[string]any{"user_correction": map[string]any{"window_seconds": 0}})
	if e := d.logOf(d.call(failed.SessionID, "m", 1)); e["user_correction_detected"] != false {
		t.Error("a window of 0 switches the detector off")
	}
}

// Issue 7.3: weak successes and corrections by reason in /metrics, and the gauge of open recommendations, which follows
// decisions about them.
func TestEvolutionMetrics(t *testing.T) {
	m := newModel(t, script{"movie finder.find": {progMoviesWeak}, "word.m": {program("\treturn map[string]any{\"status\": \"partial\"}, nil")},
		"own.m": {program("\treturn map[string]any{\"status\": \"meh\"}, nil")}})
	d := newDaemon(t, m)
	d.policy(map[string]any{"weak_success": map[string]any{"statuses": []any{"success_no_parse", "partial", "meh"}}})
	s := d.session("movie finder", map[string]any{"contract": movieContract})
	for range 4 {
		d.call(s, "find", "action")
	}
	for i := range 2 {
		d.call(d.session("word"), "m", i)
	}
	d.call(d.session("own"), "m")
	for series, want := range map[string]float64{
		`recurgent_weak_successes_total{reason="success_no_parse"}`:     4,
		`recurgent_weak_successes_total{reason="empty_array"}`:          4,
		`recurgent_weak_successes_total{reason="partial"}`:              2,
		`recurgent_weak_successes_total{reason="other"}`:                1, // an operator's own word: labels are a closed set
		`recurgent_user_corrections_total{signal="temporal_reask"}`:     3,
		`recurgent_recommendations_open`:                                1,
		`recurgent_contract_checks_total{result="ok"}`:                  4,
		`recurgent_contract_violations_total{mismatch="type_mismatch"}`: 0,
	} {
		if got := d.metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	id := d.recommendations("")[0]["id"].(string)
	for _, step := range []struct {
		body map[string]any
		want float64
	}{{map[string]any{"reason": "not now"}, 0}, {map[string]any{"undo": true}, 1}} {
		d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss", step.body)
		until(t, fmt.Sprintf("%v open recommendations", step.want), func() bool { return d.metric("recurgent_recommendations_open") == step.want })
	}
}

// without returns the object less what counts and dates.
func without(o map[string]any, keys ...string) map[string]any {
	out := map[string]any{}
	for k, v := range o {
		out[k] = v
	}
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// C-28 to C-31, C-37: a recommendation does nothing by itself. Applied by a person it does what it proposes and no more,
// is in the audit trail, and one call takes it back: the registry, the artifact and the list are as they were, to the byte.
func TestAdviceIsTakenBackExactly(t *testing.T) {
	m := newModel(t, script{
		"movie finder.find": {progMoviesWeak, progMoviesFull},
		"low.m":             {program("\treturn map[string]any{\"status\": \"partial\"}, nil")},
		"boundary.m":        {program("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"not mine\")")},
		"poor.m":            {program("\treturn nil, recurgent.Fail(\"low_utility\", \"nothing useful\")")},
	})
	d := newDaemon(t, m)
	k := map[string]any{"purpose": "find movies", "deliverable": raw(`{"required": ["status", "movies"], "type": "object"}`), "methods": map[string]any{"find": map[string]any{"purpose": "find <some> movies"}}}
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", k)
	for i := range 4 {
		d.call(d.session("movie finder"), "find", "action")
		d.call(d.session("low"), "m", i)
		d.call(d.session("boundary"), "m", i)
		d.call(d.session("poor"), "m", i)
	}
	state := func() []string {
		var out []string
		for _, path := range []string{"/v1/tools/movie%20finder", "/v1/tools/low", "/v1/tools/movie%20finder/methods/find", "/v1/tools/low/methods/m"} {
			r := d.send(http.MethodGet, path, nil, nil)
			out = append(out, path+" "+string(mustJSON(without(r.object(t), "revision", "updated_at"))))
		}
		return append(out, string(d.do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil).Body))
	}
	d.restart() // everything is in files
	files := tree(t, d.state()+"/tools")
	before := state()
	if !reflect.DeepEqual(files, tree(t, d.state()+"/tools")) {
		t.Error("an evaluation changed files")
	}
	kinds := map[string]int{}
	for _, r := range d.recommendations("") {
		kinds[r["kind"].(string)+" "+r["role"].(string)]++
		path := "/v1/recommendations/" + r["id"].(string)
		for _, verb := range []string{"apply", "dismiss"} {
			applied := d.do(http.StatusOK, http.MethodPost, path+"/"+verb, map[string]any{"reason": "a try"}).object(t)
			if applied["status"] != map[string]string{"apply": "applied", "dismiss": "dismissed"}[verb] {
				t.Errorf("%s %v: %v", verb, r["kind"], applied["status"])
			}
			audit := d.list("/v1/maintenance/audit")[0]
			if audit["action"] != "recommendation."+verb || audit["reason"] != "a try" || audit["actor"] == "" || audit["after"] == nil || !strings.Contains(fmt.Sprint(audit["undo"]), path+"/"+verb) {
				t.Errorf("audit: %v", audit)
			}
			d.do(http.StatusOK, http.MethodPost, path+"/"+verb, map[string]any{"undo": true})
			if after := state(); !reflect.DeepEqual(before, after) {
				t.Errorf("after %s and undo of %v:\n%s\nbefore:\n%s", verb, r["kind"], strings.Join(after, "\n"), strings.Join(before, "\n"))
				return
			}
		}
	}
	want := map[string]int{"strengthen_contract movie finder": 1, "reforge low": 1, "reforge poor": 1, "split_boundary boundary": 1}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("recommended: %v, want %v", kinds, want)
	}
	if len(m.requests()) != 1+4+4+4 {
		t.Errorf("the model was asked %d times: advice must not ask it", len(m.requests()))
	}
	// split_boundary is a person's work: applying it leaves every tool and artifact alone.
	for _, r := range d.recommendations("") {
		if r["kind"] == "split_boundary" {
			d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", nil)
		}
	}
	if after := state(); !reflect.DeepEqual(before[:4], after[:4]) {
		t.Errorf("split_boundary changed something:\n%s", strings.Join(after, "\n"))
	}
	// What changed since cannot be taken back.
	for _, r := range d.recommendations("") {
		path := "/v1/recommendations/" + r["id"].(string) + "/apply"
		if r["role"] == "movie finder" {
			d.do(http.StatusOK, http.MethodPost, path, nil)
			d.do(http.StatusOK, http.MethodPut, "/v1/tools/movie%20finder", k)
			d.do(http.StatusConflict, http.MethodPost, path, map[string]any{"undo": true})
		}
	}
}

// C-28: an applied reforge has the next call forge anew, once, and the evidence starts anew.
func TestReforge(t *testing.T) {
	m := newModel(t, script{"low.m": {program("\treturn map[string]any{\"status\": \"partial\", \"n\": call.Arg(0, \"n\")}, nil"), program("\treturn map[string]any{\"status\": \"success\", \"n\": call.Arg(0, \"n\")}, nil")}})
	d := newDaemon(t, m)
	d.policy(map[string]any{"fixtures_enabled": false}) // what the old one answered is no proof of the new one
	for i := range 4 {
		d.call(d.session("low"), "m", i)
	}
	r := d.recommendations("")[0]
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", nil)
	got := d.call(d.session("low"), "m", 9)
	d.wantValue(got, map[string]any{"status": "success", "n": 9}, "generated")
	if !strings.Contains(got.Program.Trigger, r["id"].(string)) || got.Program.Generation != "gen-2" {
		t.Errorf("got %+v", got.Program)
	}
	d.wantValue(d.call(d.session("low"), "m", 10), map[string]any{"status": "success", "n": 10}, "persisted")
	if l := d.recommendations(""); len(l) != 0 {
		t.Errorf("still recommended: %v", l)
	}
	d.do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", map[string]any{"undo": true})
	d.wantValue(d.call(d.session("low"), "m", 11), map[string]any{"status": "partial", "n": 11}, "persisted") // the old program is back
}
