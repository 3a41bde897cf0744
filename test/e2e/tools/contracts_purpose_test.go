package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const (
	toFahrenheit = "celsius to fahrenheit"
	toKelvin     = "celsius to kelvin"
)

// degrees are programs that answer 0 with these numbers, each by an addition, so that no text of one stands in
// another's.
var (
	progFahrenheit = rig.Program("\tc, _ := call.Arg(0, \"celsius\").(float64)\n\treturn c*9/5 + 32, nil")
	progKelvin     = rig.Program("\tc, _ := call.Arg(0, \"celsius\").(float64)\n\treturn c + 273.15, nil")
	progRankine    = rig.Program("\tc, _ := call.Arg(0, \"celsius\").(float64)\n\treturn (c + 273.15) * 9 / 5, nil")
)

// unchanged is the answer that the program is kept.
func unchanged() openaitest.Reply { return submits(object{"unchanged": true}) }

// submits is a call of submit_program with these arguments.
func submits(arguments object) openaitest.Reply {
	call := openaitest.ToolCall("submit_program", string(rig.MustJSON(arguments)))
	return openaitest.Reply{Message: map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}}
}

// registers has a person say what the role is for.
func registers(d *rig.Daemon, contract object) {
	d.T.Helper()
	r := d.Send(http.MethodPut, "/v1/tools/units", rig.Encode(d.T, contract), nil)
	if r.Status != http.StatusOK && r.Status != http.StatusCreated {
		d.T.Fatalf("PUT: %d %s", r.Status, r.Body)
	}
}

// warm starts a daemon whose units.convert was forged for Fahrenheit and registered so; the model answers what comes
// then in turn.
func warm(t *testing.T, answers ...any) (*rig.Daemon, *rig.Model, string) {
	t.Helper()
	m := rig.NewModel(t, rig.Script{"units.convert": append([]any{progFahrenheit}, answers...)})
	d := rig.Start(t, m)
	registers(d, object{"purpose": toFahrenheit})
	s := d.Session("units")
	d.WantValue(d.Call(s, "convert", 0), 32, "generated")
	return d, m, s
}

// wantAsked checks how many requests for a program the model has got so far.
func wantAsked(t *testing.T, m *rig.Model, n int) {
	t.Helper()
	if got := m.Count("units", ""); got != n {
		t.Errorf("%d requests, want %d", got, n)
	}
}

// wantStale checks that a stored program answered, and that the reply, the log and the method say that it may not do
// what it is for.
func wantStale(d *rig.Daemon, got rig.Reply, value any) {
	d.T.Helper()
	d.WantValue(got, value, "persisted")
	if got.Program.Stale != "purpose" || d.LogOf(got)["program_stale"] != "purpose" {
		d.T.Errorf("the program is %+v, the log has %v", got.Program, d.LogOf(got)["program_stale"])
	}
	if a := d.Artifact(got.Role, got.Method); a["stale"] != "purpose" {
		d.T.Errorf("the method shows stale as %v", a["stale"])
	}
}

// wantFresh checks that a stored program answered without a request, and that nothing says that it is stale.
func wantFresh(d *rig.Daemon, got rig.Reply, value any, generation string) {
	d.T.Helper()
	d.WantValue(got, value, "persisted")
	if got.Program.Stale != "" || got.Usage.ModelRequests != 0 || got.Program.Generation != generation {
		d.T.Errorf("%d requests, %+v, want a fresh %s", got.Usage.ModelRequests, got.Program, generation)
	}
	if a := d.Artifact(got.Role, got.Method); a["stale"] != nil {
		d.T.Errorf("the method shows stale as %v", a["stale"])
	}
}

