package tools

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// When a call's retries are used up, its client gets the same message whatever happened; the
// type stays what the evidence says, and the metadata and the log say what happened. A program that calls another
// gets the original error.
func TestExhaustionIsNormalised(t *testing.T) {
	t.Parallel()
	const said = "This request couldn't be completed after multiple attempts."
	relay := func(method string) string {
		return rig.Program("\to := call.Tool(\"e\").Call(\"" + method +
			"\")\n\treturn map[string]any{\"type\": o.ErrorType, \"message\": o.ErrorMessage}, nil")
	}
	cases := []struct {
		method, code string
		contract     map[string]any
		errorType    string
		metadata     map[string]any
		raw, nested  string // part of the raw message, the type that a calling program sees
	}{
		{"imports", "package tool\n\nimport (\n\t\"net\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return net.Interfaces() }\n", nil, "guardrail_retry_exhausted",
			map[string]any{"boundary": "guardrail_exhaustion_boundary_v1",
				"guardrail_class": "dependency_policy_violation", "guardrail_subtype": "import_not_allowed"}, `"net"`,
			"dependency_policy_violation"},
		{"mutates", rig.Program("\tbase64.StdEncoding = nil\n\treturn 1, nil", "encoding/base64"), nil,
			"guardrail_retry_exhausted",
			map[string]any{"boundary": "guardrail_exhaustion_boundary_v1", "guardrail_class": "tool_registry_violation",
				"guardrail_subtype": "foreign_state_mutation"}, "StdEncoding", "tool_registry_violation"},
		{"broken", "package tool\n\nfunc Run(call", nil, "invalid_code",
			map[string]any{"boundary": "guardrail_exhaustion_boundary_v1", "guardrail_class": "invalid_code",
				"guardrail_subtype": "does_not_compile"}, "syntax error", "invalid_code"},
		{"panics", rig.Program("\tpanic(\"secret detail\")"), nil, "execution",
			map[string]any{"boundary": "execution_exhaustion_boundary_v1"}, "secret detail", "execution"},
		{"violates", rig.Program("\treturn []any{}, nil"), map[string]any{"type": "array", "min_items": 1},
			"contract_violation",
			map[string]any{"boundary": "outcome_exhaustion_boundary_v1", "mismatch": "min_items_violation",
				"expected_min_items": 1, "actual_items": 0}, "", ""},
	}
	answers := rig.Script{}
	for _, c := range cases {
		answers["e."+c.method] = []any{c.code}
		answers["outer."+c.method] = []any{relay(c.method)}
	}
	m := rig.NewModel(t, answers)
	d := rig.Start(t, m)
	d.Policy(map[string]any{"backoff": map[string]any{"base_seconds": 0}}) // each call tries
	outer := d.Session("outer")
	for _, c := range cases {
		body := map[string]any{"method": c.method}
		if c.contract != nil {
			body["contract"] = map[string]any{"deliverable": c.contract}
		}
		got := d.Invoke(d.Session("e"), body)
		d.WantError(got, c.errorType)
		o := got.Outcome
		if o.ErrorMessage != said || o.Metadata["raw_error_type"] == nil ||
			!strings.Contains(o.Metadata["raw_error_message"].(string), c.raw) {
			t.Errorf("%s: %q, %v", c.method, o.ErrorMessage, o.Metadata)
		}
		for k, v := range c.metadata {
			if !rig.Equal(v, o.Metadata[k]) {
				t.Errorf("%s: %s is %v, want %v", c.method, k, o.Metadata[k], v)
			}
		}
		e := d.LogOf(got)
		failures, _ := e["attempt_failures"].([]any)
		if len(failures) < 2 || !strings.Contains(string(rig.MustJSON(failures)), mustText(t, c.raw)) ||
			e["outcome_error_metadata"].(map[string]any)["raw_error_message"] != o.Metadata["raw_error_message"] {
			t.Errorf("%s: the log has %v", c.method, e["attempt_failures"])
		}
		if c.nested == "" {
			continue
		}
		nested := d.Call(outer, c.method)
		if v, _ := nested.Outcome.Value.(map[string]any); v["type"] != c.nested ||
			!strings.Contains(v["message"].(string), c.raw) {
			t.Errorf("%s: a calling program got %+v", c.method, nested.Outcome)
		}
	}
}

