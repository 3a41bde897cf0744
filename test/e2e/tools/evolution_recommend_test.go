package tools

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Kinds, thresholds and dismissals.
func TestRecommendationsByKind(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"boundary.m": {rig.Program("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"not mine\")")},
		"office.ask": {rig.Program(
			"\to := call.Tool(\"boundary\").Call(\"m\", call.Arg(0, \"n\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")},
		"low.m":  {rig.Program("\treturn map[string]any{\"status\": \"partial\", \"n\": call.Arg(0, \"n\")}, nil")},
		"fine.m": {rig.ProgAdd},
	})
	d := rig.Start(t, m)
	// An authored error of a first call keeps no program; each call asks the model, which answers the same.
	for _, role := range []string{"low", "fine"} {
		s := d.Session(role)
		for i := range 4 {
			d.Call(s, "m", i, 1)
		}
	}
	office := d.Session("office") // it calls boundary, passes the error on, and is not advised about
	for i := range 4 {
		got := d.Call(office, "ask", i)
		if line := d.LogOf(got); got.Outcome.ErrorType != "wrong_tool_boundary" || line["outcome_passed_on"] != true {
			t.Errorf("the call ended in %+v, passed on: %v", got.Outcome, line["outcome_passed_on"])
		}
	}
	kinds := func(query string) map[string]string {
		out := map[string]string{}
		for _, r := range d.Recommendations(query) {
			out[r["role"].(string)] = r["kind"].(string)
		}
		return out
	}
	if got := kinds(""); !reflect.DeepEqual(got, map[string]string{"boundary": "split_boundary", "low": "reforge"}) {
		t.Errorf("recommended: %v", got)
	}
	d.Do(http.StatusOK, http.MethodPatch, "/v1/policy",
		map[string]any{"recommendations": map[string]any{"boundary_referrals": 5}})
	if got := kinds(""); !reflect.DeepEqual(got, map[string]string{"low": "reforge"}) {
		t.Errorf("with another threshold: %v", got)
	}
	id := d.Recommendations("")[0]["id"].(string)
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss",
		map[string]any{"reason": "it is meant so"})
	d.Restart()
	if got := kinds(""); len(got) != 0 {
		t.Errorf("after a dismissal: %v", got)
	}
	if got := kinds("?status=dismissed"); got["low"] != "reforge" {
		t.Errorf("dismissed: %v", got)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/dismiss", map[string]any{"undo": true})
	asked := m.Count("low", "m")
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/apply", nil)
	if a := d.Get("/v1/tools/low/methods/m"); a["force_regenerate"] == nil {
		t.Errorf("a reforge was applied, but nothing is asked for: %v", a["force_regenerate"])
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+id+"/apply", map[string]any{"undo": true})
	d.WantValue(d.Call(d.Session("low"), "m", 1), map[string]any{"status": "partial", "n": 1}, "persisted")
	if n := m.Count("low", "m"); n != asked {
		t.Errorf("the model was asked %d times more after the undo", n-asked)
	}
	d.Do(http.StatusNotFound, http.MethodPost, "/v1/recommendations/rec_none/apply", nil)
}

// A recommendation about calls that bring their own deliverable builds on it and says that theirs wins.
func TestRecommendationKnowsCallersContracts(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak}}))
	s := d.Session("movie finder", map[string]any{"contract": rig.MovieContract})
	for range 4 {
		d.Call(s, "find", "action")
	}
	for _, r := range d.Recommendations("") {
		if r["kind"] != "strengthen_contract" {
			continue
		}
		deliverable := r["proposal"].(map[string]any)["deliverable"].(map[string]any)
		if r["caller_contracts"] != 4.0 || !rig.Equal([]any{"status", "movies"}, deliverable["required"]) {
			t.Errorf("got %v", r)
		}
		return
	}
	t.Error("nothing is recommended")
}

// The baseline scenarios with local sites: three news sites, one with nothing, one that is down, and a control
// without an open world. docs/baselines holds these counts.
func TestNewsScenario(t *testing.T) {
	t.Parallel()
	google, yahoo, nyt := rig.NewSource(t, rig.NewsBody("G1", "G2")), rig.NewSource(t, rig.NewsBody()),
		rig.NewSource(t, rig.NewsBody("N1"))
	m := rig.NewModel(t, rig.Script{"news.google": {rig.ProgHeadlines(google.URL)},
		"news.yahoo": {rig.ProgHeadlines(yahoo.URL)}, "news.nyt": {rig.ProgHeadlines(nyt.URL)},
		"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m, "--fetch-allow", google.Host()+","+yahoo.Host()+","+nyt.Host())
	k := map[string]any{"purpose": "headlines", "deliverable": map[string]any{"type": "object",
		"required": []any{"status", "headlines"}}}
	s := d.Session("news", map[string]any{"contract": k})
	for range 4 {
		d.WantValue(d.Call(s, "google"), map[string]any{"status": "success", "headlines": []any{"G1", "G2"}}, "")
		d.WantValue(d.Call(s, "yahoo"), map[string]any{"status": "success", "headlines": []any{}}, "")
		d.WantValue(d.Call(s, "nyt"), map[string]any{"status": "success", "headlines": []any{"N1"}}, "")
		d.WantValue(d.Call(d.Session("calculator"), "add", 2, 3), 5, "")
	}
	nyt.Status(http.StatusServiceUnavailable)
	for range 3 {
		if got := d.Call(s, "nyt"); got.Outcome.OK || !got.Outcome.Authored {
			t.Errorf("a site that is down: %+v", got.Outcome)
		}
	}
	nyt.Body(rig.NewsBody("N1"))
	d.WantValue(d.Call(s, "nyt"), map[string]any{"status": "success", "headlines": []any{"N1"}}, "persisted")

	total := d.Get("/v1/reports/trends?window=1h")["total"].(map[string]any)
	for name, want := range map[string]any{"calls": 20, "errors": 3, "weak_successes": 4, "corrections": 3 + 2 + 1,
		"failure_class": map[string]any{"extrinsic": 3}, "program_source": map[string]any{"generated": 4,
			"persisted": 16}} {
		if !rig.Equal(want, total[name]) {
			t.Errorf("%s: got %v, want %v", name, total[name], want)
		}
	}
	t.Logf("counts: %v", total)
	if n := len(m.Questions()); n != 4 {
		t.Errorf("the model was asked %d times, want once a method", n)
	}
	got := d.Recommendations("")
	if len(got) != 1 || got[0]["kind"] != "strengthen_contract" || got[0]["method"] != "yahoo" {
		t.Errorf("recommended: %v", got)
	}
	for _, c := range d.List("/v1/calls?role=calculator") {
		if c["weak_success"] != false || c["user_correction_detected"] != false {
			t.Errorf("the control: %v", c)
		}
	}
}
