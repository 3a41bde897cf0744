package evolve

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func TestWeak(t *testing.T) {
	t.Parallel()
	movies := `{"type":"object","required":["status","movies"]}`
	policy := agent.DefaultPolicy().WeakSuccess
	tests := []struct {
		name, value, deliverable string
		policy                   agent.WeakPolicy
		want                     []string
	}{
		{"a word and an empty required array", `{"status":"success_no_parse","movies":[]}`, movies, policy,
			[]string{"empty_array:/movies", "weak_status:/status=success_no_parse"}},
		{"a word in another spelling", `{"Status": "Success No-Parse"}`, ``, policy,
			[]string{"weak_status:/status=success_no_parse"}},
		{"a word that is escaped", `{"status":"no\u005fresults"}`, ``, policy,
			[]string{"weak_status:/status=no_results"}},
		{"a word one level down", `{"result":{"STATUS":"Partial"},"n":1}`, ``, policy,
			[]string{"weak_status:/result/status=partial"}},
		{"a word of an item", `{"orders":[{"status":"partial"}]}`, ``, policy, nil},
		{"a word two levels down", `{"a":{"b":{"status":"partial"}}}`, ``, policy, nil},
		{"a word in a text", `{"text":"status: partial","status":"\u0070artially"}`, ``, policy, nil},
		{"an empty array under a success in another spelling", `{"Status":"OK","movies":[]}`, ``, policy,
			[]string{"empty_array:/movies"}},
		{"a word alone, no contract", `{"status":"no_results"}`, ``, policy,
			[]string{"weak_status:/status=no_results"}},
		{"an empty required array under a success", `{"status":"ok","movies":[]}`, movies, policy,
			[]string{"empty_array:/movies"}},
		{"an empty constrained array", `{"movies":[]}`,
			`{"type":"object","constraints":{"properties":{"movies":{"type":"array"}}}}`, policy,
			[]string{"empty_array:/movies"}},
		{"an empty array by schema", `{"movies":[ ]}`, `{"properties":{"movies":{"type":["array","null"]}}}`, policy,
			[]string{"empty_array:/movies"}},
		{"an empty array of no interest", `{"status":"failed","notes":[],"movies":[1]}`, movies, policy, nil},
		{"an empty array that the deliverable does not name, under a success",
			`{"status":"ok","notes":[],"movies":[1]}`, movies, policy, []string{"empty_array:/notes"}},
		{"under a success, no contract", `{"status":"Success","movies":[ ]}`, ``, policy,
			[]string{"empty_array:/movies"}},
		{"under a weak word, no contract", `{"movies":[],"status":"partial"}`, ``, policy,
			[]string{"empty_array:/movies", "weak_status:/status=partial"}},
		{"under a success deeper down", `{"result":{"status":"ok","a/b":[]},"other":[]}`, ``, policy,
			[]string{"empty_array:/result/a~1b"}},
		{"of elements", `[{"status":"ok","items":[]},{"status":"ok","items":[]},{"status":"failed","x":[]}]`, ``,
			policy, []string{"empty_array:/*/items"}},
		{"of another object", `{"status":"ok","result":{"items":[]}}`, ``, policy, nil},
		{"the status deeper down", `{"items":[],"result":{"status":"ok"}}`, ``, policy, nil},
		{"too deep", strings.Repeat(`{"a":`, 9) + `{"status":"ok","items":[]}` + strings.Repeat(`}`, 9), ``, policy,
			nil},
		{"no success words", `{"status":"ok","movies":[]}`, ``, agent.WeakPolicy{EmptyArrays: true}, nil},
		{"an empty array without a contract", `{"movies":[]}`, ``, policy, nil},
		{"an empty list", `[]`, `{"type":"array"}`, policy, []string{"empty_array:/"}},
		{"an empty list that nobody asked for", `[]`, `{"type":"object"}`, policy, nil},
		{"a list of empty lists", `[[],[]]`, `{"type":"array"}`, policy, nil},
		{"the word in another field", `{"status":"ok","note":"no_results"}`, ``, policy, nil},
		{"the word deeper down", `{"a":{"status":"no_results"}}`, ``, policy,
			[]string{"weak_status:/a/status=no_results"}},
		{"the word as part of another", `{"status":"no_results_yet"}`, ``, policy, nil},
		{"a status that is no string", `{"status":["empty"]}`, ``, policy, nil},
		{"a string", `"empty"`, ``, policy, nil},
		{"null", `null`, movies, policy, nil},
		{"keys with slashes", `{"a/b~":[]}`, `{"required":["a/b~"]}`, policy, []string{"empty_array:/a~1b~0"}},
		{"odd deliverable", `{"movies":[]}`, `["x"]`, policy, nil},
		{"another vocabulary", `{"status":"meh","movies":[]}`, movies, agent.WeakPolicy{Statuses: []string{"meh"}},
			[]string{"weak_status:/status=meh"}},
		{"switched off", `{"status":"empty","movies":[]}`, movies, agent.WeakPolicy{}, nil},
	}
	for _, tt := range tests {
		got := Weak(json.RawMessage(tt.value), json.RawMessage(tt.deliverable), tt.policy)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		for _, r := range got {
			if weakKind(r) == "other" {
				t.Errorf("%s has no kind", r)
			}
		}
	}
}

