package tools

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Where prices are known a call says what its requests cost, and a warm one that it cost nothing.
func TestMoney(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgGiven}})
	prices := rig.WriteFile(t, "prices.yaml",
		"currency: EUR\nmodels:\n  scripted: {input: 2000, cached_input: 500, output: 8000}\n")
	d := rig.Start(t, m, "--model-prices", prices)
	s := d.Session("r")
	cold, warm := d.Call(s, "m", 1), d.Call(s, "m", 2)
	x, page := explained(d, cold.CallID)
	used := x.Cost.Usage
	want := float64(used.PromptTokens)*2000/1e6 + float64(used.CompletionTokens)*8000/1e6
	if m := x.Cost.Money; m == nil || m.Currency != "EUR" || want == 0 || math.Abs(m.Amount-want) > 1e-9 {
		t.Errorf("got %+v, want %g EUR", m, want)
	}
	says(t, page, "which cost at most ", " EUR.")
	if x, _ = explained(d, warm.CallID); x.Cost.Money == nil || x.Cost.Money.Amount != 0 {
		t.Errorf("a warm call: %+v", x.Cost.Money)
	}
}

// A call that no model answered says that it was the provider, and offers to ask again.
func TestOutage(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {openaitest.Reply{Status: http.StatusBadRequest}}})
	d := rig.Start(t, m)
	got := d.Call(d.Session("r"), "m", 1)
	d.WantError(got, "provider")
	x, page := explained(d, got.CallID)
	says(t, page, "No program answered. The model was asked for a new program because the method had none.",
		"Check the model with recurgentd doctor", "provider")
	if strings.Contains(page, "passed  confinement") {
		t.Errorf("nothing ran, and was confined:\n%s", page)
	}
	if x.Selection.Program != "none" || len(x.Alternatives) > 0 || x.Cost.Money != nil {
		t.Errorf("%+v, %+v, %+v", x.Selection, x.Alternatives, x.Cost)
	}
}

// Of a call whose session was deleted the page has what the log keeps, and nothing of what was asked; each request that
// it offers works.
func TestErasedCall(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"r.m": {rig.ProgGiven, rig.ProgGiven}}))
	s := d.Session("r")
	got := d.Call(s, "m", "a-word-of-the-session")
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	x, page := explained(d, got.CallID)
	for range 2 {
		says(t, page, "The arguments are not kept any more.")
		if strings.Contains(page, "a-word-of-the-session") || strings.Contains(page, s) {
			t.Errorf("the page names what was of the session:\n%s", page)
		}
		d.Restart()
		x, page = explained(d, got.CallID)
	}
	follow(d, x.Next)
}

// A file that was given stands in the page by its reference.
func TestFileArgument(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"r.m": {rig.ProgGiven}}))
	up := d.Send(http.MethodPost, "/v1/files", []byte("the bytes of the file"),
		map[string]string{"Content-Type": "text/plain"})
	id, _ := up.Object(t)["id"].(string)
	got := d.Call(d.Session("r"), "m", map[string]any{"$file": id})
	x, page := explained(d, got.CallID)
	says(t, page, id)
	if strings.Contains(page, "the bytes") || id == "" || x.Status != "ok" {
		t.Errorf("%s %s:\n%s", up.Body, x.Status, page)
	}
}
