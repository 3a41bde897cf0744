package tools

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Without a model the old program answers, and is said to be stale. Nothing counts against it, the model is left alone
// for the delay, and is asked again after it.
func TestPurposeWithoutModel(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, rig.Status(http.StatusUnauthorized), rig.Status(http.StatusUnauthorized), progKelvin)
	d.Policy(delaysOfHours)
	before := d.Artifact("units", "convert")
	registers(d, object{"purpose": toKelvin})
	one := d.One() // delays are each replica's own
	got := one.Call(s, "convert", 0)
	wantStale(d, got, 32)
	if e := d.LogOf(got); e["failure_class"] != nil && e["failure_class"] != "" ||
		got.Program.Selection.Reason != "purpose_changed" {
		t.Errorf("the log has the class %v, the selection is %+v", e["failure_class"], got.Program.Selection)
	}
	asked := m.Count("units", "")
	for range 3 {
		wantStale(d, one.Call(s, "convert", 0), 32)
	}
	wantAsked(t, m, asked)
	a := d.Artifact("units", "convert")
	if a["failure_count"] != before["failure_count"] || a["rejections"] != nil ||
		a["success_count"] != before["success_count"].(float64)+4 || a["repair_count_since_regen"] != 0.0 {
		t.Errorf("the artifact counts %v failures, %v successes, %v repairs; rejections: %v", a["failure_count"],
			a["success_count"], a["repair_count_since_regen"], a["rejections"])
	}
	d.Policy(object{"backoff": object{"base_seconds": 0, "max_seconds": 0}})
	registers(d, object{"purpose": "celsius to kelvin degrees"}) // other words have no delay
	wantStale(d, one.Call(s, "convert", 0), 32)
	d.WantValue(one.Call(s, "convert", 0), 273.15, "generated")
}

// A cap that is used up is no failure either, and programs that do not run leave the old one in its place, too.
func TestPurposeWithoutProgram(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, rig.ProgPanic)
	d.Policy(delaysOfHours)
	d = d.One()
	registers(d, object{"purpose": toKelvin})
	d.Policy(object{"spend": object{"day_tokens": 1}})
	if got := d.Call(s, "convert", 0); got.Outcome.OK {
		wantStale(d, got, 32)
		if got.Usage.ModelRequests != 0 {
			t.Errorf("%d requests over the cap", got.Usage.ModelRequests)
		}
	} else {
		t.Errorf("over the cap: %+v", got.Outcome)
	}
	d.Policy(object{"spend": object{"day_tokens": 0}})
	wantStale(d, d.Call(s, "convert", 0), 32)
	asked := m.Count("units", "")
	if asked < 2 {
		t.Fatalf("%d requests", asked)
	}
	wantStale(d, d.Call(s, "convert", 0), 32)
	wantAsked(t, m, asked)
	if a := d.Artifact("units", "convert"); a["current_generation"] != "gen-1" || a["failure_count"] != 0.0 {
		t.Errorf("%v is current, with %v failures", a["current_generation"], a["failure_count"])
	}
}

