package tools

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// wantCorrection checks that two calls are linked both ways by call id, in their own entries and in the list.
func wantReask(d *rig.Daemon, first, second rig.Reply, signal string) {
	d.T.Helper()
	a, b := d.Get("/v1/calls/"+first.CallID), d.Get("/v1/calls/"+second.CallID)
	if b["user_correction_detected"] != true || b["user_correction_signal"] != signal ||
		b["user_correction_reference_call_id"] != first.CallID {
		d.T.Errorf("the re-ask: %v %v %v, want %s of %s", b["user_correction_detected"], b["user_correction_signal"],
			b["user_correction_reference_call_id"], signal, first.CallID)
	}
	if a["corrected_by"] != second.CallID {
		d.T.Errorf("the corrected call is corrected by %v, want %s", a["corrected_by"], second.CallID)
	}
	for _, e := range d.List("/v1/calls?session_id=" + first.SessionID) {
		if e["call_id"] == first.CallID && e["corrected_by"] != second.CallID {
			d.T.Errorf("the list: corrected by %v, want %s", e["corrected_by"], second.CallID)
		}
	}
}

// A question asked again is a correction on cold and on warm calls, of weak values and of errors, in the same and in
// similar words; both calls name each other, also after the daemon was killed; and a correction that spans a restart is
// one.
func TestCorrections(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"movie finder.find": {rig.ProgMoviesWeak}, "closed.m": {rig.ProgFails}, "calculator.add": {rig.ProgAdd},
		"chatter.ask": {rig.ProgGiven},
	})
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", rig.MovieContract)
	s := d.Session("movie finder")
	cold := d.Call(s, "find", "good action movies of the nineties")
	warm := d.Call(s, "find", "Good action movies of the nineties!")
	again := d.Call(s, "find", "show me good action movies of the nineties") // six words of eight
	other := d.Call(s, "find", "weather in Paris")
	fine := d.Call(s, "find", "drama")
	same := d.Call(s, "find", "drama") // of a good answer: used again, not corrected
	failed := d.Call(d.Session("closed"), "m", 1)
	sum := d.Session("calculator")
	d.Call(sum, "add", 1, 2)
	summed := d.Call(sum, "add", 1, 2)
	chat := d.Session("chatter")
	asked := d.Call(chat, "ask", "what are the best movies of this year")
	// a method that takes free text, of a good answer
	rephrased := d.Call(chat, "ask", "what were the best movies of this year")
	retried := d.Call(failed.SessionID, "m", 1)
	check := func() {
		d.T.Helper()
		wantReask(d, cold, warm, "temporal_reask")
		wantReask(d, warm, again, "temporal_reask")
		wantReask(d, failed, retried, "temporal_reask")
		wantReask(d, asked, rephrased, "temporal_reask_dispatch")
		for _, r := range []rig.Reply{other, fine, same, summed} {
			if e := d.LogOf(r); e["user_correction_detected"] != false || e["corrected_by"] != nil {
				t.Errorf("%s.%s: %v %v", r.Role, r.Method, e["user_correction_detected"], e["corrected_by"])
			}
		}
	}
	check()
	d.Stop(syscall.SIGKILL)
	d.Start()
	check()
	spanning := d.Call(failed.SessionID, "m", 1)
	wantReask(d, retried, spanning, "temporal_reask")
	if e := d.LogOf(d.Call(s, "find", "drama")); e["user_correction_detected"] != false {
		t.Error("a good answer, asked for again after a restart, is called a correction")
	}
	// The pattern memory knows the pairs too, whatever the daemon has been through.
	events, _ := d.Get("/v1/patterns/movie%20finder")["events"].([]any)
	pairs := map[string]any{}
	for _, e := range events {
		o := e.(map[string]any)
		pairs[o["call_id"].(string)] = o["corrected"]
	}
	if pairs[cold.CallID] != warm.CallID || pairs[warm.CallID] != again.CallID || pairs[again.CallID] != nil {
		t.Errorf("pattern memory: %v", pairs)
	}
	// The window is policy.
	d.Policy(map[string]any{"user_correction": map[string]any{"window_seconds": 0}})
	if e := d.LogOf(d.Call(failed.SessionID, "m", 1)); e["user_correction_detected"] != false {
		t.Error("a window of 0 switches the detector off")
	}
}

