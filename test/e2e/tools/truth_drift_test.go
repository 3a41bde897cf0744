package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Programs of the weather scenario, before and after the API moved the temperature.
func weather(url, read string) string {
	return rig.Program("\tr, err := call.Fetch(\""+url+
		"?city=\" + call.Arg(0, \"city\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"+
		"\tvar m map[string]any\n\tif err := json.Unmarshal([]byte(r.Body), &m); err != nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", err.Error())\n\t}\n"+read, "encoding/json")
}

const (
	bodyBefore = `{"temp_c": 8}`
	bodyAfter  = `{"temperature": {"celsius": 8}}`

	readsPanic = "\treturn m[\"temp_c\"].(float64), nil"
	readsError = "\tif t, ok := m[\"temp_c\"].(float64); ok {\n\t\treturn t, nil\n\t}\n\treturn nil, recurgent.Fail(\"%s\", \"no temperature\")"
	readsNew   = "\tt, _ := m[\"temperature\"].(map[string]any)\n\tif c, ok := t[\"celsius\"].(float64); ok {\n\t\treturn c, nil\n\t}\n\treturn nil, recurgent.Fail(\"not_found\", \"no temperature\")"
)

// The API moved the value: one call later the tool answers again, with one model request, which was shown what came and
// how it differs.
func TestDriftEndsInOneRepair(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	m := rig.NewModel(t, rig.Script{"weather.now": {weather(api.URL, readsPanic), weather(api.URL, readsNew)}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s := d.Session("weather")
	d.WantValue(d.Call(s, "now", "Oslo"), 8, "generated")
	api.Body(bodyAfter)
	repaired := d.Call(s, "now", "Oslo")
	d.WantValue(repaired, 8, "repaired")
	if e := d.LogOf(repaired); !strings.Contains(string(rig.MustJSON(e["attempt_failures"])), `"adaptive"`) {
		t.Errorf("the failure is not adaptive: %v", e["attempt_failures"])
	}
	q := m.LastQuestion().User
	for _, part := range []string{"<evidence>", "it fetched " + api.URL + "?city=Oslo: status 200", bodyAfter,
		"the shape of the response is now {temperature:{celsius:n,},}; at the last good run it was {temp_c:n,}"} {
		if !strings.Contains(q, part) {
			t.Errorf("the repair is not shown %q:\n%s", part, q)
		}
	}
	d.WantValue(d.Call(s, "now", "Bergen"), 8, "persisted")
	if asked(m, "weather", "now") != 2 {
		t.Errorf("%d requests, want 2", asked(m, "weather", "now"))
	}
}

// The same with an honest error of any type in the place of the panic: after drift_after calls, and over a restart
// between them.
func TestDriftBehindHonestErrors(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	script := rig.Script{}
	types := map[string]int{"not_found": 2, "upstream_changed": 3} // and drift_after
	for kind := range types {
		script["weather."+kind] = []any{weather(api.URL, fmt.Sprintf(readsError, kind)), weather(api.URL, readsNew)}
	}
	m := rig.NewModel(t, script)
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	for kind, after := range types {
		api.Body(bodyBefore)
		d.Policy(object{"drift_after": after})
		s := d.Session("weather")
		d.WantValue(d.Call(s, kind, "Oslo"), 8, "generated")
		api.Body(bodyAfter)
		for range after - 1 {
			d.WantError(d.Call(s, kind, "Oslo"), kind)
		}
		if asked(m, "weather", kind) != 1 {
			t.Errorf("%s: asked before drift_after", kind)
		}
		d.Restart()
		d.WantValue(d.Call(s, kind, "Oslo"), 8, "repaired")
		if asked(m, "weather", kind) != 2 {
			t.Errorf("%s: %d requests, want 2", kind, asked(m, "weather", kind))
		}
	}
}

// The same when the answer is HTML and a CSS class was renamed: the shape stays, the behaviour shows it.
func TestDriftOfHTML(t *testing.T) {
	t.Parallel()
	page := func(class string) string {
		return `<html><body><div class="` + class + `">8</div></body></html>`
	}
	reads := func(url, class string) string {
		return rig.Program("\tr, err := call.Fetch(\""+url+
			"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\t_, rest, ok := strings.Cut(r.Body, `class=\""+class+
			"\">`)\n"+
			"\tif !ok {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"no temperature\")\n\t}\n\ttext, _, _ := strings.Cut(rest, \"<\")\n\treturn text, nil", "strings")
	}
	site := rig.NewSource(t, "")
	site.Answer(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page("temp"))
	})
	m := rig.NewModel(t, rig.Script{"weather.page": {reads(site.URL, "temp"), reads(site.URL, "t2")}})
	d := rig.Start(t, m, "--fetch-allow", site.Host())
	s := d.Session("weather")
	d.WantValue(d.Call(s, "page"), "8", "generated")
	site.Answer(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page("t2"))
	})
	d.WantError(d.Call(s, "page"), "not_found")
	d.WantValue(d.Call(s, "page"), "8", "repaired")
	if q := m.LastQuestion().User; !strings.Contains(q, "t2") ||
		!strings.Contains(q, "at the last good run it was elements body div html; classes temp") {
		t.Errorf("the repair is not shown the page:\n%s", q)
	}
	if asked(m, "weather", "page") != 2 {
		t.Errorf("%d requests, want 2", asked(m, "weather", "page"))
	}
}

