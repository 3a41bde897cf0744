package evolve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// At most four capabilities, each seen at least twice in the last five events.
func TestPatterns(t *testing.T) {
	t.Parallel()
	event := func(at int, capabilities ...string) agent.PatternEvent {
		return agent.PatternEvent{CallID: fmt.Sprint(at), Timestamp: fmt.Sprintf("2026-11-21T00:00:%02d.000Z", at),
			Capabilities: capabilities}
	}
	events := []agent.PatternEvent{event(1, "old", "old"), event(2, "old"), event(3, "fetch", "fetch", "json"),
		event(4, "fetch", "html", "a", "b"), event(5, "json", "a", ""), event(6, "fetch", "b", "once"),
		event(7, "a", "json", "html")}
	want := []string{"a: seen in 3 of the last 5 calls", "json: seen in 3 of the last 5 calls",
		"fetch: seen in 3 of the last 5 calls", "html: seen in 2 of the last 5 calls"}
	if diff := cmp.Diff(want, PatternsForPrompt(events)); diff != "" {
		t.Error(diff)
	}
	if got := PatternsForPrompt(nil); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}

func method(calls ...Call) Method {
	for i := range calls {
		calls[i].CallID = fmt.Sprintf("call_%02d", i)
		if calls[i].Status == "" {
			calls[i].Status = agent.StatusOK
		}
	}
	return Method{Role: "movie finder", Method: "find", Calls: calls}
}

func weak(reasons ...string) Call { return Call{Weak: reasons} }
func reasked(c Call) Call         { c.CorrectedBy = "later"; return c }
func passed(c Call) Call          { c.Passed = true; return c }
func authored(kind string) Call {
	return Call{Status: agent.StatusError, ErrorType: kind, Authored: true, Class: agent.ClassAuthored}
}