// An error with which the daemon gave up is not an answer of a program: it cannot be judged right, and nothing says so.
func TestExhaustedErrorIsNoAnswer(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.to_celsius": {rig.Program(readsF), rig.Program(readsF),
		rig.Program(readsF)}})
	d := rig.Start(t, m)
	got := d.CallWith(d.Session("units"), "to_celsius", map[string]any{"fahrenheit": 100})
	d.WantError(got, "invalid_input")
	if got.Outcome.Authored || got.Outcome.Metadata["raw_error_message"] == nil {
		t.Errorf("got %+v", got.Outcome)
	}
	_, page := explained(d, got.CallID)
	says(t, page, "The daemon gave up after 2 attempts.", "The last one failed with invalid_input: \"f must be a number",
		"Ask again: the model gets another try.")
	if strings.Contains(page, "recurgentd right") || strings.Contains(page, "returned that error") {
		t.Errorf("the error counts as an answer:\n%s", page)
	}
	refused(d, got.CallID, object{"verdict": "right"}, http.StatusUnprocessableEntity, "invalid_verdict")
	if _, errs, _ := d.Client("right", got.CallID); !strings.Contains(errs, "the daemon gave up") {
		t.Errorf("recurgentd right: %s", errs)
	}
}

// mustText is the text as it stands within JSON.
func mustText(t *testing.T, s string) string {
	t.Helper()
	quoted := string(rig.Encode(t, s))
	return quoted[1 : len(quoted)-1]
}

// The command line adds the last failure, and the command that explains the call.
func TestExhaustionOnTheCommandLine(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"e.m": {rig.ProgMayPanic}}))
	_, errs, code := d.Client("call", "e", "m", "bad")
	id := regexp.MustCompile(`(?m)^call (\S+)$`).FindStringSubmatch(errs)
	if code != 1 || id == nil || !strings.Contains(errs, "after multiple attempts. The last failure: execution: ") ||
		!strings.Contains(errs, "boom") || !strings.Contains(errs, "recurgentd why "+id[1]) {
		t.Errorf("%d: %s", code, errs)
	}
}

// A failure without a retry keeps its own message: there were no multiple attempts.
func TestOneAttemptKeepsItsMessage(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"e.m": {rig.ProgMayPanic}}))
	d.Policy(map[string]any{"execution_repair_budget": 0})
	got := d.Call(d.Session("e"), "m", "bad")
	if d.WantError(got, "execution"); !strings.Contains(got.Outcome.ErrorMessage, "boom") ||
		got.Outcome.Metadata["boundary"] != nil {
		t.Errorf("got %+v", got.Outcome)
	}
}

// Changes of the context by a failed attempt are reverted before the next; the log keeps at most 8
// attempts, with messages of at most 400 characters.
func TestAttemptsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	writes := "\tif n, ok := call.Context[\"n\"].(float64); ok {\n\t\tcall.Context[\"n\"] = n + 1\n\t} else {\n\t\tcall.Context[\"n\"] = 1.0\n\t}\n"
	m := rig.NewModel(t, rig.Script{"c.m": {rig.Program(writes+"\tpanic(strings.Repeat(\"long \", 500))", "strings"),
		rig.Program(writes + "\treturn call.Context[\"n\"], nil")},
		"c.always": {rig.Program(writes+"\tpanic(strings.Repeat(\"long \", 500))", "strings")}})
	d := rig.Start(t, m)
	s := d.Session("c")
	got := d.Call(s, "m")
	d.WantValue(got, 1, "generated")
	if c := d.Get("/v1/sessions/" + s + "/context"); !rig.Equal(1, c["n"]) {
		t.Errorf("context %v after one failed attempt and one good one", c)
	}
	if e := d.LogOf(got); e["rollback_applied"] != true || e["execution_repair_attempts"] != 1.0 ||
		e["retry_feedback_injected"] != true {
		t.Errorf("log: rollback %v, repairs %v, feedback %v", e["rollback_applied"], e["execution_repair_attempts"],
			e["retry_feedback_injected"])
	}
	d.Policy(map[string]any{"execution_repair_budget": 10})
	failed := d.Call(s, "always")
	d.WantError(failed, "execution")
	failures := d.LogOf(failed)["attempt_failures"].([]any)
	if len(failures) != 8 || failed.Attempts != 11 {
		t.Errorf("%d attempts on the log of %d", len(failures), failed.Attempts)
	}
	for _, f := range failures {
		if text := f.(map[string]any)["error_message"].(string); len([]rune(text)) > 401 {
			t.Errorf("a message of %d characters", len([]rune(text)))
		}
	}
	if c := d.Get("/v1/sessions/" + s + "/context"); !rig.Equal(1, c["n"]) {
		t.Errorf("context %v after a failed call", c)
	}
}
