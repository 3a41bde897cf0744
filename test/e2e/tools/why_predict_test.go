package tools

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A prediction is explained as a question to the model: no program, no other programs, what it cost, and no request
// that cannot be sent of it.
func TestPrediction(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgGiven}})
	m.Answer("", "", rig.Text("label: positive"))
	d := rig.Start(t, m)
	s := d.Session("r")
	r := d.Do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"session_id": s,
		"signature": map[string]any{"inputs": []any{map[string]any{"name": "review"}},
			"outputs": []any{map[string]any{"name": "label"}}},
		"inputs": map[string]any{"review": "a <b>word</b> of the review"}})
	var got struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(r.Body, &got); err != nil || got.CallID == "" {
		t.Fatalf("%s", r.Body)
	}
	x, page := explained(d, got.CallID)
	says(t, page, "It needed no program: a prediction asks the model itself.")
	if x.Cost.Usage.ModelRequests != 1 || x.Cost.Usage.PromptTokens == 0 || len(x.Alternatives) > 0 ||
		len(x.Counterfactuals) > 0 || x.Selection.Generation != "" {
		t.Errorf("the prediction: %+v, %+v, %+v, %+v", x.Selection, x.Cost, x.Alternatives, x.Counterfactuals)
	}
	follow(d, x.Next)
}

// A judgement that corrects a program shows in the explanations of both: the judged call says what was said of it and
// what came of that, the next one that the corrected program was selected, and why the old one was not.
func TestWhyOfCorrections(t *testing.T) {
	t.Parallel()
	times := func(rate string) string {
		return rig.Program("\tgross, _ := call.Arg(0, \"gross\").(float64)\n\treturn gross * " + rate + ", nil")
	}
	d := rig.Start(t, rig.NewModel(t, rig.Script{"r.m": {times("0.6"), times("0.7")}}))
	s := d.Session("r")
	wrong := d.Call(s, "m", 1000)
	d.WantValue(wrong, 600, "generated")
	judged := d.Send(http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict",
		rig.Encode(t, map[string]any{"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}),
		map[string]string{"Prefer": "wait=60"})
	if judged.Status != http.StatusOK {
		t.Fatalf("%d %s", judged.Status, judged.Body)
	}
	next := d.Call(s, "m", 2000)
	d.WantValue(next, 1400, "persisted")

	x, page := explained(d, wrong.CallID)
	says(t, page, "a person said that it is wrong", "gen-2: it was made during this call or after it",
		"recurgentd verdict "+wrong.CallID+" --drop")
	if x.Selection.Answered != "gen-1" {
		t.Errorf("the judged call: %+v", x.Selection)
	}

	x, page = explained(d, next.CallID)
	says(t, page, "gen-2", "gen-1: ")
	if x.Selection.Answered != "gen-2" || len(x.Alternatives) != 1 || x.Alternatives[0].Generation != "gen-1" ||
		x.Alternatives[0].WhyNot == "" || x.Cost.Usage.ModelRequests != 0 {
		t.Errorf("the next call: %+v, %+v", x.Alternatives, x.Cost)
	}
	follow(d, x.Next)
	// as the page of the judged call says
	if out, errs, code := d.Client("verdict", wrong.CallID, "--drop"); code != 0 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