// 001:167, 355: after a person's change of the purpose the next call asks once, with the program and what it was for,
// and the new program serves. What the one before answered is no test of it. Set back, the program of before serves
// without a request.
func TestSeed001Line167PurposeChanged(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	d.WantValue(d.Call(s, "convert", 100), 212, "persisted")
	registers(d, object{"purpose": toKelvin})
	if a := d.Artifact("units", "convert"); a["stale"] != "purpose" {
		t.Errorf("before the next call the method shows stale as %v", a["stale"])
	}
	if tool := d.Get("/v1/tools/units"); tool["health"].(object)["stale"] != 1.0 {
		t.Errorf("the tool's health: %v", tool["health"])
	}
	if tools := d.List("/v1/tools"); tools[0]["health"].(object)["stale"] != 1.0 {
		t.Errorf("the list of tools has %v", tools[0]["health"])
	}
	got := d.Call(s, "convert", 0)
	d.WantValue(got, 273.15, "generated")
	if p := got.Program; p.Stale != "" || p.Selection.Decision != "forge" || p.Selection.Reason != "purpose_changed" ||
		p.Trigger != "regenerate:purpose_changed" || p.Generation != "gen-2" {
		t.Errorf("the program is %+v", p)
	}
	wantAsked(t, m, 2)
	asked := m.LastQuestion()
	for _, part := range []string{"*9/5 + 32", "purpose: " + toFahrenheit, "purpose: " + toKelvin, "unchanged"} {
		if !strings.Contains(asked.User, part) {
			t.Errorf("the request does not show %q:\n%s", part, asked.User)
		}
	}
	if offered := string(rig.MustJSON(m.Requests()[1].Body["tools"])); !strings.Contains(offered, `"unchanged"`) {
		t.Errorf("the request offers %s", offered)
	}
	if offered := string(rig.MustJSON(m.Requests()[0].Body["tools"])); strings.Contains(offered, `"unchanged"`) {
		t.Errorf("an ordinary request offers %s", offered)
	}
	wantFresh(d, d.Call(s, "convert", 100), 373.15, "gen-2")
	if g := historyGeneration(d.Artifact("units", "convert"),
		"gen-2"); g["parent_id"] != "gen-1" || g["changed_answers"] != nil || g["fixture_count"] != 2.0 {
		t.Errorf("the new generation: %v", g)
	}
	registers(d, object{"purpose": toFahrenheit})
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": toKelvin})
	wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
	wantAsked(t, m, 2)
	operate(d, "units", "convert", "rollback", object{"generation": "gen-1"})
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1") // a person said so
}

// The model may say that the program does what the purpose now says: it answers that call, and no further one asks,
// after a restart neither. Acceptance and failure policy count like the purpose.
func TestPurposeChangedProgramKept(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, unchanged(), submits(object{"unchanged": "true", "code": ""}),
		submits(object{"unchanged": true, "code": "// as it was"}))
	for i, contract := range []object{
		{"purpose": "degrees celsius to degrees fahrenheit"},
		{"purpose": "degrees celsius to degrees fahrenheit", "acceptance": list(object{"assert": "a number"})},
		{"purpose": "degrees celsius to degrees fahrenheit", "acceptance": list(object{"assert": "a number"}),
			"failure_policy": object{"on_error": "return_error"}},
	} {
		registers(d, contract)
		got := d.Call(s, "convert", 0)
		d.WantValue(got, 32, "persisted")
		if p := got.Program; p.Stale != "" || p.Generation != "gen-1" || p.Selection.Reason != "purpose_checked" ||
			got.Usage.ModelRequests != 1 {
			t.Errorf("%d: %+v with %d requests", i, p, got.Usage.ModelRequests)
		}
		a := d.Artifact("units", "convert")
		if a["purpose_checked_at"] == nil || len(a["history"].([]any)) != 1 || a["success_count"] != float64(2+2*i) {
			t.Errorf("%d: checked at %v, %d generations, %v successes", i, a["purpose_checked_at"],
				len(a["history"].([]any)), a["success_count"])
		}
		wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
		wantAsked(t, m, i+2)
	}
	if asked := m.LastQuestion().User; !strings.Contains(asked, "failure_policy (prose)") ||
		!strings.Contains(asked, "purpose: degrees celsius to degrees fahrenheit\nacceptance (prose): [{\"assert\":\"a number\"}]\n</earlier_purpose>") {
		t.Errorf("the last request does not show what the program was checked for last:\n%s", asked)
	}
	d.Restart()
	s = d.Session("units")
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": toFahrenheit}) // for which it was written
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	wantAsked(t, m, 4)
}

