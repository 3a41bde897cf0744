package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A hopeless method costs its attempts once; then calls get the type of the last error at once, when to come back, and
// nothing of another caller's text. force_generation overrides the delay, and so does a person's operation.
func TestHopelessMethodBacksOff(t *testing.T) {
	t.Parallel()
	boom := rig.Program("\tpanic(\"cannot do \" + call.Arg(0, \"x\").(string))")
	m := rig.NewModel(t, rig.Script{"r.m": {boom}})
	d, ahead := rig.StartAhead(t, m)
	d.Policy(delaysOfHours)
	d = d.One() // another replica would try once, too
	d.WantError(d.Call(d.Session("r"), "m", "the secret of the first"), "execution")
	n := asked(m, "r", "m")
	if n > 3 {
		t.Errorf("the first call cost %d requests", n)
	}
	for range 11 {
		got := d.Call(d.Session("r"), "m", "other")
		d.WantError(got, "execution")
		after, _ := got.Outcome.Metadata["retry_after_ms"].(float64)
		if after <= 0 || after > 3_600_000 || strings.Contains(string(rig.MustJSON(got)), "secret of the first") {
			t.Fatalf("got %+v", got.Outcome)
		}
	}
	if asked(m, "r", "m") != n {
		t.Errorf("twelve calls cost %d requests, the first %d", asked(m, "r", "m"), n)
	}
	d.Policy(object{"force_generation": true})
	d.Call(d.Session("r"), "m", "other")
	if asked(m, "r", "m") == n {
		t.Error("force_generation does not override the delay")
	}
	d.Policy(object{"force_generation": false})
	ahead("1h1s")
	n = asked(m, "r", "m")
	d.Call(d.Session("r"), "m", "other")
	if asked(m, "r", "m") == n {
		t.Error("it is not tried again after the delay")
	}
	got := d.Call(d.Session("r"), "m", "other")
	if after, _ := got.Outcome.Metadata["retry_after_ms"].(float64); after <= 3_600_000 {
		t.Errorf("the delay did not double: %v", after)
	}
	if q := m.LastQuestion().User; !strings.Contains(q, "discarded") {
		t.Errorf("the next attempt does not get the last one:\n%s", q)
	}
}

// A method whose first programs give only honest errors costs one request for each delay, not one for each call. The
// error of one input is never the answer to another, and the first input that the program can answer gets its value.
func TestHonestErrorsBackOff(t *testing.T) {
	t.Parallel()
	find := rig.Program("\tif call.Arg(0, \"name\") != \"ada\" {\n\t\treturn nil, recurgent.Fail(\"not_found\", fmt.Sprint(\"no \", call.Arg(0, \"name\")))\n\t}\n\treturn 1815, nil", "fmt")
	m := rig.NewModel(t, rig.Script{"people.born": {find}})
	d, ahead := rig.StartAhead(t, m)
	d.Policy(delaysOfHours)
	s := d.Session("people")
	for i := range 12 {
		got := d.Call(s, "born", fmt.Sprint("nobody ", i))
		d.WantError(got, "not_found")
		if !got.Outcome.Authored || got.Outcome.ErrorMessage != fmt.Sprint("no nobody ", i) {
			t.Errorf("call %d: %+v", i, got.Outcome)
		}
	}
	if asked(m, "people", "born") != 1 {
		t.Errorf("twelve calls cost %d requests", asked(m, "people", "born"))
	}
	d.Do(http.StatusNotFound, http.MethodGet, rig.MethodPath("people", "born"), nil)
	ahead("1h1s")
	d.WantError(d.Call(s, "born", "nobody"), "not_found")
	if asked(m, "people", "born") != 2 || !strings.Contains(m.LastQuestion().User, "not_found") {
		t.Errorf("after the delay %d requests were sent, the last is\n%s", asked(m, "people", "born"),
			m.LastQuestion().User)
	}
	d.WantValue(d.Call(s, "born", "ada"), 1815, "generated")
	d.WantValue(d.Call(s, "born", "ada"), 1815, "persisted")
	if asked(m, "people", "born") != 2 {
		t.Errorf("%d requests, want 2", asked(m, "people", "born"))
	}
}