// Weak successes and corrections by reason in /metrics, and the gauge of open recommendations, which follows
// decisions about them.
func TestEvolutionMetrics(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak},
		"word.m": {rig.Program("\treturn map[string]any{\"status\": \"partial\"}, nil")},
		"own.m":  {rig.Program("\treturn map[string]any{\"status\": \"meh\"}, nil")}})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"weak_success": map[string]any{"statuses": []any{"success_no_parse", "partial", "meh"}}})
	s := d.Session("movie finder", map[string]any{"contract": rig.MovieContract})
	for range 4 {
		d.Call(s, "find", "action")
	}
	for i := range 2 {
		d.Call(d.Session("word"), "m", i)
	}
	d.Call(d.Session("own"), "m")
	for series, want := range map[string]float64{
		`recurgent_weak_successes_total{reason="success_no_parse"}`: 4,
		`recurgent_weak_successes_total{reason="empty_array"}`:      4,
		`recurgent_weak_successes_total{reason="partial"}`:          2,
		// an operator's own word: labels are a closed set
		`recurgent_weak_successes_total{reason="other"}`:                1,
		`recurgent_user_corrections_total{signal="temporal_reask"}`:     3,
		`recurgent_contract_checks_total{result="ok"}`:                  4,
		`recurgent_contract_violations_total{mismatch="type_mismatch"}`: 0,
	} {
		if got := d.Metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if open := d.Highest("recurgent_recommendations_open"); open != 1 {
		t.Errorf("%v recommendations are counted as open, want 1", open)
	}
	id := d.Recommendations("")[0]["id"].(string)
	for _, step := range []struct {
		body map[string]any
		want float64
	}{{map[string]any{"reason": "not now"}, 0}, {map[string]any{"undo": true}, 1}} {
		d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss", step.body)
		rig.Until(t, fmt.Sprintf("%v open recommendations", step.want),
			func() bool { return d.Highest("recurgent_recommendations_open") == step.want })
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

// A recommendation does nothing by itself. Applied by a person it does what it proposes and no more, is in the audit
// trail, and one call takes it back: the registry, the artifact and the list are as they were, to the byte.
func TestAdviceIsTakenBackExactly(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"movie finder.find": {rig.ProgMoviesWeak, rig.ProgMoviesFull},
		"low.m":             {rig.Program("\treturn map[string]any{\"status\": \"partial\"}, nil")},
		"boundary.m":        {rig.Program("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"not mine\")")},
		"poor.m":            {rig.Program("\treturn nil, recurgent.Fail(\"low_utility\", \"nothing useful\")")},
	})
	d := rig.Start(t, m)
	k := map[string]any{"purpose": "find movies",
		"deliverable": rig.ParseJSON(`{"required": ["status", "movies"], "type": "object"}`),
		"methods":     map[string]any{"find": map[string]any{"purpose": "find <some> movies"}}}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", k)
	for i := range 4 {
		d.Call(d.Session("movie finder"), "find", "action")
		d.Call(d.Session("low"), "m", i)
		d.Call(d.Session("boundary"), "m", i)
		d.Call(d.Session("poor"), "m", i)
	}
	state := func() []string {
		var out []string
		for _, path := range []string{"/v1/tools/movie%20finder", "/v1/tools/low",
			"/v1/tools/movie%20finder/methods/find", "/v1/tools/low/methods/m"} {
			r := d.Send(http.MethodGet, path, nil, nil)
			out = append(out, path+" "+string(rig.MustJSON(without(r.Object(t), "revision", "updated_at"))))
		}
		return append(out, string(d.Do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil).Body))
	}
	d.Restart() // everything is in files
	stored := tools(d)
	before := state()
	if !reflect.DeepEqual(stored, tools(d)) {
		t.Error("an evaluation changed files")
	}
	kinds := map[string]int{}
	for _, r := range d.Recommendations("") {
		kinds[r["kind"].(string)+" "+r["role"].(string)]++
		path := "/v1/recommendations/" + r["id"].(string)
		for _, verb := range []string{"apply", "dismiss"} {
			applied := d.Do(http.StatusOK, http.MethodPost, path+"/"+verb, map[string]any{"reason": "a try"}).Object(t)
			if applied["status"] != map[string]string{"apply": "applied", "dismiss": "dismissed"}[verb] {
				t.Errorf("%s %v: %v", verb, r["kind"], applied["status"])
			}
			audit := d.List("/v1/maintenance/audit")[0]
			if audit["action"] != "recommendation."+verb || audit["reason"] != "a try" || audit["actor"] == "" ||
				audit["after"] == nil || !strings.Contains(fmt.Sprint(audit["undo"]), path+"/"+verb) {
				t.Errorf("audit: %v", audit)
			}
			d.Do(http.StatusOK, http.MethodPost, path+"/"+verb, map[string]any{"undo": true})
			if after := state(); !reflect.DeepEqual(before, after) {
				t.Errorf("after %s and undo of %v:\n%s\nbefore:\n%s", verb, r["kind"], strings.Join(after, "\n"),
					strings.Join(before, "\n"))
				return
			}
		}
	}
	want := map[string]int{"strengthen_contract movie finder": 1, "reforge low": 1, "reforge poor": 1,
		"split_boundary boundary": 1}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("recommended: %v, want %v", kinds, want)
	}
	if len(m.Questions()) != 1+4+4+4 {
		t.Errorf("the model was asked %d times: advice must not ask it", len(m.Questions()))
	}
	// split_boundary is a person's work: applying it leaves every tool and artifact alone.
	for _, r := range d.Recommendations("") {
		if r["kind"] == "split_boundary" {
			d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", nil)
		}
	}
	if after := state(); !reflect.DeepEqual(before[:4], after[:4]) {
		t.Errorf("split_boundary changed something:\n%s", strings.Join(after, "\n"))
	}
	// What changed since cannot be taken back.
	for _, r := range d.Recommendations("") {
		path := "/v1/recommendations/" + r["id"].(string) + "/apply"
		if r["role"] == "movie finder" {
			d.Do(http.StatusOK, http.MethodPost, path, nil)
			d.Do(http.StatusOK, http.MethodPut, "/v1/tools/movie%20finder", k)
			d.Do(http.StatusConflict, http.MethodPost, path, map[string]any{"undo": true})
		}
	}
}

