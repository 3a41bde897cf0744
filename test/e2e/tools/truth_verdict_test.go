package tools

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A right answer becomes an example; an error only where the program returned it, and then the example is its type.
func TestRightVerdicts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"calculator.add": {rig.ProgAdd},
		"shop.find": {rig.Program(
			"\tif call.Arg(0, \"x\") == \"none\" {\n\t\treturn nil, recurgent.Fail(\"not_found\", \"no such thing\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")},
		"r.m": {rig.ProgMayPanic},
	})
	d := rig.Start(t, m)
	said := verdict(d, d.Call(d.Session("calculator"), "add", 2, 3),
		object{"verdict": "right", "note": "checked by hand"})
	if said["example_state"] != "active" || said["verdict"] != "right" || said["dropped_fixtures"] != 0.0 ||
		said["correction"].(object)["state"] != "none" {
		t.Errorf("right: %v", said)
	}
	kept := d.Get(rig.MethodPath("calculator", "add") + "/examples")["examples"].([]any)
	if x := kept[0].(object); len(kept) != 1 || !rig.Equal(object{"value": 5}, x["expect"]) ||
		x["id"] != said["example_id"] || x["note"] != "checked by hand" || x["effects"] != nil {
		t.Errorf("examples: %v", kept)
	}
	s := d.Session("shop")
	d.Call(s, "find", "hat")
	verdict(d, d.Call(s, "find", "none"), object{"verdict": "right"})
	if kept := d.Get(rig.MethodPath("shop", "find") +
		"/examples")["examples"].([]any); len(kept) != 1 || !rig.Equal(object{"error_type": "not_found"},
		kept[0].(object)["expect"]) {
		t.Errorf("examples: %v", kept)
	}
	s = d.Session("r")
	d.Call(s, "m", 1)
	refused(d, d.Call(s, "m", "bad").CallID, object{"verdict": "right"}, http.StatusUnprocessableEntity,
		"invalid_verdict")
}

// What cannot be judged: unknown calls, calls without a program, masked inputs, and calls whose values have expired.
func TestVerdictsThatAreRefused(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	m.Answer("", "", rig.Text("Answer: ok"))
	d, ahead := rig.StartAhead(t, m)
	s := d.Session("r")
	wrong := object{"verdict": "wrong", "expected": 1}
	refused(d, "call_01a1b2c3d4e5f6a7b8c9d0e1f2", wrong, http.StatusNotFound, "not_found")
	refused(d, d.Call(s, "name=", "Ada").CallID, wrong, http.StatusUnprocessableEntity, "no_program")
	predicted := d.Do(http.StatusOK, http.MethodPost, "/v1/predict", object{"session_id": s,
		"signature": object{"inputs": list(object{"name": "question"}), "outputs": list(object{"name": "answer"})},
		"inputs":    object{"question": "x"}}).Object(t)
	refused(d, predicted["call_id"].(string), wrong, http.StatusUnprocessableEntity, "no_program")
	masked := d.CallWith(s, "m", object{"x": 1, "password": "hunter2"})
	refused(d, masked.CallID, wrong, http.StatusUnprocessableEntity, "masked_input")
	fine, failed := d.Call(s, "m", 1), d.Call(s, "m", 2)
	for _, body := range []object{{"verdict": "meh"}, {"verdict": "right", "expected": 1},
		{"verdict": "wrong", "expected": 1, "expected_error_type": "x"}} {
		refused(d, fine.CallID, body, http.StatusUnprocessableEntity, "invalid_verdict")
	}
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/calls/"+fine.CallID+"/verdict", nil)
	d.Do(http.StatusNotFound, http.MethodDelete, "/v1/calls/"+fine.CallID+"/verdict", nil)
	ahead("25h") // value_hours is 24
	refused(d, fine.CallID, wrong, http.StatusGone, "gone")
	refused(d, failed.CallID, wrong, http.StatusGone, "gone")
}