// Nothing is asked where nothing of the purpose has changed: the same again, white space, another form of the same
// JSON, a changed deliverable that the program keeps to, and what a session or a call brings of its own.
func TestPurposeNotChanged(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin}})
	d := rig.Start(t, m)
	registers(d, object{"purpose": toFahrenheit, "acceptance": list(object{"assert": "a number", "why": 1})})
	s := d.Session("units")
	d.WantValue(d.Call(s, "convert", 0), 32, "generated")
	for _, acceptance := range []string{`[{"assert":"a number","why":1}]`,
		`[ {"why": 1.0, "assert": " a  number "} ]`} {
		r := d.Send(http.MethodPut, "/v1/tools/units",
			[]byte(`{"purpose": "  celsius\tto   fahrenheit\n", "failure_policy": {}, "acceptance": `+acceptance+`}`),
			nil)
		if r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	}
	own := d.Session("units", object{"contract": object{"purpose": toKelvin}})
	wantFresh(d, d.Call(own, "convert", 0), 32, "gen-1")
	got := d.Invoke(s, object{"method": "convert", "args": list(0), "contract": object{"purpose": "what is warm?"}})
	wantFresh(d, got, 32, "gen-1")
	registers(d, object{"purpose": toFahrenheit, "acceptance": list(object{"assert": "a number", "why": 1}),
		"deliverable": object{"type": "number", "description": "degrees"}})
	repaired := d.Call(s, "convert", 0)
	if repaired.Program.Selection.Reason != "contract_changed" || repaired.Program.Selection.Decision != "repair" {
		t.Errorf("a changed deliverable: %+v", repaired.Program.Selection)
	}
}

// A program for a purpose that one session brought is as good as before for that session, and is looked at for the
// others when a person registers another one. The session's own words are no change of a person's.
func TestPurposeOfASession(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin}})
	d := rig.Start(t, m)
	first := d.Session("units", object{"contract": object{"purpose": toFahrenheit}})
	d.WantValue(d.Call(first, "convert", 0), 32, "generated")
	registers(d, object{"purpose": toFahrenheit}) // the same words, now registered
	s := d.Session("units")
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": toKelvin})
	if got := d.Call(first, "convert", 0); got.Outcome.Value != 32.0 || got.Program.Stale != "" ||
		got.Usage.ModelRequests != 0 {
		t.Errorf("the session with words of its own: %+v", got)
	}
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	if asked := m.LastQuestion().User; !strings.Contains(asked, "purpose: "+toFahrenheit) {
		t.Errorf("the request does not show the purpose of before:\n%s", asked)
	}
	wantAsked(t, m, 2)
}

// The purpose of one method may change alone, and that of the role reaches methods without words of their own.
func TestPurposeOfAMethod(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin, progRankine},
		"units.other": {progFahrenheit, unchanged()}})
	d := rig.Start(t, m)
	registers(d, object{"purpose": "conversions"})
	s := d.Session("units")
	d.WantValue(d.Call(s, "convert", 0), 32, "generated")
	d.WantValue(d.Call(s, "other", 0), 32, "generated")
	registers(d, object{"purpose": "conversions", "methods": object{"convert": object{"purpose": toKelvin}}})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	wantFresh(d, d.Call(s, "other", 0), 32, "gen-1")
	registers(d, object{"purpose": "all conversions", "methods": object{"convert": object{"purpose": toKelvin}}})
	wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
	if got := d.Call(s, "other", 0); got.Program.Selection.Reason != "purpose_checked" {
		t.Errorf("the other method: %+v", got.Program.Selection)
	}
	registers(d, object{"purpose": "all conversions",
		"methods": object{"convert": object{"purpose": "celsius to rankine"}}})
	d.WantValue(d.Call(s, "convert", 0), 491.67, "generated")
	wantAsked(t, m, 5)
}
