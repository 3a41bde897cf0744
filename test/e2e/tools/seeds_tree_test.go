package tools

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An assistant that hands every question to a finder, and says in a sentence what came back.
var (
	progAsks = rig.Program("\to := call.Tool(\"movie finder\").Call(\"find\", call.Arg(0, \"wish\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n" +
		"\treturn map[string]any{\"answer\": \"here is what I found\"}, nil")
	progPasses = rig.Program(
		"\to := call.Tool(\"movie finder\").Call(\"find\", call.Arg(0, \"wish\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	progFinds = rig.Program(
		"\t_ = strings.Fields(\"a b\")\n\treturn map[string]any{\"status\": \"success\", \"movies\": []any{}}, nil",
		"strings")
)

// nested returns the log entries of the finder's calls, oldest first.
func nested(d *rig.Daemon, role string) []map[string]any {
	list := d.List("/v1/calls?role=" + strings.ReplaceAll(role, " ", "%20"))
	slices.Reverse(list)
	return list
}

// 003:184, 207, 236: weak success is linked with the user's correction along the whole tree of calls. The weak leaf
// counts as the cause, whether its caller passes the value on or hides it. Nested calls are asked again or accepted
// when their root is.
func TestSeed003Line184(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		asks   string
		words  []any // of five questions
		signal string
	}{
		"passed on, the same words": {"advise", progPasses,
			[]any{"action movies", "action movies", "action movies", "action movies", "action movies"},
			"temporal_reask"},
		"hidden by the caller": {"advise", progAsks,
			[]any{"action movies", "action movies", "action movies", "action movies", "action movies"},
			"temporal_reask"},
		"a method of free text, other words": {"ask", progAsks, []any{"good old action movies",
			"good old action movies now", "good old action movies please", "good old action movies again",
			"good old action movies now"}, "temporal_reask"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := rig.Start(t, rig.NewModel(t, rig.Script{"assistant." + tt.method: {tt.asks},
				"movie finder.find": {progFinds}}))
			s := d.Session("assistant")
			var roots []rig.Reply
			for _, words := range tt.words {
				roots = append(roots, d.Call(s, tt.method, words))
			}
			check := func() {
				t.Helper()
				for i, root := range roots[1:] {
					if e := d.LogOf(root); e["user_correction_signal"] != tt.signal ||
						e["user_correction_reference_call_id"] != roots[i].CallID {
						t.Errorf("re-ask %d: %v of %v", i+1, e["user_correction_signal"],
							e["user_correction_reference_call_id"])
					}
				}
				leaves := nested(d, "movie finder")
				for i, e := range leaves {
					want := any(nil)
					if i < 4 {
						want = roots[i+1].CallID
					}
					if e["root_call_id"] != roots[i].CallID || e["weak_success"] != true || e["corrected_by"] != want {
						t.Errorf("leaf %d: root %v, weak %v, corrected by %v, want %v", i, e["root_call_id"],
							e["weak_success"], e["corrected_by"], want)
					}
					if one := d.Get("/v1/calls/" + e["call_id"].(string)); one["corrected_by"] != want {
						t.Errorf("leaf %d by itself is corrected by %v", i, one["corrected_by"])
					}
				}
				if len(leaves) != 5 {
					t.Errorf("%d nested calls, want 5", len(leaves))
				}
				advice := d.Recommendations("")
				if len(advice) != 1 || advice[0]["role"] != "movie finder" ||
					advice[0]["kind"] != "strengthen_contract" || !strings.Contains(fmt.Sprint(advice[0]["reason"]),
					"4 of them were asked again") {
					t.Fatalf("advised: %v", advice)
				}
				sim := advice[0]["simulation"].(map[string]any)
				if sim["would_fail_reasked"] != 4.0 || sim["would_fail_accepted"] != 1.0 || sim["calls"] != 5.0 {
					t.Errorf("simulated: %v", sim)
				}
			}
			check()
			d.Restart()
			check()
		})
	}
}

// 003:194: weak success is queryable in the log and in pattern memory, that of nested calls too, with the correction of
// their root.
func TestSeed003Line194(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"assistant.ask": {progAsks}, "movie finder.find": {progFinds}}))
	s := d.Session("assistant")
	first := d.Call(s, "ask", "action movies")
	again := d.Call(s, "ask", "action movies")
	if list := d.List("/v1/calls?weak_success=true"); len(list) != 2 || list[0]["role"] != "movie finder" ||
		list[0]["depth"] != 1.0 {
		t.Errorf("weak calls in the log: %v", list)
	}
	for range 2 {
		events, _ := d.Get("/v1/patterns/movie%20finder")["events"].([]any)
		if len(events) != 2 {
			t.Fatalf("pattern memory of the nested role: %v", events)
		}
		for i, root := range []rig.Reply{first, again} {
			e := events[i].(map[string]any)
			if e["weak_success"] != true || e["depth"] != 1.0 || e["root_call_id"] != root.CallID ||
				e["parent_call_id"] != root.CallID || !rig.Equal([]any{"text_scan"}, e["capabilities"]) {
				t.Errorf("event %d: %v", i, e)
			}
		}
		if by := events[0].(map[string]any)["corrected"]; by != again.CallID {
			t.Errorf("the first event is corrected by %v, want %s", by, again.CallID)
		}
		d.Restart()
	}
}