// A program that fails nothing but examples waits for a person, and the old one answers without a further request.
// Approved, it serves; rejected, the old program is right for the purpose of now.
func TestPurposeAgainstExamples(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"approve", "rollback", "drop"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			d, m, s := warm(t, progKelvin)
			id := examples(d, "units", "convert", example(212, 100), example(50, 10))[0].(object)["id"]
			registers(d, object{"purpose": toKelvin})
			for range 3 {
				wantStale(d, d.Call(s, "convert", 0), 32)
			}
			wantAsked(t, m, 2)
			if a := d.Artifact("units", "convert"); a["breaks_examples"] != 2.0 || a["current_generation"] != "gen-2" {
				t.Errorf("%v is current and breaks %v examples", a["current_generation"], a["breaks_examples"])
			}
			inbox := d.List("/v1/inbox?kind=approval")
			if len(inbox) != 1 {
				t.Fatalf("the inbox has %v", inbox)
			}
			evidence, decides := inbox[0]["evidence"].(object), inbox[0]["operations"].([]any)
			if evidence["generation"] != "gen-2" || evidence["breaks"] != 2.0 ||
				evidence["broken_examples"].([]any)[0] != id || evidence["answers_now"] != "gen-1" {
				t.Errorf("the evidence: %v", evidence)
			}
			send := func(i int) {
				op := decides[i].(object)
				d.Do(http.StatusOK, op["method"].(string), op["path"].(string), op["body"])
			}
			switch end {
			case "approve":
				send(0)
				wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
			case "rollback":
				if name := decides[1].(object)["name"]; name != "reject the program, and stay with gen-1" {
					t.Errorf("the second decision is %v", name)
				}
				send(1)
				wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
			case "drop": // who drops the examples lets it serve
				d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("units", "convert")+"/examples",
					object{"examples": list()})
				wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
			}
			if left := d.List("/v1/inbox?kind=approval"); len(left) != 0 {
				t.Errorf("the inbox still has %v", left)
			}
			wantAsked(t, m, 2)
		})
	}
}

// Putting examples again, under another id or with another expectation, decides nothing about the program that waits
// for them.
func TestPurposeExamplesPutAgain(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	id := examples(d, "units", "convert", example(212, 100))[0].(object)["id"]
	registers(d, object{"purpose": toKelvin})
	wantStale(d, d.Call(s, "convert", 0), 32)
	named := example(212, 100)
	named["id"] = "boiling"
	for i, list := range [][]object{
		{example(212, 100)},
		{example(32, 0), example(212, 100)},
		{example(211, 100)},
		{named},
		{example(212, 100)},
	} {
		kept := examples(d, "units", "convert", list...)
		if i < 3 && kept[len(kept)-1].(object)["id"] != id {
			t.Errorf("%d: the example has got another id: %v", i, kept)
		}
		wantStale(d, d.Call(s, "convert", 0), 32)
		if a := d.Artifact("units", "convert"); a["breaks_examples"] != 1.0 ||
			len(d.List("/v1/inbox?kind=approval")) != 1 {
			t.Errorf("%d: %v examples are broken, the inbox has %v", i, a["breaks_examples"],
				d.List("/v1/inbox?kind=approval"))
		}
	}
	wantAsked(t, m, 2)
	verdict(d, d.Call(s, "convert", 100), object{"verdict": "right"}) // it makes an example of the call
	wantStale(d, d.Call(s, "convert", 0), 32)
	examples(d, "units", "convert", example(32.5, 0.5))
	wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2") // none that asked the same is left
}

// While a program waits the purpose may change again: then another one is asked for, by the program that answers. Back
// at the words of before nothing is stale.
func TestPurposeChangedAgainWhileOneWaits(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin, progRankine)
	examples(d, "units", "convert", example(212, 100))
	registers(d, object{"purpose": toKelvin})
	wantStale(d, d.Call(s, "convert", 0), 32)
	registers(d, object{"purpose": toFahrenheit})
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": "celsius to rankine"})
	wantStale(d, d.Call(s, "convert", 0), 32)
	if asked := m.LastQuestion().User; !strings.Contains(asked, "*9/5 + 32") ||
		!strings.Contains(asked, "purpose: "+toFahrenheit) {
		t.Errorf("the request shows:\n%s", asked)
	}
	wantStale(d, d.Call(s, "convert", 0), 32)
	wantAsked(t, m, 3)
	if a := d.Artifact("units", "convert"); a["current_generation"] != "gen-3" {
		t.Errorf("%v is current", a["current_generation"])
	}
}