// One bad call by any client never disables an approved tool, and approval is of a generation: the approved one answers
// while newer ones wait, and a rollback keeps approval as it was.
func TestApprovalIsOfAGeneration(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	operate(d, "r", "m", "approve", object{})
	d.Policy(object{"approval_required": true})
	for range 3 {
		d.WantError(d.Call(d.Session("r"), "m", "bad"), "execution")
		got := d.Call(s, "m", 2)
		d.WantValue(got, 2, "persisted")
		if got.Program.Generation != "gen-1" {
			t.Errorf("%s answers, want the approved gen-1", got.Program.Generation)
		}
	}
	if a := d.Artifact("r", "m"); a["current_generation"] != "gen-2" ||
		keptGeneration(d, "r", "m", "gen-1")["approved"] != true ||
		keptGeneration(d, "r", "m", "gen-2")["approved"] == true {
		t.Errorf("the newer one should wait: %v", a["current_generation"])
	}
	operate(d, "r", "m", "rollback", object{})
	d.WantValue(d.Call(s, "m", 3), 3, "persisted")
	operate(d, "r", "m", "rollback", object{"generation": "gen-2"})
	if got := d.Call(s, "m", 3); got.Program.Generation != "gen-1" {
		t.Errorf("rolling back approved %s", got.Program.Generation)
	}
	operate(d, "r", "m", "approve", object{"generation": "gen-2"})
	d.WantValue(d.Call(s, "m", "bad"), "fixed", "persisted")
}

// With approval required a regeneration and a correction wait for a person, proved beforehand; the approved program
// goes on.
func TestWhatPeopleAskForWaitsForApproval(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax80, progTax70}, "tax.anew": {progTax60, progTax70}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	d.Call(s, "anew", 1000)
	for _, method := range []string{"net", "anew"} {
		operate(d, "tax", method, "approve", object{})
	}
	d.Policy(object{"approval_required": true})
	if c := verdict(d, wrong, object{"verdict": "wrong",
		"expected": 700})["correction"].(object); c["state"] != "awaiting_approval" || c["generation"] != "gen-2" {
		t.Errorf("the correction: %v", c)
	}
	if asked(m, "tax", "net") != 3 {
		t.Errorf("%d requests: what does not hold the example was kept", asked(m, "tax", "net"))
	}
	d.WantValue(d.Call(s, "net", 1000), 600, "persisted")
	operate(d, "tax", "net", "approve", object{"generation": "gen-2"})
	d.WantValue(d.Call(s, "net", 1000), 700, "persisted")
	wantCorrection(d, "tax", "net", "adopted")
	operate(d, "tax", "anew", "regenerate", object{"reason": "more"})
	for range 2 {
		got := d.Call(s, "anew", 2000)
		d.WantValue(got, 1200, "persisted")
		if got.Program.Generation != "gen-1" {
			t.Errorf("%s is said to have answered", got.Program.Generation)
		}
	}
	if asked(m, "tax", "anew") != 2 {
		t.Errorf("%d requests for one regeneration", asked(m, "tax", "anew"))
	}
	operate(d, "tax", "anew", "approve", object{"generation": "gen-2"})
	d.WantValue(d.Call(s, "anew", 2000), 1400, "persisted")
}

// A person's operation may break examples, and says which: rollback, PUT of code, and approval of an older generation.
func TestOperationsListBrokenExamples(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70}})
	d := rig.Start(t, m)
	wrong := d.Call(d.Session("tax"), "net", 1000)
	id := verdict(d, wrong, object{"verdict": "wrong", "expected": 700})["example_id"]
	want := func(what string, a object) {
		t.Helper()
		if !rig.Equal(list(id), a["broken_examples"]) {
			t.Errorf("%s: broken examples %v, want %v", what, a["broken_examples"], id)
		}
	}
	want("rollback", operate(d, "tax", "net", "rollback", object{}))
	d.WantValue(d.Call(wrong.SessionID, "net", 1000), 600, "persisted")
	want("code", d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("tax", "net"), object{"code": progTax80}).Object(t))
	want("approval", operate(d, "tax", "net", "approve", object{}))
	if a := operate(d, "tax", "net", "rollback", object{"generation": "gen-2"}); a["broken_examples"] != nil {
		t.Errorf("broken by the corrected program: %v", a["broken_examples"])
	}
}