// What evidence leads to what advice, at and around the thresholds.
func TestRecommend(t *testing.T) {
	t.Parallel()
	movies := "empty_array:/movies"
	fine := Call{}
	broken := Call{Status: agent.StatusError, ErrorType: agent.ErrExecution, Class: agent.ClassIntrinsic}
	drift := Call{Class: agent.ClassAdaptive}
	tests := []struct {
		name string
		m    Method
		want string // kind and constraint
	}{
		{"nothing wrong", method(fine, fine, fine), ""},
		{"three empty of three", method(weak(movies), weak(movies), weak(movies)),
			"strengthen_contract deliverable.constraints.properties.movies.min_items"},
		{"two empty", method(weak(movies), weak(movies)), ""},
		{"three empty of six", method(weak(movies), weak(movies), weak(movies), fine, fine, fine),
			"strengthen_contract deliverable.constraints.properties.movies.min_items"},
		{"three empty of seven", method(weak(movies), weak(movies), weak(movies), fine, fine, fine, fine), ""},
		{"two empty that were asked again", method(reasked(weak(movies)), reasked(weak(movies)), fine, fine, fine, fine,
			fine), "strengthen_contract deliverable.constraints.properties.movies.min_items"},
		{"an empty list", method(weak("empty_array:/"), weak("empty_array:/"), weak("empty_array:/")),
			"strengthen_contract deliverable.min_items"},
		{"empty, with a word", method(weak(movies, "weak_status:/status=empty"), weak(movies), weak(movies)),
			"strengthen_contract deliverable.constraints.properties.movies.min_items"},
		{"words alone", method(weak("weak_status:/status=fallback"), weak("weak_status:/status=fallback"),
			weak("weak_status:/status=partial")), "reforge"},
		{"low utility", method(authored("low_utility"), authored("low_utility"), authored("low_utility")), "reforge"},
		{"invalid input is the caller's", method(authored("invalid_input"), authored("invalid_input"),
			authored("invalid_input")), ""},
		{"intrinsic and adaptive failures", method(broken, drift, broken, fine, fine, fine, fine, fine, fine),
			"reforge"},
		{"two failures", method(broken, broken), ""},
		{"boundary", method(authored("wrong_tool_boundary"), authored("wrong_tool_boundary"),
			authored("wrong_tool_boundary"), fine), "split_boundary"},
		{"boundary, passed on", method(passed(authored("wrong_tool_boundary")), passed(authored("wrong_tool_boundary")),
			passed(authored("wrong_tool_boundary"))), ""},
		{"low utility, passed on", method(passed(authored("low_utility")), passed(authored("low_utility")),
			passed(authored("low_utility"))), ""},
		{"two boundary referrals", method(authored("wrong_tool_boundary"), authored("wrong_tool_boundary")), ""},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range Recommend([]Method{tt.m}, agent.DefaultPolicy().Recommendations) {
			got = append(got, strings.TrimSpace(r.Kind+" "+r.Proposal.Constraint))
			if r.Score <= 0 || r.Score > 1 || len(r.Evidence) == 0 || r.Reason == "" ||
				!strings.HasPrefix(r.ID, "rec_") || r.Proposal.Action == "" {
				t.Errorf("%s: incomplete: %+v", tt.name, r)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
	if got := Recommend([]Method{tests[2].m}, agent.RecommendPolicy{MinEvidence: 2, WeakRate: 0.5, BoundaryReferrals: 3,
		Corrections: 2, IntrinsicFailures: 3}); len(got) != 1 {
		t.Errorf("thresholds are policy, got %+v", got)
	}
}

// The proposal is the registered deliverable with one constraint more, and the simulation counts what it would
// have done.
func TestStrengthenAndSimulate(t *testing.T) {
	t.Parallel()
	empty, full := `{"status":"ok","movies":[]}`, `{"status":"ok","movies":["A"]}`
	m := method(reasked(weak("empty_array:/movies")), weak("empty_array:/movies"), reasked(weak("empty_array:/movies")),
		Call{}, Call{}, Call{}, Call{Status: agent.StatusError, ErrorType: "timeout"})
	asked := map[string]int{}
	m.Value = func(id string) json.RawMessage {
		asked[id]++
		return map[string]json.RawMessage{"call_00": json.RawMessage(empty), "call_01": json.RawMessage(empty),
			"call_03": json.RawMessage(full), "call_05": json.RawMessage(`{"status":"ok"}`)}[id]
	}
	m.Deliverable = json.RawMessage(
		`{"type": "object", "required": ["status", "movies"], "constraints": {"properties": {"n": {"type": "number"}}}}`)
	r := Recommend([]Method{m}, agent.DefaultPolicy().Recommendations)
	if len(r) != 1 {
		t.Fatalf("got %+v", r)
	}
	want := `{"constraints":{"properties":{"movies":{"min_items":1,"type":"array"},"n":{"type":"number"}}},"required":["status","movies"],"type":"object"}`
	if string(r[0].Proposal.Deliverable) != want {
		t.Errorf("got %s", r[0].Proposal.Deliverable)
	}
	s, err := contract.Compile(r[0].Proposal.Deliverable)
	if err != nil || s.Check(json.RawMessage(empty)) == nil || s.Check(json.RawMessage(full)) != nil {
		t.Errorf("the proposal does not bite: %v", err)
	}
	if diff := cmp.Diff(&Simulation{Calls: 6, Checked: 4, WouldFail: 4, WouldFailReasked: 2, WouldFailAccepted: 2},
		r[0].Simulation); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"call_02", "call_01", "call_00"}, r[0].Evidence); diff != "" {
		t.Error(diff)
	}
	if asked["call_06"] > 0 || asked["call_00"] != 1 {
		t.Errorf("values are looked up once, and of ok calls only: %v", asked)
	}
	m.Deliverable = r[0].Proposal.Deliverable
	if again := Recommend([]Method{m}, agent.DefaultPolicy().Recommendations); len(again) != 0 {
		t.Errorf("what is in force is not recommended again: %+v", again)
	}
}

// A proposal leaves the rest of the deliverable unchanged. Nothing is proposed that is in force already or cannot
// apply.
func TestConstrain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, deliverable, key, want string }{
		{"nothing yet", ``, "movies",
			`{"constraints":{"properties":{"movies":{"min_items":1,"type":"array"}}},"type":"object"}`},
		{"null may stay null", `{"type":"object","constraints":{"properties":{"movies":{"type":["array","null"]}}}}`,
			"movies",
			`{"constraints":{"properties":{"movies":{"min_items":1,"type":["array","null"]}}},"type":"object"}`},
		{"a bound of 0 is none", `{"constraints":{"properties":{"m":{"min_items":0}}}}`, "m",
			`{"constraints":{"properties":{"m":{"min_items":1,"type":"array"}}},"type":"object"}`},
		{"the whole", `{"type":"Array"}`, "", `{"min_items":1,"type":"Array"}`},
		{"the whole, demanded", `{"type":"array","min_items":2}`, "", ``},
		{"the whole, demanded in constraints", `{"type":"array","constraints":{"min_items":1}}`, "", ``},
		{"demanded as schema", `{"properties":{"m":{"type":"array","minItems":1}}}`, "m", ``},
		{"of another type", `{"constraints":{"properties":{"m":{"type":"string"}}}}`, "m", ``},
		{"prose", `"a list"`, "m", ``},
		{"no JSON", `{`, "m", ``},
	} {
		p, schema, err := constrain(json.RawMessage(tt.deliverable), tt.key, tt.key == "")
		if string(p.Deliverable) != tt.want || (err == nil) != (tt.want != "") || err == nil && schema.Empty() {
			t.Errorf("%s: got %s, %v, want %s", tt.name, p.Deliverable, err, tt.want)
		}
	}
}