// The same verdict again changes nothing; another one replaces it, with what followed from it; it can be taken back.
func TestVerdictsAreReplaced(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax80}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	call := d.Call(s, "net", 1000)
	body := object{"verdict": "wrong", "expected": 700}
	first := verdict(d, call, body)
	n, audited, counted := asked(m, "tax", "net"), len(d.List("/v1/maintenance/audit")),
		d.Metric(`recurgent_verdicts_total{verdict="wrong"}`)
	if again := verdict(d, call, body); again["example_id"] != first["example_id"] ||
		again["dropped_fixtures"] != first["dropped_fixtures"] {
		t.Errorf("the same verdict again: %v, was %v", again, first)
	}
	if asked(m, "tax", "net") != n || len(d.List("/v1/maintenance/audit")) != audited ||
		d.Metric(`recurgent_verdicts_total{verdict="wrong"}`) != counted {
		t.Error("the same verdict again did something")
	}
	// The person was mistaken: the answer is right. Nothing asks for a correction any more.
	said := verdict(d, call, object{"verdict": "right"})
	if said["verdict"] != "right" || said["correction"].(object)["state"] != "none" {
		t.Errorf("replaced: %v", said)
	}
	kept := d.Get(rig.MethodPath("tax", "net") + "/examples")["examples"].([]any)
	if len(kept) != 1 || !rig.Equal(object{"value": 600}, kept[0].(object)["expect"]) {
		t.Errorf("examples after the replacement: %v", kept)
	}
	if got := d.Call(s, "net", 1000); got.Program.Doubted {
		t.Error("still doubted")
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/calls/"+call.CallID+"/verdict", nil)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/calls/"+call.CallID+"/verdict", nil)
	if kept := d.Get(rig.MethodPath("tax", "net") + "/examples")["examples"].([]any); len(kept) != 0 {
		t.Errorf("examples after it was taken back: %v", kept)
	}
}

// The newest of several verdicts on the same input and effects counts: an answer that was called wrong and then right
// is not doubted, and the model sees one expectation. A verdict on a call with another context counts separately.
func TestNewestVerdictCounts(t *testing.T) {
	t.Parallel()
	sums := rig.Program("\tn, _ := call.Context[\"n\"].(float64)\n\tx, _ := call.Arg(0, \"x\").(float64)\n\treturn x + n, nil")
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax80}, "tax.sum": {sums}})
	d := rig.Start(t, m)
	d.Policy(object{"correction": "manual"})
	s := d.Session("tax")
	first, second := d.Call(s, "net", 1000), d.Call(s, "net", 1000)
	verdict(d, first, object{"verdict": "wrong", "expected": 700})
	verdict(d, second, object{"verdict": "right"})
	if got := d.Call(s, "net", 1000); got.Program.Doubted {
		t.Error("doubted for an answer that was called right since")
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/calls/"+second.CallID+"/verdict", nil)
	if got := d.Call(s, "net", 1000); !got.Program.Doubted {
		t.Error("the earlier verdict does not count again")
	}
	verdict(d, second, object{"verdict": "wrong", "expected": 800})
	operate(d, "tax", "net", "regenerate", object{})
	d.WantValue(d.Call(s, "net", 1000), 800, "generated")
	if q := m.LastQuestion().User; !strings.Contains(q, "the right answer is 800") ||
		strings.Contains(q, "the right answer is 700") {
		t.Errorf("the model sees\n%s", q)
	}

	verdict(d, d.Call(s, "sum", 1), object{"verdict": "wrong", "expected": 7})
	d.Call(s, "n=", 1)
	verdict(d, d.Call(s, "sum", 1), object{"verdict": "right"})
	if got := d.Call(s, "sum", 1); !got.Program.Doubted {
		t.Error("a verdict under another context counts for this one")
	}
}

// A verdict of wrong whose expectation equals the answer is refused.
func TestExpectedIsWhatWasAnswered(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60}})
	d := rig.Start(t, m)
	call := d.Call(d.Session("tax"), "net", 1000)
	for _, expected := range []json.RawMessage{json.RawMessage("600"), json.RawMessage("600.0"), json.RawMessage("6e2"),
		json.RawMessage("600.0000000001")} {
		refused(d, call.CallID, object{"verdict": "wrong", "expected": expected}, http.StatusUnprocessableEntity,
			"invalid_verdict")
	}
}

// null counts as an expectation, and an error can be what is right.
func TestExpectations(t *testing.T) {
	t.Parallel()
	nothing := rig.Program("\tif call.Arg(0, \"gross\") == nil {\n\t\treturn 0, nil\n\t}\n\treturn nil, nil")
	invalid := rig.Program("\tif gross, _ := call.Arg(0, \"gross\").(float64); gross < 0 {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"less than nothing\")\n\t}\n\treturn 0.6 * call.Arg(0, \"gross\").(float64), nil")
	m := rig.NewModel(t, rig.Script{"tax.null": {progTax60, nothing}, "tax.err": {progTax60, invalid}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	if said := verdict(d, d.Call(s, "null", 5), object{"verdict": "wrong",
		"expected": nil}); said["example_id"] == nil || said["correction"].(object)["state"] != "adopted" {
		t.Errorf("expected null: %v", said)
	}
	d.WantValue(d.Call(s, "null", 5), nil, "persisted")
	d.Call(s, "err", 10)
	if said := verdict(d, d.Call(s, "err", -5), object{"verdict": "wrong",
		"expected_error_type": "invalid_input"}); said["expected_error_type"] != "invalid_input" ||
		said["correction"].(object)["state"] != "adopted" {
		t.Errorf("expected an error: %v", said)
	}
	d.WantError(d.Call(s, "err", -5), "invalid_input")
	d.WantValue(d.Call(s, "err", 10), 6, "persisted")
}

// A verdict on a nested call hits the nested method.
func TestNestedVerdict(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"office.pay": {rig.Program(
			"\to := call.Tool(\"tax\").Call(\"net\", call.Arg(0, \"gross\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")},
		"tax.net": {progTax60, progTax70},
	})
	d := rig.Start(t, m)
	root := d.Call(d.Session("office"), "pay", 1000)
	d.WantValue(root, 600, "generated")
	nested := d.List("/v1/calls?parent_call_id=" + root.CallID)
	if len(nested) != 1 {
		t.Fatalf("nested calls: %v", nested)
	}
	said := verdict(d, rig.Reply{CallID: nested[0]["call_id"].(string)}, object{"verdict": "wrong", "expected": 700})
	if said["role"] != "tax" || said["method"] != "net" || said["correction"].(object)["state"] != "adopted" {
		t.Errorf("the verdict: %v", said)
	}
	d.WantValue(d.Call(root.SessionID, "pay", 1000), 700, "persisted")
	wantCorrection(d, "office", "pay", "none")
	if e := d.Get("/v1/calls/" + nested[0]["call_id"].(string)); e["verdict"] != "wrong" {
		t.Errorf("the nested call's entry says %v", e["verdict"])
	}
}