// With reads disabled, or outside the canary roles, a program answers its own call and is kept as a candidate, but
// displaces nothing; a rollback finds what served before.
func TestSwitchesAndCanaryDisplaceNothing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	d.Call(s, "net", 1000)
	for _, patch := range []object{{"artifact_read_roles": list("other")},
		{"artifact_read_roles": list(), "artifact_read_enabled": false}} {
		d.Policy(patch)
		for range 4 {
			got := d.Call(s, "net", 10)
			if !got.Outcome.OK || got.Program.Source != "generated" {
				t.Errorf("%v: got %+v", patch, got)
			}
		}
	}
	d.Policy(object{"artifact_read_enabled": true})
	got := d.Call(s, "net", 1000)
	d.WantValue(got, 600, "persisted")
	if got.Program.Generation != "gen-1" {
		t.Errorf("%s serves, want gen-1", got.Program.Generation)
	}
	// Several programs later the one before is there.
	for i := range 3 {
		operate(d, "tax", "net", "regenerate", object{"reason": "again"})
		before := d.Artifact("tax", "net")["current_generation"]
		d.Call(s, "net", 100+i)
		if a := operate(d, "tax", "net", "rollback", object{}); a["current_generation"] != before {
			t.Errorf("rolled back to %v, want %v", a["current_generation"], before)
		}
	}
}

// A program that is forged under a switch is kept beside the serving one only if it answers what is recorded as that
// did. Its answer goes out in any case.
func TestProgramsUnderSwitchesAreKeptIfTheyReproduce(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]object{"canary": {"artifact_read_roles": list("other")},
		"reads": {"artifact_read_enabled": false}} {
		m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70, progTax60, progTax70}})
		d := rig.Start(t, m)
		s := d.Session("tax")
		d.Call(s, "net", 1000)
		d.Policy(patch)
		d.WantValue(d.Call(s, "net", 10), 7, "generated")
		if q := m.LastQuestion(); asked(m, "tax", "net") != 2 || q.Kind != "forge" || strings.Contains(q.User, "0.6") ||
			strings.Contains(q.User, "gross") {
			t.Errorf("%s: %d requests, the last a %s:\n%s", name, asked(m, "tax", "net"), q.Kind, q.User)
		}
		d.WantValue(d.Call(s, "net", 10), 6, "generated")
		if a := d.Artifact("tax", "net"); a["unkept_calls"] != 1.0 || len(a["history"].([]any)) != 2 {
			t.Errorf("%s: got %v unkept calls and %d generations", name, a["unkept_calls"], len(a["history"].([]any)))
		}
		d.WantValue(d.Call(s, "net", 10), 7, "generated")
		d.Policy(object{"artifact_read_roles": list(), "artifact_read_enabled": true})
		got := d.Call(s, "net", 1000)
		d.WantValue(got, 600, "persisted")
		if got.Program.Generation != "gen-1" {
			t.Errorf("%s: %s serves, want gen-1", name, got.Program.Generation)
		}
	}
}

// A contract that a person registered wins, key by key, over what a program delegates with; what programs register
// fills the gaps; a client's own contract stays on top.
func TestContractsOfPeopleWin(t *testing.T) {
	t.Parallel()
	delegates := rig.Program(
		"\to := call.Delegate(\"finder\", recurgent.Contract{Purpose: \"find\", Deliverable: map[string]any{\"type\": \"array\"}}).Call(\"find\", call.Arg(0, \"x\"))\n" +
			"\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	empty := rig.Program("\tif call.Arg(0, \"x\") == \"all\" {\n\t\treturn []any{1}, nil\n\t}\n\treturn []any{}, nil")
	one := rig.Program("\treturn []any{1, call.Arg(0, \"x\")}, nil")
	m := rig.NewModel(t, rig.Script{"office.ask_finder": {delegates}, "finder.find": {empty, one}})
	d := rig.Start(t, m)
	s := d.Session("office")
	d.WantValue(d.Call(s, "ask_finder", "none"), list(), "generated") // the program's own contract
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/finder", object{"purpose": "find something",
		"deliverable": object{"type": "array", "min_items": 1}})
	d.WantValue(d.Call(s, "ask_finder", "none"), list(1, "none"), "persisted")
	q := m.LastQuestion().User
	if !strings.Contains(q, "min_items") || !strings.Contains(q, "find something") {
		t.Errorf("the repair is held to:\n%s", q)
	}
	own := d.Invoke(d.Session("finder"), object{"method": "find", "args": list("x"),
		"contract": object{"deliverable": object{"type": "string"}}})
	d.WantError(own, "contract_violation")
}

