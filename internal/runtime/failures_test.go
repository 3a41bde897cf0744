package runtime

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// More of the labelled failures, as evidence: what TestClassify does not hold.
func TestClassifyMore(t *testing.T) {
	const feed = "https://feeds.example/rss"
	one := func(status int, kind, shape string) []sandbox.Fetch {
		return []sandbox.Fetch{{URL: feed, Status: status, ErrorKind: kind, Shape: shape}}
	}
	known := map[string]string{feed: "rss"}
	tests := []struct {
		name string
		e    Evidence
		want agent.Class
	}{
		{"remote 500", Evidence{Authored: true, ErrorType: "fetch_failed", Fetches: one(500, "", "")}, agent.ClassExtrinsic},
		{"remote 502", Evidence{Authored: true, ErrorType: "fetch_failed", Fetches: one(502, "", "")}, agent.ClassExtrinsic},
		{"remote 504", Evidence{ErrorType: agent.ErrContractViolation, Fetches: one(504, "", "")}, agent.ClassExtrinsic},
		{"429, then a value that breaks the contract", Evidence{ErrorType: agent.ErrContractViolation, Fetches: one(429, "", "")}, agent.ClassExtrinsic},
		{"the fetch itself took too long", Evidence{Authored: true, ErrorType: agent.ErrTool, Fetches: one(0, "timeout", "")}, agent.ClassExtrinsic},
		{"the connection broke", Evidence{Authored: true, ErrorType: agent.ErrTool, Fetches: one(0, "network", "")}, agent.ClassExtrinsic},
		{"no such host, told as parse_failed", Evidence{Authored: true, ErrorType: agent.ErrParseFailed, Fetches: one(0, "dns", "")}, agent.ClassExtrinsic},
		{"too large an answer", Evidence{ErrorType: agent.ErrExecution, Fetches: one(0, "too_large", "")}, agent.ClassIntrinsic},
		{"remote 400", Evidence{Authored: true, ErrorType: "bad_request", Fetches: one(400, "", "")}, agent.ClassAuthored},
		{"remote 401", Evidence{Authored: true, ErrorType: "unauthorized", Fetches: one(401, "", "")}, agent.ClassAuthored},
		{"remote 403, index out of range over it", Evidence{ErrorType: agent.ErrExecution, Fetches: one(403, "", "")}, agent.ClassIntrinsic},
		{"a good fetch, then 503", Evidence{Authored: true, ErrorType: "fetch_failed", Fetches: append(one(200, "", "rss"), one(503, "", "")...), Shapes: known}, agent.ClassExtrinsic},
		{"drift and an outage: the outage counts", Evidence{ErrorType: agent.ErrExecution, Fetches: append(one(200, "", "html"), one(503, "", "")...), Shapes: known}, agent.ClassExtrinsic},
		{"an error page of status 404 has another form", Evidence{ErrorType: agent.ErrExecution, Fetches: one(404, "", "html"), Shapes: known}, agent.ClassIntrinsic},
		{"drift, no JSON form", Evidence{ErrorType: agent.ErrNonSerializable, Fetches: one(200, "", "html"), Shapes: known}, agent.ClassAdaptive},
		{"drift, memory", Evidence{ErrorType: agent.ErrResourceExhausted, Fetches: one(200, "", "html"), Shapes: known}, agent.ClassAdaptive},
		{"drift of a source never seen", Evidence{ErrorType: agent.ErrExecution, Fetches: one(200, "", "html"), Shapes: map[string]string{"https://other.example": "rss"}}, agent.ClassIntrinsic},
		{"a delegated value has its old form", Evidence{ErrorType: agent.ErrExecution, Nested: map[string]string{"h.l": "array"}, Shapes: map[string]string{"h.l": "array"}}, agent.ClassIntrinsic},
		{"not found, by its own name", Evidence{Authored: true, ErrorType: "not_found"}, agent.ClassAuthored},
		{"says of itself that it timed out", Evidence{Authored: true, ErrorType: agent.ErrTimeout}, agent.ClassAuthored},
		{"says of itself that it was canceled", Evidence{Authored: true, ErrorType: agent.ErrCanceled}, agent.ClassAuthored},
		{"unsupported capability", Evidence{Authored: true, ErrorType: agent.ErrUnsupportedCapability}, agent.ClassAuthored},
		{"processor time used up", Evidence{ErrorType: agent.ErrTimeout}, agent.ClassIntrinsic},
		{"client gone during drift", Evidence{Interrupted: true, ErrorType: agent.ErrCanceled, Fetches: one(200, "", "html"), Shapes: known}, agent.ClassNone},
	}
	for _, tt := range tests {
		if got := Classify(tt.e); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Failures of real programs in real runners, labelled.
func TestFailuresOfRealPrograms(t *testing.T) {
	tests := []struct {
		name, code, errorType string
		class                 agent.Class
	}{
		{"syntax", "package tool\n\nfunc Run(call", agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"type", run("\tvar n int = \"text\"\n\treturn n, nil"), agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"undefined", run("\treturn unknown(), nil"), agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"arity of a call", run("\tf := func(a int) int { return a }\n\treturn f(1, 2), nil"), agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"arity of Run", "package tool\n\nfunc Run(a int) int { return a }\n", agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"no Run", "package tool\n\nfunc Walk() {}\n", agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"import", "package tool\n\nimport (\n\t\"os\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return os.Getpid(), nil }\n", agent.ErrGuardrailExhausted, agent.ClassIntrinsic},
		{"panic", run("\tpanic(\"boom\")"), agent.ErrExecution, agent.ClassIntrinsic},
		{"index", run("\treturn call.Args[7], nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"nil map", run("\tvar m map[string]int\n\tm[\"a\"] = 1\n\treturn m, nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"type assertion", run("\tvar v any = 1\n\treturn v.(string), nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"division", run("\tn := len(call.Args)\n\treturn 1 / n, nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"function value", run("\treturn func() {}, nil"), agent.ErrNonSerializable, agent.ClassIntrinsic},
		{"not a number", run("\treturn math.NaN(), nil", "math"), agent.ErrNonSerializable, agent.ClassIntrinsic},
		{"endless loop", run("\tfor {\n\t}"), agent.ErrTimeout, agent.ClassIntrinsic},
		{"endless recursion", run("\tvar f func(int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil"), agent.ErrResourceExhausted + " " + agent.ErrTimeout, agent.ClassIntrinsic}, // on a slow machine the deadline comes first
		{"authored", run("\treturn nil, recurgent.Fail(\"not_today\", \"no\")"), "not_today", agent.ClassAuthored},
		{"plain error", run("\treturn nil, errors.New(\"no\")", "errors"), agent.ErrTool, agent.ClassAuthored},
		{"denied fetch, passed on", run("\t_, err := call.Fetch(\"http://127.0.0.1:1/\")\n\treturn nil, err"), "denied", agent.ClassAuthored},
	}
	programs := map[string][]string{}
	for _, tt := range tests {
		programs["f."+tt.name] = []string{tt.code}
	}
	r, _ := newRuntime(t, programs)
	r.o.RunTimeout = time.Second
	patchPolicy(t, r, `{"guardrail_recovery_budget": 0, "execution_repair_budget": 0}`)
	_, call := conversation(t, r, SessionRequest{Role: "f"})
	for _, tt := range tests {
		got := call(tt.name)
		v, err := r.store.Call(t.Context(), got.CallID)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Fields(tt.errorType), got.Outcome.ErrorType) || v.Log.FailureClass != tt.class {
			t.Errorf("%s: got %s (%s) %s, want %s (%s)", tt.name, got.Outcome.ErrorType, v.Log.FailureClass, got.Outcome.ErrorMessage, tt.errorType, tt.class)
		}
	}
}

// A program that the gate refuses is told once in the log, by the call that asked for it and by those that waited with it.
func TestRefusedProgramIsToldOnce(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.m": {"package tool\n\nfunc Walk() {}\n"}})
	_, call := conversation(t, r, SessionRequest{Role: "r"})
	v, err := r.store.Call(t.Context(), call("m").CallID)
	if err != nil || len(v.Log.AttemptFailures) != 2 {
		t.Errorf("%d programs were refused by the log (%v), want 2: the first one and its mending", len(v.Log.AttemptFailures), err)
	}
}
