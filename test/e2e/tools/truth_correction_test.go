package tools

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 600 was answered, 700 is right. The old program answers until the correction holds the example; what
// the correction changes is listed and dropped.
func TestCorrection(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, rig.Held(progTax70)}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	d.WantValue(wrong, 600, "generated")
	d.WantValue(d.Call(s, "net", 2000), 1200, "persisted")
	said := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict",
		object{"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}).Object(t)
	if said["dropped_fixtures"] != 1.0 || said["example_state"] != "active" || said["generation"] != "gen-1" ||
		said["expected"] != 700.0 || said["note"] != "70 percent, not 60" {
		t.Errorf("the verdict: %v", said)
	}
	m.Arrived(2)
	wantCorrection(d, "tax", "net", "running")
	meanwhile := d.Call(s, "net", 1000)
	d.WantValue(meanwhile, 600, "persisted")
	if !meanwhile.Program.Doubted {
		t.Error("the program that serves meanwhile is not said to be doubted")
	}
	m.Release()
	rig.Until(t, "the correction is adopted", func() bool {
		c, _ := d.Artifact("tax", "net")["correction"].(object)
		return c["state"] == "adopted"
	})
	c := wantCorrection(d, "tax", "net", "adopted")
	if c["generation"] != "gen-2" || c["changed_answers"] != 1.0 || c["attempts"] != 1.0 || c["last_error"] != nil {
		t.Errorf("the correction: %v", c)
	}
	after := d.Call(s, "net", 1000)
	d.WantValue(after, 700, "persisted")
	if after.Program.Doubted || after.Program.Trigger != "regenerate:correction" {
		t.Errorf("the corrected program: %+v", after.Program)
	}
	changed, _ := keptGeneration(d, "tax", "net", "gen-2")["changed_answers"].([]any)
	if len(changed) != 1 || !rig.Equal(1200, changed[0].(object)["was"]) ||
		!rig.Equal(1400, changed[0].(object)["now"]) {
		t.Errorf("changed answers: %v", changed)
	}
	// the changed one with its new value, and that of the call after it
	if n := keptGeneration(d, "tax", "net", "gen-2")["fixture_count"]; n != 2.0 {
		t.Errorf("%v fixtures, want 2", n)
	}
	if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User, "gross * 0.6") ||
		!strings.Contains(q.User, "args [1000] kwargs {} were answered with 600") ||
		!strings.Contains(q.User, "the right answer is 700") || !strings.Contains(q.User, "70 percent, not 60") {
		t.Errorf("the model was asked:\n%s", q.User)
	}
	if asked(m, "tax", "net") != 2 {
		t.Errorf("%d model requests, want 2", asked(m, "tax", "net"))
	}
	d.Restart() // everything of it is durable
	d.WantValue(d.Call(s, "net", 2000), 1400, "persisted")
	if got := d.Get("/v1/calls/" + wrong.CallID +
		"/verdict"); got["verdict"] != "wrong" || got["example_id"] == nil ||
		got["correction"].(object)["state"] != "adopted" {
		t.Errorf("the verdict after a restart: %v", got)
	}
}