// 003:223: repeated weak success contributes to recommendations whatever other tools do meanwhile, after restarts, and
// after the stored aggregates are lost: they are rebuilt from the log.
func TestSeed003Line223(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak},
		"calculator.add": {rig.ProgAdd}}))
	s := d.Session("movie finder", object{"contract": rig.MovieContract})
	for range 5 {
		d.Call(s, "find", "action")
	}
	advice := func() string { return string(d.Do(http.StatusOK, http.MethodGet, "/v1/recommendations", nil).Body) }
	before := advice()
	if !strings.Contains(before, "strengthen_contract") || !strings.Contains(before, "5 of 5 ok calls") {
		t.Fatalf("advised: %s", before)
	}
	busy := d.Session("calculator")
	body := rig.Encode(t, object{"method": "add", "args": []any{1, 2}})
	for range 2100 {
		if r := d.Send(http.MethodPost, "/v1/sessions/"+busy+"/calls", body, nil); r.Status != http.StatusOK {
			t.Fatalf("%s", r.Body)
		}
	}
	if after := advice(); after != before {
		t.Errorf("after 2,100 calls of another tool: %s", after)
	}
	d.Restart()
	if after := advice(); after != before {
		t.Errorf("after a restart: %s", after)
	}
	d.Stop(syscall.SIGKILL)
	if err := os.Remove(d.State() + "/evidence.json"); err != nil {
		t.Fatal(err)
	}
	d.Start()
	if after := advice(); after != before {
		t.Errorf("after the aggregates were lost: %s", after)
	}
}

// 003:201, 210, 211, 5: applying a recommendation about a delegated tool changes its program: the model that forges it
// again sees the weak answers, the re-asks and the person's reason. Applying removes no evidence: other recommendations
// stay, and the same one comes back with all of its evidence if the new program is as weak.
func TestSeed003Line201(t *testing.T) {
	t.Parallel()
	find := func(word string) string {
		return rig.Program("\tif call.Arg(0, \"wish\") == \"words\" {\n\t\treturn map[string]any{\"status\": \"" +
			word + "\", \"n\": 1}, nil\n\t}\n\treturn map[string]any{\"status\": \"success\", \"movies\": []any{}}, nil")
	}
	m := rig.NewModel(t, rig.Script{"assistant.advise": {progPasses},
		"movie finder.find": {find("partial"), find("fallback")}})
	d := rig.Start(t, m)
	d.Policy(object{"fixtures_enabled": false}) // the new program need not reproduce the old one's weak answers
	s := d.Session("assistant")
	for _, wish := range []any{"words", "words", "words", "words", "lists", "lists", "lists", "lists"} {
		d.Call(s, "advise", wish)
	}
	advice := func() map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, r := range d.Recommendations("") {
			if r["role"] != "movie finder" {
				t.Errorf("the leaf is not blamed: %v", r)
			}
			out[r["kind"].(string)] = r
		}
		return out
	}
	before := advice()
	if len(before) != 2 || before["reforge"] == nil || before["strengthen_contract"] == nil {
		t.Fatalf("advised: %v", before)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+before["reforge"]["id"].(string)+"/apply",
		object{"reason": "people came away with nothing"})
	asked := len(m.Questions())
	if got := d.Call(s, "advise", "words").Outcome.Value; !rig.Equal(object{"status": "fallback", "n": 1}, got) {
		t.Errorf("the next call below an assistant answers %v", got)
	}
	if q := m.LastQuestion(); len(m.Questions()) != asked+1 || q.Role != "movie finder" {
		t.Fatalf("the model was asked %d times, last for %s", len(m.Questions())-asked, q.Role)
	} else {
		for _, part := range []string{"people came away with nothing", "a weak answer (weak_status:/status=partial)",
			"a weak answer (empty_array:/movies)", "the caller asked again"} {
			if !strings.Contains(q.User, part) {
				t.Errorf("the model is not shown %q:\n%s", part, q.User)
			}
		}
	}
	after := advice()
	if after["reforge"] != nil || after["strengthen_contract"] == nil ||
		!rig.Equal(before["strengthen_contract"]["evidence"], after["strengthen_contract"]["evidence"]) {
		t.Errorf("after applying one: %v", after)
	}
	for range 3 {
		d.Call(s, "advise", "words")
	}
	back := advice()["reforge"]
	if back == nil || back["id"] != before["reforge"]["id"] || len(back["evidence"].([]any)) != 8 {
		t.Errorf("a new program that is as weak: %v", back)
	}
}