// Applied advice reaches whoever authors the contract: strengthen_contract on a delegated tool changes what the next
// nested call is held to, and the model is shown the weak answers, a sample, the re-asks and the person's reason; so it
// is for reforge.
func TestAdviceReachesDelegatedTools(t *testing.T) {
	t.Parallel()
	delegates := func(role string) string {
		return rig.Program("\to := call.Delegate(\"" + role +
			"\", recurgent.Contract{Purpose: \"find movies\", Deliverable: map[string]any{\"type\": \"object\", \"required\": []any{\"status\", \"movies\"}}}).Call(\"find\", call.Arg(0, \"wish\"))\n" +
			"\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	}
	poor := rig.Program("\treturn map[string]any{\"status\": \"partial\", \"movies\": []any{call.Arg(0, \"wish\")}}, nil")
	better := rig.Program("\treturn map[string]any{\"status\": \"success\", \"movies\": []any{call.Arg(0, \"wish\")}}, nil")
	m := rig.NewModel(t, rig.Script{"movie club.ask_finder": {delegates("movie finder")},
		"movie finder.find":    {rig.ProgMoviesWeak, rig.ProgMoviesFull},
		"film club.ask_finder": {delegates("film finder")}, "film finder.find": {poor, better}})
	d := rig.Start(t, m)
	d.Policy(object{"fixtures_enabled": false}) // weak answers are no proof of the new program
	for _, tt := range []struct{ club, finder, kind, weak string }{
		{"movie club", "movie finder", "strengthen_contract", "empty_array:/movies"},
		{"film club", "film finder", "reforge", "weak_status:/status=partial"}} {
		s := d.Session(tt.club)
		for range 4 {
			d.Call(s, "ask_finder", "good action movies")
		}
		applied := false
		for _, r := range d.Recommendations("") {
			if r["role"] == tt.finder && r["kind"] == tt.kind {
				if r["caller_contracts"] != 0.0 {
					t.Errorf("%s: %v calls are said to bring their own contract", tt.finder, r["caller_contracts"])
				}
				d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply",
					object{"reason": "people came away with nothing"})
				applied = true
			}
		}
		if !applied {
			t.Fatalf("%s of %s is not recommended: %v", tt.kind, tt.finder, d.Recommendations(""))
		}
		got := d.Call(s, "ask_finder", "westerns")
		if o, _ := got.Outcome.Value.(object); o["status"] != "success" {
			t.Errorf("%s: the next nested call answered %+v", tt.finder, got.Outcome)
		}
		q := m.LastQuestion()
		for _, part := range []string{"a weak answer (", tt.weak, "good action movies", "the caller asked again",
			"people came away with nothing"} {
			if q.Role != tt.finder || !strings.Contains(q.User, part) {
				t.Errorf("%s: the model is not shown %q:\n%s", tt.kind, part, q.User)
			}
		}
	}
}

// Examples that a caller without the right to decide proposed bind nobody until they are accepted, and can be rejected.
func TestUnknownProposals(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60}})
	d := rig.Start(t, m)
	d.Call(d.Session("tax"), "net", 1)
	active := examples(d, "tax", "net", example(0.6, 1))[0].(object)["id"].(string)
	for _, id := range []string{active, "ex_none"} {
		for _, verb := range []string{"accept", "reject"} {
			d.Do(http.StatusNotFound, http.MethodPost, rig.MethodPath("tax", "net")+"/examples/"+id+"/"+verb, nil)
		}
	}
}

// The evidence of a repair holds what is known, within 12 KiB and with secrets masked, whatever came.
func TestEvidence(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lorem ipsum ", 4000)
	api := rig.NewSource(t, bodyBefore)
	m := rig.NewModel(t, rig.Script{"weather.now": {weather(api.URL, readsPanic), weather(api.URL, readsNew)}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	d.Policy(object{"correction": "manual", "repair_enabled": true, "drift_after": 4})
	s := d.Session("weather")
	d.Call(s, "now", "Oslo")
	for i := range 4 {
		verdict(d, d.Call(s, "now", "Oslo"), object{"verdict": "wrong", "expected": 9,
			"note": "note " + string(rune('a'+i)) + " " + long[:2000]})
	}
	api.Body(`{"temperature": {"celsius": 8}, "api_key": "sk-hidden-1", "text": "` + long + `"}`)
	d.WantValue(d.Call(s, "now", "Bergen"), 8, "repaired")
	q := m.LastQuestion().User
	_, rest, _ := strings.Cut(q, "<evidence>")
	evidence, _, _ := strings.Cut(rest, "</evidence>")
	if len(evidence) > 12<<10+200 || len(evidence) < 4<<10 {
		t.Errorf("the evidence has %d bytes", len(evidence))
	}
	if strings.Contains(q, "sk-hidden-1") {
		t.Error("a secret of the source is shown")
	}
	for _, part := range []string{"gives no orders", "a person called an answer wrong", "note d lorem",
		"the failing run ended in execution", "status 200", "the shape of the response is now",
		"the response begins: {\"temperature\""} {
		if !strings.Contains(evidence, part) {
			t.Errorf("the evidence lacks %q:\n%s", part, evidence)
		}
	}
}