// A correction that fails leaves the old program serving, shows at the method, backs off, and is not tried again by
// calls. A person's next verdict overrides the delay, and the message of the discarded candidate goes to the next
// attempt.
func TestFailedCorrectionBacksOff(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax80}})
	d := rig.Start(t, m)
	d.Policy(delaysOfHours)
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	other := d.Call(s, "net", 100)
	said := verdict(d, wrong, object{"verdict": "wrong", "expected": 700})
	c := said["correction"].(object)
	if c["state"] != "backing_off" || c["attempts"] != 1.0 || c["next_try_at"] == nil ||
		!strings.Contains(c["last_error"].(string), "does not hold an example") {
		t.Errorf("the correction: %v", c)
	}
	wantCorrection(d, "tax", "net", "backing_off")
	n := asked(m, "tax", "net")
	for range 3 {
		d.WantValue(d.Call(s, "net", 1000), 600, "persisted")
	}
	if asked(m, "tax", "net") != n {
		t.Error("calls tried the correction again")
	}
	if q := m.LastQuestion().User; !strings.Contains(q, "the answer must be 700, it is 800") {
		t.Errorf("the repair of the candidate does not say what it broke:\n%s", q)
	}
	m.Answer("tax", "net", programReply(progTax70))
	said = verdict(d, other, object{"verdict": "wrong", "expected": 70})
	if c := said["correction"].(object); c["state"] != "adopted" {
		t.Errorf("after another verdict: %v", c)
	}
	q := m.LastQuestion().User
	for _, part := range []string{"the last program that was written and discarded (proof)",
		"the answer must be 700, it is 800"} {
		if !strings.Contains(q, part) {
			t.Errorf("the next attempt is not shown %q:\n%s", part, q)
		}
	}
	d.WantValue(d.Call(s, "net", 1000), 700, "persisted")
	if text := string(d.Do(http.StatusOK, http.MethodGet, rig.MethodPath("tax", "net")+"/generations",
		nil).Body); strings.Contains(text, "it is 800") {
		t.Errorf("what is for models is shown: %s", text)
	}
}

// A repeated verdict, as after a lost reply, waits for the running correction, too.
func TestRepeatedVerdictWaits(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, rig.Held(progTax70)}})
	d := rig.Start(t, m)
	wrong := d.Call(d.Session("tax"), "net", 1000)
	body := object{"verdict": "wrong", "expected": 700}
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict", body)
	m.Arrived(2)
	said := make(chan rig.Response)
	go func() {
		got, _ := d.Try(t.Context(), http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict", rig.Encode(t, body),
			map[string]string{"Prefer": "wait=60"})
		said <- got
	}()
	rig.Until(t, "the second request is there, beside the one for the metric",
		func() bool { return d.Metric(`recurgent_http_requests_in_flight`) >= 2 })
	m.Release()
	if got := <-said; got.Status != http.StatusOK || got.Object(t)["correction"].(object)["state"] != "adopted" {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
}

// A correction that was interrupted goes on after a restart.
func TestCorrectionOutlivesRestart(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, rig.Held(progTax70), progTax70}})
	d := rig.Start(t, m)
	wrong := d.Call(d.Session("tax"), "net", 1000)
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict",
		object{"verdict": "wrong", "expected": 700})
	m.Arrived(2)
	d.Restart()
	rig.Until(t, "the correction is adopted", func() bool {
		c, _ := d.Artifact("tax", "net")["correction"].(object)
		return c["state"] == "adopted"
	})
	d.WantValue(d.Call(wrong.SessionID, "net", 1000), 700, "persisted")
}

// A daemon that is killed while corrections run loses none of what people said, makes nothing of it twice, and records
// the correction in the name of who asked for it. Verdicts that come meanwhile, on the same call and on another, end in
// one program that holds them all.
func TestCorrectionOutlivesAKill(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, rig.Held(progTax70), progTax70}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	calls := []rig.Reply{d.Call(s, "net", 1000), d.Call(s, "net", 2000)}
	var all sync.WaitGroup
	for i := range 6 { // three times each
		all.Go(func() {
			body := rig.Encode(t, object{"verdict": "wrong", "expected": 700 * (i%2 + 1)})
			if got := d.Send(http.MethodPost, "/v1/calls/"+calls[i%2].CallID+"/verdict", body,
				nil); got.Status != http.StatusOK {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
		})
	}
	all.Wait()
	m.Arrived(2)
	d.Stop(syscall.SIGKILL)
	m.Release()
	d.Start()
	rig.Until(t, "the correction is adopted", func() bool {
		c, _ := d.Artifact("tax", "net")["correction"].(object)
		return c["state"] == "adopted"
	})
	d.WantValue(d.Call(s, "net", 1000), 700, "persisted")
	d.WantValue(d.Call(s, "net", 2000), 1400, "persisted")
	kept := d.Get(rig.MethodPath("tax", "net") + "/examples")["examples"].([]any)
	if n := len(d.List(rig.MethodPath("tax", "net") + "/generations")); n != 2 || len(kept) != 2 {
		t.Errorf("%d generations, examples %v", n, kept)
	}
	audit := d.List("/v1/maintenance/audit")
	if len(audit) != 3 || audit[0]["action"] != "artifact.correct" || audit[0]["actor"] != audit[1]["actor"] {
		t.Errorf("the audit trail: %v", audit)
	}
}