// The score grows with the share, with the corrections among it and with the evidence, and with nothing else.
func TestScore(t *testing.T) {
	t.Parallel()
	movies := "empty_array:/movies"
	calls := func(weakN, reaskedN, fine int) Method {
		var all []Call
		for i := range weakN {
			c := weak(movies)
			if i < reaskedN {
				c = reasked(c)
			}
			all = append(all, c)
		}
		return method(append(all, make([]Call, fine)...)...)
	}
	for _, tt := range []struct {
		weak, reasked, fine int
		want                float64
	}{{3, 0, 3, 0.26}, {3, 0, 0, 0.46}, {3, 3, 0, 0.86}, {10, 0, 0, 0.6}, {10, 5, 0, 0.8}, {10, 10, 0, 1},
		{20, 20, 0, 1}} {
		r := Recommend([]Method{calls(tt.weak, tt.reasked, tt.fine)}, agent.DefaultPolicy().Recommendations)
		if len(r) != 1 || r[0].Score != tt.want {
			t.Errorf("%d weak, %d of them asked again, %d fine: got %+v, want a score of %v", tt.weak, tt.reasked,
				tt.fine, r, tt.want)
		}
	}
}

// evidenceOf aggregates the entries, oldest first, as a store does.
func evidenceOf(entries []agent.LogEntry) []agent.MethodEvidence {
	methods := map[[2]string]*agent.MethodEvidence{}
	for i := range entries {
		e := &entries[i]
		if !e.IsEvidence() {
			continue
		}
		k := [2]string{e.Role, e.Method}
		if methods[k] == nil {
			methods[k] = &agent.MethodEvidence{Role: e.Role, Method: e.Method}
		}
		methods[k].Add(e)
		if ref := e.UserCorrectionReferenceCallID; ref != "" {
			for _, m := range methods {
				m.Correct(ref, e.CallID, e.Timestamp)
			}
		}
	}
	var out []agent.MethodEvidence
	for _, m := range methods {
		out = append(out, *m)
	}
	return out
}

// The weak leaf of a tree is the cause, not the calls that passed on its answer; a verdict on the root applies to the
// calls below it; and the share is that of the newest calls, those without a remark included.
func TestCollect(t *testing.T) {
	t.Parallel()
	var entries []agent.LogEntry
	add := func(e agent.LogEntry) {
		e.CallID, e.Timestamp = fmt.Sprintf("call_%03d", len(entries)),
			fmt.Sprintf("2026-11-21T00:%02d:%02d.000Z", len(entries)/60, len(entries)%60)
		e.OutcomeStatus, e.ProgramSource = "ok", "persisted"
		entries = append(entries, e)
	}
	weak := []string{"empty_array:/movies"}
	for range 4 {
		root := fmt.Sprintf("call_%03d", len(entries)+1)
		add(agent.LogEntry{Role: "finder", Method: "find", Depth: 1, RootCallID: root, WeakSuccess: true,
			WeakSuccessReasons: weak})
		add(agent.LogEntry{Role: "assistant", Method: "ask", WeakSuccess: true, WeakSuccessReasons: weak,
			WeakNestedCalls: 1})
	}
	for range 6 {
		add(agent.LogEntry{Role: "finder", Method: "find"})
	}
	wrong := func(m *agent.MethodEvidence) []string {
		if m.Role == "assistant" {
			return []string{"call_001", "call_003"}
		}
		return nil
	}
	evidence := evidenceOf(entries)
	for i := range evidence {
		evidence[i].Judged = true
	}
	policy := agent.DefaultPolicy().Recommendations
	policy.Corrections = 3
	if got := Recommend(Collect(evidence, Sources{}), policy); len(got) != 0 {
		t.Errorf("four weak calls of ten suffice: %+v", got)
	}
	policy.Corrections = 2
	got := Recommend(Collect(evidence, Sources{Wrong: wrong}), policy)
	if len(got) != 2 || got[0].Role+got[1].Role != "assistantfinder" && got[0].Role+got[1].Role != "finderassistant" {
		t.Fatalf("got %+v", got)
	}
	for _, r := range got {
		if r.Role == "assistant" && r.Kind != Reforge {
			t.Errorf("the root is blamed for its leaf: %+v", r)
		}
		if r.Role == "finder" && (r.Simulation.Calls != 10 || r.Simulation.WouldFailReasked != 2 ||
			r.Simulation.WouldFailAccepted != 2) {
			t.Errorf("the leaf: %+v %+v", r, r.Simulation)
		}
	}
}