// An honest not_found for new inputs is no drift, however often, and an ok call ends the row.
func TestHonestErrorsAreNoDrift(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	byCity := rig.Program("\tr, err := call.Fetch(\""+api.URL+
		"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tvar m map[string]any\n\t_ = json.Unmarshal([]byte(r.Body), &m)\n"+
		"\tif call.Arg(0, \"city\") != \"Oslo\" {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"no such city\")\n\t}\n\tif m[\"closed\"] == true {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"closed\")\n\t}\n\treturn m[\"temp_c\"], nil", "encoding/json")
	m := rig.NewModel(t, rig.Script{"weather.city": {byCity}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s := d.Session("weather")
	d.WantValue(d.Call(s, "city", "Oslo"), 8, "generated")
	for i := range 6 {
		d.WantError(d.Call(s, "city", fmt.Sprint("village ", i)), "not_found")
	}
	for range 3 { // once, then fine again
		api.Body(`{"temp_c": 8, "closed": true}`)
		d.WantError(d.Call(s, "city", "Oslo"), "not_found")
		api.Body(bodyBefore)
		d.WantValue(d.Call(s, "city", "Oslo"), 8, "persisted")
	}
	if asked(m, "weather", "city") != 1 {
		t.Errorf("%d requests, want 1", asked(m, "weather", "city"))
	}
	if a := d.Artifact("weather", "city"); a["adaptive_failure_count"] != 0.0 {
		t.Errorf("%v adaptive failures", a["adaptive_failure_count"])
	}
}

// parse_failed after a good fetch is adaptive from the first call on, and a generation that never answered ok is
// unproven: after two authored errors in a row it is forged again, with the evidence.
func TestUnprovenIsForgedAgain(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	m := rig.NewModel(t, rig.Script{"weather.never": {weather(api.URL,
		"\tt, _ := m[\"temp_c\"].(float64)\n\treturn t, nil")}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s := d.Session("weather")
	put := func(code string) {
		d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("weather", "never"), object{"code": code})
	}
	put(weather(api.URL, "\treturn nil, recurgent.Fail(\"no_data\", \"nothing there\")"))
	d.WantError(d.Call(s, "never", "Oslo"), "no_data")
	d.WantError(d.Call(s, "never", "Oslo"), "no_data")
	got := d.Call(s, "never", "Oslo")
	d.WantValue(got, 8, "repaired")
	if got.Program.Selection.Reason != "unproven" {
		t.Errorf("selected for %s", got.Program.Selection.Reason)
	}
	if q := m.LastQuestion().User; !strings.Contains(q, "an earlier failure ended in no_data: nothing there") ||
		!strings.Contains(q, bodyBefore) || strings.Contains(q, "fails too often") || strings.Contains(q, "degraded") ||
		!strings.Contains(q, "has never answered with a value. Its last 2 answers were errors") {
		t.Errorf("without the evidence:\n%s", q)
	}
	put(weather(api.URL, "\treturn nil, recurgent.Fail(\"parse_failed\", \"what is this\")"))
	got = d.Call(s, "never", "Oslo")
	if e := d.LogOf(got); !strings.Contains(string(rig.MustJSON(e["attempt_failures"])), `"adaptive"`) {
		t.Errorf("parse_failed after a good fetch: %v", e["attempt_failures"])
	}
}

// Recorded effects of a source that has drifted since bind nobody: neither the repair nor, after a restart, a
// correction.
func TestEffectsOfDriftedSourcesBindNobody(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	always9 := weather(api.URL,
		"\tt, _ := m[\"temperature\"].(map[string]any)\n\tc, _ := t[\"celsius\"].(float64)\n\treturn c + 1, nil")
	m := rig.NewModel(t, rig.Script{"weather.now": {weather(api.URL, readsPanic), weather(api.URL, readsNew), always9}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s := d.Session("weather")
	before := d.Call(s, "now", "Oslo")
	verdict(d, before, object{"verdict": "right"})
	path := rig.MethodPath("weather", "now") + "/examples/run"
	ran := func() string {
		results := d.Do(http.StatusOK, http.MethodPost, path, object{}).Object(t)["results"].([]any)
		return results[0].(object)["result"].(string)
	}
	api.Body(`{}`) // what is there now does not matter while the effects are replayed
	if got := ran(); got != "passed" {
		t.Errorf("on its recorded effects the example has %s", got)
	}
	api.Body(bodyAfter)
	d.WantValue(d.Call(s, "now", "Oslo"), 8, "repaired")
	if got := ran(); got != "skipped" {
		t.Errorf("after the drift the example has %s, want skipped", got)
	}
	d.Restart()
	now := d.Call(s, "now", "Bergen")
	if c := verdict(d, now, object{"verdict": "wrong", "expected": 9})["correction"].(object); c["state"] != "adopted" {
		t.Errorf("a correction after the drift: %v", c)
	}
	d.WantValue(d.Call(s, "now", "Bergen"), 9, "persisted")
}