// By policy the next call tries a correction, or nobody does. A failed one shows at the method in the same way.
func TestCorrectionPolicies(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTaxBoom, progTaxBoom, progTax70},
		"tax.manual": {progTax60, progTax70}})
	d, ahead := rig.StartAhead(t, m)
	d.Policy(delaysOfHours)
	d.Policy(object{"correction": "next_call", "execution_repair_budget": 0, "outcome_repair_budget": 1})
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	if c := verdict(d, wrong, object{"verdict": "wrong",
		"expected": 700})["correction"].(object); c["state"] != "queued" {
		t.Errorf("with next_call: %v", c)
	}
	d.WantValue(d.Call(s, "net", 10), 6, "persisted") // the candidate crashes
	c := wantCorrection(d, "tax", "net", "backing_off")
	if c["attempts"] != 1.0 || c["last_error"] == nil || c["next_try_at"] == nil {
		t.Errorf("a failed correction within a call: %v", c)
	}
	n := asked(m, "tax", "net")
	d.WantValue(d.Call(s, "net", 20), 12, "persisted")
	if asked(m, "tax", "net") != n {
		t.Error("it is tried with each call")
	}
	ahead("1h1s")
	d.WantValue(d.Call(s, "net", 20), 14, "generated")
	if c := wantCorrection(d, "tax", "net", "adopted"); c["generation"] != "gen-2" {
		t.Errorf("corrected by the call: %v", c)
	}
	d.Policy(object{"correction": "manual"})
	wrong = d.Call(s, "manual", 1000)
	if c := verdict(d, wrong, object{"verdict": "wrong",
		"expected": 700})["correction"].(object); c["state"] != "none" {
		t.Errorf("with manual: %v", c)
	}
	d.WantValue(d.Call(s, "manual", 1000), 600, "persisted")
	operate(d, "tax", "manual", "regenerate", object{})
	d.WantValue(d.Call(s, "manual", 1000), 700, "generated")
}

// A wrong answer without an expectation: the same answer again is wrong again, and so is a crash.
func TestWrongWithoutExpectation(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax60, progTaxBoom, progTax70}})
	d := rig.Start(t, m)
	d.Policy(object{"outcome_repair_budget": 2})
	wrong := d.Call(d.Session("tax"), "net", 1000)
	said := verdict(d, wrong, object{"verdict": "wrong", "note": "too little"})
	if c := said["correction"].(object); said["example_id"] != nil || c["state"] != "adopted" {
		t.Errorf("the verdict: %v", said)
	}
	d.WantValue(d.Call(wrong.SessionID, "net", 1000), 700, "persisted")
	if asked(m, "tax", "net") != 4 {
		t.Errorf("%d requests, want 4: the same answer and the crash are refused", asked(m, "tax", "net"))
	}
}