// Calls at once ask once, whatever the model says, asynchronous ones too.
func TestPurposeAskedOnceByManyCalls(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		held any
		want float64
	}{"kept": {rig.Held(progFahrenheit), 32}, "rewritten": {rig.Held(progKelvin), 273.15}} { // the same program once more keeps it
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m, s := warm(t, answer.held)
			registers(d, object{"purpose": toKelvin})
			var all sync.WaitGroup
			sessions := make([]string, 6)
			for i := range sessions {
				sessions[i] = d.Session("units")
			}
			for _, session := range sessions {
				all.Go(func() { d.WantValue(d.Call(session, "convert", 0), answer.want, "") })
			}
			r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"convert","args":[0]}`),
				map[string]string{"Prefer": "respond-async"})
			if r.Status != http.StatusAccepted {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			m.Arrived(2)
			m.Release()
			all.Wait()
			wantAsked(t, m, 2)
			d.WantValue(d.Call(s, "convert", 0), answer.want, "persisted") // after the asynchronous one
			wantAsked(t, m, 2)
			generations := 2
			if answer.want == 32 {
				generations = 1
			}
			if a := d.Artifact("units", "convert"); len(a["history"].([]any)) != generations {
				t.Errorf("%d generations", len(a["history"].([]any)))
			}
		})
	}
}

// unchanged is no answer where no program is shown: the model gets that said and is asked again. Beside a whole program
// it does not count.
func TestUnchangedWhereThereIsNothingToKeep(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.convert": {unchanged(), progFahrenheit,
		submits(object{"unchanged": true, "code": progKelvin})}, "units.never": {unchanged()}})
	d := rig.Start(t, m)
	registers(d, object{"purpose": toFahrenheit})
	s := d.Session("units")
	d.WantValue(d.Call(s, "convert", 0), 32, "generated")
	if again := m.LastQuestion().User; !strings.Contains(again, "there is no program that could be kept") {
		t.Errorf("asked again with:\n%s", again)
	}
	if got := d.Call(s, "never", 0); got.Outcome.OK || got.Outcome.ErrorType != "invalid_code" {
		t.Errorf("with unchanged alone: %+v", got.Outcome)
	}
	registers(d, object{"purpose": toKelvin})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
}

// Where models call no tools, an object in the text keeps the program, too.
func TestPurposeKeptInText(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, rig.Text("The words mean the same.\n```json\n{\"unchanged\": true}\n```\n"),
		rig.Text(`{"unchanged": true}`), rig.Text("submit_program(unchanged=True)"))
	for i, purpose := range []string{"degrees celsius to fahrenheit", "degrees of celsius to fahrenheit",
		"the degrees of celsius to fahrenheit"} {
		registers(d, object{"purpose": purpose})
		if got := d.Call(s, "convert", 0); got.Program.Selection.Reason != "purpose_checked" ||
			got.Outcome.Value != 32.0 {
			t.Errorf("%s: %+v, %+v", purpose, got.Program.Selection, got.Outcome)
		}
		wantAsked(t, m, i+2)
	}
}

// A method that is held is held for a changed purpose, too: pinned, it answers and is said to be stale; approval
// comes before a program for another purpose; under a switch the program that is written is for the purpose of now, and
// is asked about when the switch is back; without repairs it is asked about all the same.
func TestPurposeUnderSwitches(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	registers(d, object{"purpose": toKelvin})
	operate(d, "units", "convert", "pin", object{})
	wantStale(d, d.Call(s, "convert", 0), 32)
	wantAsked(t, m, 1)
	operate(d, "units", "convert", "unpin", object{})
	for i, on := range []object{{"force_generation": true}, {"artifact_read_enabled": false},
		{"artifact_read_roles": list("other")}} {
		d.Policy(on)
		got := d.Call(s, "convert", 0)
		if d.WantValue(got, 273.15, "generated"); got.Program.Stale != "" ||
			strings.Contains(m.LastQuestion().User, "*9/5 + 32") {
			t.Errorf("%v: %+v, asked with\n%s", on, got.Program, m.LastQuestion().User)
		}
		wantAsked(t, m, i+2)
		d.Policy(object{"force_generation": false, "artifact_read_enabled": true, "artifact_read_roles": list()})
	}
	operate(d, "units", "convert", "quarantine", object{"reason": "later"})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	operate(d, "units", "convert", "release", object{})
	d.Policy(object{"approval_required": true})
	operate(d, "units", "convert", "approve", object{"generation": "gen-1"})
	asked := m.Count("units", "")
	for range 3 {
		wantStale(d, d.Call(s, "convert", 0), 32)
	}
	wantAsked(t, m, asked+1)
	operate(d, "units", "convert", "approve", object{})
	got := d.Call(s, "convert", 0)
	if d.WantValue(got, 273.15, "persisted"); got.Program.Stale != "" {
		t.Errorf("approved: %+v", got.Program)
	}
}

