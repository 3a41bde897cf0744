//go:build !scripted

package runtime

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// Failures of real programs in real runners, labelled.
func TestFailuresOfRealPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on small deadlines of real programs")
	}
	tests := []struct {
		name, code, errorType string
		class                 agent.Class
	}{
		{"syntax", "package tool\n\nfunc Run(call", agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"type", run("\tvar n int = \"text\"\n\treturn n, nil"), agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"undefined", run("\treturn unknown(), nil"), agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"arity of a call", run("\tf := func(a int) int { return a }\n\treturn f(1, 2), nil"), agent.ErrInvalidCode,
			agent.ClassIntrinsic},
		{"results of Run", "package tool\n\nfunc Run(a int) (int, int, int) { return a, a, a }\n", agent.ErrInvalidCode,
			agent.ClassIntrinsic},
		{"no Run", "package tool\n\nfunc Walk() {}\n", agent.ErrInvalidCode, agent.ClassIntrinsic},
		{"import", "package tool\n\nimport (\n\t\"os\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return os.Getpid(), nil }\n", agent.ErrGuardrailExhausted, agent.ClassIntrinsic},
		{"panic", run("\tpanic(\"boom\")"), agent.ErrExecution, agent.ClassIntrinsic},
		{"index", run("\treturn call.Args[7], nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"nil map", run("\tvar m map[string]int\n\tm[\"a\"] = 1\n\treturn m, nil"), agent.ErrExecution,
			agent.ClassIntrinsic},
		{"type assertion", run("\tvar v any = 1\n\treturn v.(string), nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"division", run("\tn := len(call.Args)\n\treturn 1 / n, nil"), agent.ErrExecution, agent.ClassIntrinsic},
		{"function value", run("\treturn func() {}, nil"), agent.ErrNonSerializable, agent.ClassIntrinsic},
		{"not a number", run("\treturn math.NaN(), nil", "math"), agent.ErrNonSerializable, agent.ClassIntrinsic},
		{"endless loop", run("\tfor {\n\t}"), agent.ErrTimeout, agent.ClassIntrinsic},
		// on a slow machine the deadline comes first
		{"endless recursion", run(
			"\tvar f func(int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil"),
			agent.ErrResourceExhausted + " " + agent.ErrTimeout, agent.ClassIntrinsic},
		{"authored", run("\treturn nil, recurgent.Fail(\"not_today\", \"no\")"), "not_today", agent.ClassAuthored},
		{"plain error", run("\treturn nil, errors.New(\"no\")", "errors"), agent.ErrTool, agent.ClassIntrinsic},
		{"denied fetch, passed on", run("\t_, err := call.Fetch(\"http://127.0.0.1:1/\")\n\treturn nil, err"), "denied",
			agent.ClassAuthored},
	}
	programs := map[string][]string{}
	for _, tt := range tests {
		programs["f."+tt.name] = []string{tt.code}
	}
	r, _ := newRuntime(t, programs)
	r.env.RunTimeout = time.Second
	patchPolicy(t, r, `{"guardrail_recovery_budget": 0, "execution_repair_budget": 0}`)
	_, call := conversation(t, r, sessions.Request{Role: "f"})
	for _, tt := range tests {
		got := call(tt.name)
		v, err := r.env.Store.Call(t.Context(), got.CallID)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Fields(tt.errorType), got.Outcome.ErrorType) || v.Log.FailureClass != tt.class {
			t.Errorf("%s: got %s (%s) %s, want %s (%s)", tt.name, got.Outcome.ErrorType, v.Log.FailureClass,
				got.Outcome.ErrorMessage, tt.errorType, tt.class)
		}
	}
}

// A program that the gate refuses is logged once, for the call that asked for it and those that waited with it.
func TestRefusedProgramIsLoggedOnce(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.m": {"package tool\n\nfunc Walk() {}\n"}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	v, err := r.env.Store.Call(t.Context(), call("m").CallID)
	if err != nil || len(v.Log.AttemptFailures) != 2 {
		t.Errorf("the log has %d refused programs (%v), want 2: the first one and its repair",
			len(v.Log.AttemptFailures), err)
	}
}