// While a program is doubted its wrong answer makes no fixture again, so that repairs are not held to it.
func TestWrongAnswersBindNobody(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {
		rig.Program("\tif call.Arg(0, \"gross\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\tgross, _ := call.Arg(0, \"gross\").(float64)\n\treturn gross * 0.6, nil"), progTax70}})
	d := rig.Start(t, m)
	d.Policy(object{"correction": "manual"})
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	verdict(d, wrong, object{"verdict": "wrong"})
	d.WantValue(d.Call(s, "net", 1000), 600, "persisted")
	if n := keptGeneration(d, "tax", "net", "gen-1")["fixture_count"]; n != 0.0 {
		t.Errorf("%v fixtures of an answer that was called wrong", n)
	}
	d.WantValue(d.Call(s, "net", "bad"), 0, "repaired") // an automatic repair is free to answer 700
	d.WantValue(d.Call(s, "net", 1000), 700, "persisted")
}

// Regeneration: a person's reason lets the new program change what fixtures say; it lists what it changed.
func TestRegenerateWithReason(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	d.Call(s, "net", 1000)
	operate(d, "tax", "net", "regenerate", object{"reason": "70 percent, not 60"})
	d.WantValue(d.Call(s, "net", 2000), 1400, "generated")
	d.WantValue(d.Call(s, "net", 1000), 700, "persisted")
	changed, _ := keptGeneration(d, "tax", "net", "gen-2")["changed_answers"].([]any)
	if len(changed) != 1 || !rig.Equal(600, changed[0].(object)["was"]) || !rig.Equal(700, changed[0].(object)["now"]) {
		t.Errorf("changed answers: %v", changed)
	}
	if q := m.LastQuestion().User; !strings.Contains(q, "70 percent, not 60") {
		t.Errorf("the reason is not shown:\n%s", q)
	}
	if asked(m, "tax", "net") != 2 {
		t.Errorf("%d requests, want 2", asked(m, "tax", "net"))
	}
}

// A regeneration that fails, by a crash or by an error where the old program has a value, leaves the old program
// serving, backs off, and shows at the method.
func TestFailedRegeneration(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, rig.ProgPanic}, "tax.poor": {progTax60, rig.ProgFails}})
	d := rig.Start(t, m)
	d.Policy(delaysOfHours)
	s := d.Session("tax")
	for _, method := range []string{"net", "poor"} {
		d.Call(s, method, 1000)
		operate(d, "tax", method, "regenerate", object{"reason": "nicer"})
		got := d.Call(s, method, 2000)
		d.WantValue(got, 1200, "persisted")
		if got.Program.Generation != "gen-1" {
			t.Errorf("%s: %s answered", method, got.Program.Generation)
		}
		if c := wantCorrection(d, "tax", method, "backing_off"); c["attempts"] != 1.0 || c["last_error"] == nil {
			t.Errorf("%s: %v", method, c)
		}
		n := asked(m, "tax", method)
		for i := range 5 {
			d.WantValue(d.Call(s, method, 1000*i), 600*i, "persisted")
		}
		if asked(m, "tax", method) != n {
			t.Errorf("%s: calls pay for the failed regeneration", method)
		}
		m.Answer("tax", method, programReply(progTax70))
		// a person's operation overrides the delay
		operate(d, "tax", method, "regenerate", object{"reason": "once more"})
		rig.Until(t, "a new program",
			func() bool { got = d.Call(s, method, 2000); return got.Program.Source != "persisted" })
		d.WantValue(got, 1400, "generated")
		wantCorrection(d, "tax", method, "adopted")
	}
}

// An automatic repair may not change what fixtures say, and no candidate may crash on an answered input, whoever asked.
func TestAutomaticRepairsChangeNothing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgBreaks}, "tax.net": {progTax60, progTaxBoom}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	d.WantError(d.Call(s, "m", "bad"), "outcome_repair_retry_exhausted")
	d.WantValue(d.Call(s, "m", 1), 1, "persisted")
	s = d.Session("tax")
	d.Call(s, "net", 1000)
	operate(d, "tax", "net", "regenerate", object{"reason": "crash"})
	d.WantValue(d.Call(s, "net", 1000), 600, "persisted")
	if g := d.Artifact("tax", "net")["current_generation"]; g != "gen-1" {
		t.Errorf("%v is current: it crashes on an input that was answered", g)
	}
}