// Failure classes: a stored program that failed counts, though the call fixed it; a first program that was
// refused within the call does not.
func TestFailuresOnTheWay(t *testing.T) {
	t.Parallel()
	entry := func(i int, decision string) agent.LogEntry {
		return agent.LogEntry{CallID: fmt.Sprintf("call_%02d", i),
			Timestamp: fmt.Sprintf("2026-11-21T00:00:%02d.000Z", i), Role: "r", Method: decision, OutcomeStatus: "ok",
			ProgramSource:   "repaired",
			Selection:       agent.Selection{Decision: decision},
			AttemptFailures: []agent.AttemptFailure{{FailureClass: agent.ClassIntrinsic}}}
	}
	var entries []agent.LogEntry
	for i := range 3 {
		entries = append(entries, entry(i, "run"), entry(i, "forge"))
	}
	got := Recommend(Collect(evidenceOf(entries), Sources{}), agent.DefaultPolicy().Recommendations)
	if len(got) != 1 || got[0].Method != "run" || got[0].Kind != Reforge || len(got[0].Evidence) != 3 {
		t.Errorf("got %+v", got)
	}
}

// The same evidence gives the same bytes, in whatever order it is read.
func TestCollectIsDeterministic(t *testing.T) {
	t.Parallel()
	var entries []agent.LogEntry
	for i := range 40 {
		e := agent.LogEntry{CallID: fmt.Sprintf("call_%02d", i),
			Timestamp: fmt.Sprintf("2026-11-21T00:00:%02d.000Z", i), Role: fmt.Sprintf("role %d", i%3), Method: "find",
			OutcomeStatus: "ok", ProgramSource: "persisted", WeakSuccess: true,
			WeakSuccessReasons: []string{"empty_array:/a", "empty_array:/b"}}
		if i >= 3 {
			e.UserCorrectionDetected, e.UserCorrectionReferenceCallID = true, fmt.Sprintf("call_%02d", i-3)
		}
		entries = append(entries, e)
	}
	entries = append(entries, agent.LogEntry{CallID: "r", OutcomeStatus: agent.StatusRunning},
		agent.LogEntry{CallID: "s", OutcomeStatus: "ok", ProgramSource: agent.SourceNone, Method: "x="})
	advise := func(in []agent.MethodEvidence) []byte {
		b, err := json.Marshal(Recommend(Collect(in,
			Sources{Deliverable: func(*agent.MethodEvidence) json.RawMessage {
				return json.RawMessage(
					`{"required":["a","b"]}`)
			}}), agent.DefaultPolicy().Recommendations))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	evidence := evidenceOf(entries)
	first := advise(evidence)
	back := slices.Clone(evidence)
	slices.Reverse(back)
	for range 20 {
		if got := advise(back); !bytes.Equal(got, first) {
			t.Fatalf("got  %s\nwant %s", got, first)
		}
	}
	var got []Recommendation
	if err := json.Unmarshal(first, &got); err != nil || len(got) != 6 {
		t.Fatalf("got %d recommendations, %v", len(got), err)
	}
	if s := got[0].Simulation; s.WouldFailReasked == 0 || s.Calls == 0 {
		t.Errorf("corrections are not linked: %+v", s)
	}
}
