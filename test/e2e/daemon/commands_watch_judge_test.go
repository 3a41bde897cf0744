package daemon

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// On the screen a call is selected and judged; the line and the title say so, how far the correction has come, and when
// it is there. A verdict is taken back the same way, and Esc sends nothing.
func TestWatchJudges(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {share("60"), rig.Held(share("70"))}, "calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	d.Call(d.Session("calculator"), "add", 2, 3)
	s := d.Session("tax")
	wrong := d.Call(s, "net", 1000)
	w := rig.OnTerminal(t, 120, 10, append(rig.Environment(t.TempDir()), "RECURGENT_URL="+d.URL), "watch")
	w.Shows("tax.net(1000)", "2 calls")
	w.Press("w")
	w.Shows("select a call with ↑ first")
	w.Press("\x1b[A")
	w.Shows(">tax.net(1000)", "line 2 of 2, End follows  w wrong  r right  u undo")
	w.Press("w")
	w.Shows("tax.net(1000) = 600 is wrong. Right is (empty: not known): ")
	w.Press("70\x7f00\r") // with a slip
	w.Shows("tax.net(1000) = 600 is wrong. A note for the model (may be empty): ")
	w.Press("70 percent, not 60\r")
	w.Shows("tax.net(1000) → judged wrong, correction running", "1 doubted program")
	d.Call(s, "net", 10) // the old program answers meanwhile
	w.Shows("tax.net(10) → doubted program, correction running")
	m.Release()
	w.Shows("tax.net: correction adopted as gen-2 (other answers changed: 1), 1 attempt", "tax.net(1000) → judged wrong ")
	w.Lacks("1 doubted program")
	if v := d.Get("/v1/calls/" + wrong.CallID + "/verdict"); v["expected"] != 700.0 ||
		v["note"] != "70 percent, not 60" {
		t.Errorf("the verdict is %v", v)
	}
	if r := d.Call(s, "net", 1000); r.Outcome.Value != 700.0 {
		t.Errorf("tax.net(1000) is %v", r.Outcome.Value)
	}

	w.Press("u")
	w.Shows("tax.net(1000) = 600: Enter takes the verdict back, Esc does not")
	w.Press("\x1b")
	w.Lacks("takes the verdict back")
	w.Press("u\r")
	w.Shows("tax.net(1000): the verdict is taken back")
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/calls/"+wrong.CallID+"/verdict", nil)
	w.Press("u\r")
	w.Shows("the daemon refused: 404")
	w.Press("\x1b[Ar") // the call before it
	w.Shows("calculator.add(2, 3) = 5 is right: Enter says so, Esc does not")
	w.Press("\r")
	w.Shows("calculator.add(2, 3) → judged right")
	w.Press("q")
	w.Ends(0)
}