// Without repairs a changed purpose has the program looked at all the same.
func TestPurposeWithRepairsOff(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	d.Policy(object{"repair_enabled": false})
	registers(d, object{"purpose": toKelvin})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	wantAsked(t, m, 2)
}

// A person's own word is enough: who promotes or puts in a program after the change says that it is right for it. The
// undo of the change brings the words back, and with them the program.
func TestPurposeByPersons(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	registers(d, object{"purpose": "the degrees of Fahrenheit"})
	operate(d, "units", "convert", "promote", object{})
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": "celsius to rankine"})
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("units", "convert"), object{"code": progRankine})
	wantFresh(d, d.Call(s, "convert", 0), 491.67, "gen-2")
	registers(d, object{"purpose": toKelvin})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	last := d.List("/v1/maintenance/audit")[0]
	if last["action"] != "tool.put" {
		t.Fatalf("the last operation is %v", last["action"])
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+last["id"].(string)+"/undo", object{})
	wantFresh(d, d.Call(s, "convert", 0), 491.67, "gen-2")
	wantAsked(t, m, 2)
}

// A changed deliverable with a changed purpose has the program repaired for both: what it answered before binds
// nothing.
func TestPurposeChangedWithDeliverable(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin)
	d.WantValue(d.Call(s, "convert", 100), 212, "persisted")
	registers(d, object{"purpose": toKelvin, "deliverable": object{"type": "number"}})
	got := d.Call(s, "convert", 0)
	if d.WantValue(got, 273.15, "repaired"); got.Program.Selection.Reason != "contract_changed" {
		t.Errorf("%+v", got.Program.Selection)
	}
	if asked := m.LastQuestion().User; !strings.Contains(asked, toFahrenheit) {
		t.Errorf("the request does not say what the program was for:\n%s", asked)
	}
	wantFresh(d, d.Call(s, "convert", 100), 373.15, "gen-2")
	wantAsked(t, m, 2)
}

// Who may call and not operate changes no purpose, and sees of the examples that a program breaks only those of their
// own calls. Another namespace's method of the same name is not concerned.
func TestPurposeOfOthers(t *testing.T) {
	t.Parallel()
	ann, op := guarded(t, rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin}}))
	registers(op, object{"purpose": toFahrenheit})
	s := ann.Session("units")
	ann.WantValue(ann.Call(s, "convert", 0), 32, "generated")
	if r := ann.Send(http.MethodPut, "/v1/tools/units", []byte(`{"purpose": "anything"}`),
		nil); r.Status != http.StatusForbidden {
		t.Errorf("who may not operate: %d %s", r.Status, r.Body)
	}
	theirs := op.Call(op.Session("units"), "convert", 100)
	verdict(op, theirs, object{"verdict": "right"})
	registers(op, object{"purpose": toKelvin})
	if got := ann.Call(s, "convert", 0); got.Outcome.Value != 32.0 || got.Program.Stale != "purpose" {
		t.Errorf("%+v %+v", got.Outcome, got.Program)
	}
	evidence := func(d *rig.Daemon) object { return d.List("/v1/inbox?kind=approval")[0]["evidence"].(object) }
	if e := evidence(ann); e["breaks"] != 1.0 || len(e["broken_examples"].([]any)) != 0 {
		t.Errorf("ann sees %v of %v", e["broken_examples"], e["breaks"])
	}
	if e := evidence(op); len(e["broken_examples"].([]any)) != 1 {
		t.Errorf("who may operate sees %v", e["broken_examples"])
	}
}