func TestWeakCostsNothing(t *testing.T) {
	value := json.RawMessage(`{"status":"success","movies":[{"title":"A"},{"title":"B"}]}`)
	deliverable, p := json.RawMessage(`{"type":"object","required":["status","movies"]}`),
		agent.DefaultPolicy().WeakSuccess
	if n := testing.AllocsPerRun(100, func() { Weak(value, deliverable, p) }); n != 0 {
		t.Errorf("Weak allocates %v times on an ordinary value", n)
	}
}

func FuzzWeak(f *testing.F) {
	f.Add(`{"status":"empty","a":[]}`, `{"required":["a"]}`)
	f.Fuzz(func(t *testing.T, value, deliverable string) {
		Weak(json.RawMessage(value), json.RawMessage(deliverable), agent.DefaultPolicy().WeakSuccess)
	})
}

func TestCorrection(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	turn := func(seconds int, troubled bool, args ...string) Turn {
		u := Turn{At: at.Add(time.Duration(seconds) * time.Second), Troubled: troubled, Kwargs: json.RawMessage(`{}`)}
		for _, a := range args {
			b, _ := json.Marshal(a)
			u.Args = append(u.Args, b)
		}
		return u
	}
	tests := []struct {
		name        string
		before, now Turn
		dispatch    bool
		want        string
	}{
		{"the same again after trouble", turn(0, true, "action movies"), turn(5, false, "action movies"), false,
			SignalReask},
		{"at the edge of the window", turn(0, true, "a"), turn(180, false, "a"), false, SignalReask},
		{"after the window", turn(0, true, "a"), turn(181, false, "a"), false, ""},
		{"a clock that went back", turn(5, true, "a"), turn(0, false, "a"), false, ""},
		{"similar after trouble", turn(0, true, "show me action movies"), turn(5, false, "Show me all action movies!"),
			false, SignalReask},
		{"something else after trouble", turn(0, true, "action movies"), turn(5, false, "weather in Paris"), false, ""},
		{"a healthy tool called twice", turn(0, false, "a"), turn(5, false, "a"), false, ""},
		{"a healthy tool called with similar words", turn(0, false, "a b c"), turn(5, false, "a b c d"), false, ""},
		{"a dispatch method in other words", turn(0, false, "top news from google"),
			turn(5, false, "top news from google please"), true, SignalDispatch},
		{"a dispatch method, the same words", turn(0, false, "top news"), turn(5, false, "top news"), true, ""},
		{"a dispatch method, another question", turn(0, false, "top news"), turn(5, false, "best pizza"), true, ""},
		{"no arguments, after trouble", turn(0, true), turn(5, false), false, SignalReask},
	}
	for _, tt := range tests {
		if got := Correction(tt.before, tt.now, tt.dispatch, agent.DefaultPolicy().UserCorrection); got != tt.want {
			t.Errorf("%s: got %q, want %q (overlap %.2f)", tt.name, got, tt.want, Overlap(tt.before, tt.now))
		}
	}
	if got := Correction(turn(0, true, "a"), turn(1, false, "a"), false, agent.CorrectionPolicy{}); got != "" {
		t.Errorf("a window of 0 switches it off, got %q", got)
	}
	long := turn(0, true, strings.Repeat("word ", 100_000))
	if Overlap(long, long) != 1 {
		t.Error("long arguments are compared by their beginning")
	}
}

func BenchmarkWeak(b *testing.B) {
	value := json.RawMessage(`{"status":"success","movies":[{"title":"A"},{"title":"B"}]}`)
	deliverable, p := json.RawMessage(`{"type":"object","required":["status","movies"]}`),
		agent.DefaultPolicy().WeakSuccess
	for b.Loop() {
		Weak(value, deliverable, p)
	}
}

// For other owners, the reasons contain only declared names, and so does a recommendation.
func TestReasonsForOthers(t *testing.T) {
	t.Parallel()
	declared := func(name string) bool { return name == "movies" || name == "a/b" }
	got := WeakKinds([]string{"weak_status:/status=empty", "weak_status:/private=1/status=empty", "empty_array:/movies",
		"empty_array:/private=1", "empty_array:/other", "empty_array:/*/a~1b", "empty_array:/"}, declared)
	if want := []string{"weak_status:/status=empty", "weak_status:/*/status=empty", "empty_array:/movies",
		"empty_array:/*", "empty_array:/*/a~1b", "empty_array:/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m := Method{Role: "r", Method: "m", Deliverable: json.RawMessage(`{"type":"object"}`),
		Calls: []Call{{CallID: "call_1", Status: agent.StatusOK,
			Weak: []string{"empty_array:/movies", "empty_array:/private"}}}}
	recommended := Recommend([]Method{m}, agent.RecommendPolicy{MinEvidence: 1, WeakRate: 0.1, Corrections: 1,
		BoundaryReferrals: 1, IntrinsicFailures: 1})
	if len(recommended) != 2 {
		t.Errorf("got %s, want a stronger contract for each member", agent.Encoded(recommended))
	}
	for _, r := range recommended {
		shared := r.Shared(declared)
		text := string(agent.Encoded(shared))
		if strings.Contains(text, "private") || shared.Proposal.Deliverable != nil ||
			strings.Contains(string(agent.Encoded(r)), "movies") != strings.Contains(text, "movies") ||
			r.Proposal.Deliverable == nil {
			t.Errorf("got %s, of %s", text, agent.Encoded(r))
		}
	}
}