// An applied reforge has the next call forge anew, once, and the evidence starts anew.
func TestReforge(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"low.m": {rig.Program(
		"\treturn map[string]any{\"status\": \"partial\", \"n\": call.Arg(0, \"n\")}, nil"),
		rig.Program("\treturn map[string]any{\"status\": \"success\", \"n\": call.Arg(0, \"n\")}, nil")}})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"fixtures_enabled": false}) // what the old one answered is no proof of the new one
	for i := range 4 {
		d.Call(d.Session("low"), "m", i)
	}
	r := d.Recommendations("")[0]
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", nil)
	got := d.Call(d.Session("low"), "m", 9)
	d.WantValue(got, map[string]any{"status": "success", "n": 9}, "generated")
	if !strings.Contains(got.Program.Trigger, r["id"].(string)) || got.Program.Generation != "gen-2" {
		t.Errorf("got %+v", got.Program)
	}
	d.WantValue(d.Call(d.Session("low"), "m", 10), map[string]any{"status": "success", "n": 10}, "persisted")
	if l := d.Recommendations(""); len(l) != 0 {
		t.Errorf("still recommended: %v", l)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", map[string]any{"undo": true})
	// the old program is back
	d.WantValue(d.Call(d.Session("low"), "m", 11), map[string]any{"status": "partial", "n": 11}, "persisted")
}