// A verdict on what an earlier program answered has the current one corrected only where that one answers as wrong.
func TestVerdictOnAnEarlierProgram(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70}, "tax.same": {progTax60, progTax60, progTax70}})
	d := rig.Start(t, m)
	s := d.Session("tax")
	for method, want := range map[string]string{"net": "none", "same": "adopted"} {
		old := d.Call(s, method, 1000)
		operate(d, "tax", method, "regenerate", object{"reason": "anew"})
		d.Call(s, method, 500)
		said := verdict(d, old, object{"verdict": "wrong", "expected": 700})
		if said["generation"] != "gen-1" || said["correction"].(object)["state"] != want {
			t.Errorf("%s: %v, want %s", method, said, want)
		}
		d.WantValue(d.Call(s, method, 1000), 700, "persisted")
	}
	if asked(m, "tax", "net") != 2 || asked(m, "tax", "same") != 3 {
		t.Errorf("%d and %d requests, want 2 and 3", asked(m, "tax", "net"), asked(m, "tax", "same"))
	}
}

// Verdicts show in metrics, the call log, the history report, trends, pattern memory and recommendations: a wrong one
// is a user correction with its evidence.
func TestWhereVerdictsShow(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70}})
	d := rig.Start(t, m)
	d.Policy(object{"correction": "manual"})
	s := d.Session("tax")
	var wrong []rig.Reply
	for i := range 2 {
		wrong = append(wrong, d.Call(s, "net", 1000*(i+1)))
		verdict(d, wrong[i], object{"verdict": "wrong", "expected": 700 * (i + 1)})
	}
	right := d.Call(s, "net", 0)
	verdict(d, right, object{"verdict": "right"})
	for series, want := range map[string]float64{`recurgent_verdicts_total{verdict="wrong"}`: 2,
		`recurgent_verdicts_total{verdict="right"}`: 1, `recurgent_user_corrections_total{signal="verdict"}`: 2} {
		if got := d.Metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	listed := map[any]any{}
	for _, e := range d.List("/v1/calls?role=tax") {
		listed[e["call_id"]] = e["verdict"]
	}
	if listed[wrong[0].CallID] != "wrong" || listed[right.CallID] != "right" ||
		d.LogOf(wrong[1])["verdict"] != "wrong" {
		t.Errorf("the call log says %v", listed)
	}
	judged := object{"wrong": 2, "right": 1}
	if got := d.Get("/v1/reports/history-usage")["verdicts"]; !rig.Equal(judged, got) {
		t.Errorf("the history report says %v", got)
	}
	if got := d.Get("/v1/reports/trends?window=1h")["total"].(object); !rig.Equal(judged, got["verdicts"]) || got["corrections"] != 2.0 {
		t.Errorf("the trends say %v, %v corrections", got["verdicts"], got["corrections"])
	}
	advice := d.Recommendations("")
	if len(advice) != 1 || advice[0]["kind"] != "reforge" || !strings.Contains(advice[0]["reason"].(string),
		"2 of 3 calls wrong") || !rig.Equal(list(wrong[1].CallID, wrong[0].CallID), advice[0]["evidence"]) {
		t.Fatalf("recommended: %v", advice)
	}
	// Once a program holds what people expect, the verdicts are no evidence against it.
	operate(d, "tax", "net", "regenerate", object{})
	d.WantValue(d.Call(s, "net", 10), 7, "generated")
	if advice := d.Recommendations(""); len(advice) != 0 {
		t.Errorf("still recommended: %v", advice)
	}
}
