package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// hostile is the name of a role that is markup, a shell's command and a terminal's.
const hostile = "<img src=x onerror=alert(1)>'; touch x; $(id)"

// inbox lists what waits.
func inbox(d *rig.Daemon, query string) (all []map[string]any) {
	d.T.Helper()
	return d.List("/v1/inbox" + query)
}

// decide sends the first operation of an entry as it is.
func decide(d *rig.Daemon, entry map[string]any) {
	d.T.Helper()
	op := entry["operations"].([]any)[0].(map[string]any)
	var body []byte
	if op["body"] != nil {
		body = rig.Encode(d.T, op["body"])
	}
	if r := d.Send(op["method"].(string), op["path"].(string), body, nil); r.Status >= 300 {
		d.T.Errorf("%s: %d %s", op["name"], r.Status, r.Body)
	}
}

// one returns the one entry of that kind.
func one(d *rig.Daemon, kind string) map[string]any {
	d.T.Helper()
	all := inbox(d, "?kind="+kind)
	if len(all) != 1 || all[0]["kind"] != kind {
		d.T.Fatalf("%s: %v", kind, all)
	}
	return all[0]
}

// Each kind comes with evidence and goes away by its own first operation, sent as it is, whatever the names are.
func TestEachKindIsDecided(t *testing.T) {
	t.Parallel()
	reaches := rig.Program("\t_ = \"https://evil.example.org/x\"\n\treturn 1, nil")
	m := rig.NewModel(t, rig.Script{hostile + ".m": {rig.ProgEcho, rig.ProgEcho, rig.ProgEcho, rig.ProgEcho},
		"movie finder.find": {rig.ProgMoviesWeak}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"eve token-of-eve-0001\ncal token-of-cal-0002 scopes=read,call\nben token-of-ben-0003 scopes=read,call\n"))
	eve, cal, ben := d.As("token-of-eve-0001"), d.As("token-of-cal-0002"), d.As("token-of-ben-0003")
	eve.Policy(object{"correction": "manual", "recommendations": object{"min_evidence": 1, "weak_rate": 0.1,
		"corrections": 1}})
	s := cal.Session(hostile)
	call := cal.Call(s, "m", 1)

	// A proposal is its author's and the operators' to see.
	cal.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+call.CallID+"/verdict", object{"verdict": "right"})
	if got := inbox(ben, ""); len(got) != 0 {
		t.Errorf("ben sees %v", got)
	}
	if mine, all := one(cal, "proposal"), one(eve,
		"proposal"); mine["id"] != all["id"] || all["evidence"].(map[string]any)["example"] == nil {
		t.Errorf("got %v, for cal %v", all, mine)
	}
	decide(eve, one(eve, "proposal"))

	// A wrong answer that nobody corrects.
	wrong := cal.Call(s, "m", 2)
	eve.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+wrong.CallID+"/verdict",
		object{"verdict": "wrong", "note": "a private note"})
	if got := one(eve, "correction")["evidence"].(map[string]any); len(got["wrong"].([]any)) != 1 || got["wrong_count"] != 1.0 {
		t.Errorf("the evidence of a correction: %v", got)
	}
	if text := string(ben.Do(http.StatusOK, http.MethodGet, "/v1/inbox",
		nil).Body); strings.Contains(text, wrong.CallID) || strings.Contains(text, "private") ||
		!strings.Contains(text, `"wrong":[]`) {
		t.Errorf("ben sees %s", text)
	}
	one(eve, "correction")
	eve.Do(http.StatusNoContent, http.MethodDelete, "/v1/calls/"+wrong.CallID+"/verdict", nil)

	// A program of a person's that names another host, under approvals.
	eve.Do(http.StatusOK, http.MethodPut, rig.MethodPath(hostile, "m"), object{"code": reaches})
	if got := one(eve, "effects")["evidence"].(map[string]any); !rig.Equal([]any{"evil.example.org"}, got["new_hosts"]) || got["generation"] != "gen-2" || got["parent"] != "gen-1" {
		t.Errorf("the evidence of effects: %v", got)
	}
	decide(eve, one(eve, "effects"))
	if e := eve.Get(rig.MethodPath(hostile, "m") +
		"/effects"); e["origin"] != "approved" || !rig.Equal([]any{"evil.example.org"}, e["hosts"]) {
		t.Errorf("the manifest: %v", e)
	}
	eve.Do(http.StatusOK, http.MethodPost, rig.MethodPath(hostile, "m")+"/regenerate", object{})
	eve.Policy(object{"approval_required": true})
	forged := cal.Call(s, "m", 1)
	e := one(eve, "approval")
	if got := e["evidence"].(map[string]any); got["generation"] != "gen-3" || got["parent"] != "gen-2" ||
		got["answers_now"] != "gen-2" {
		t.Errorf("the evidence of an approval after %v: %v", forged, got)
	}
	decide(eve, e)
	eve.Policy(object{"approval_required": false})

	// A recommendation.
	eve.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder",
		object{"deliverable": object{"type": "object", "required": []any{"movies"}}})
	for range 4 {
		cal.Call(cal.Session("movie finder"), "find", "anything")
	}
	advice := inbox(eve, "?kind=recommendation")
	if len(advice) == 0 || advice[0]["role"] != "movie finder" ||
		len(advice[0]["evidence"].(map[string]any)["evidence"].([]any)) == 0 {
		t.Fatalf("recommendations: %v", advice)
	}
	for range advice {
		decide(eve, inbox(eve, "?kind=recommendation")[0])
	}
	d.Restart()
	eve.URL = d.URL
	if got := inbox(eve, ""); len(got) != 0 {
		t.Errorf("what is decided waits: %v", got)
	}
}
