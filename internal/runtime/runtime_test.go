//go:build !scripted

package runtime

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	add       = "\ta, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"
	boomOnBad = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil"
	breaks    = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\treturn \"broken\", nil"
	fixes     = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil"
)

// The first call is forged, the next ones ask no model.
func TestForgeOnceThenWarm(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"calculator.add": {run(add)}})
	_, call := conversation(t, r, sessions.Request{Role: "calculator"})
	wantReply(t, "cold", call("add", 2, 3), "5 generated")
	wantReply(t, "warm", call("add", 40, 2), "42 persisted")
	_, other := conversation(t, r, sessions.Request{Role: "calculator"}) // Another session
	wantReply(t, "another session", other("add", 1, 1), "2 persisted")
	if n := model.Count("calculator.add", ""); n != 1 {
		t.Errorf("%d model requests, want 1", n)
	}
}

// Calls that need the same program at the same time forge once.
func TestSingleFlight(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"calculator.add": {run(add)}})
	model.Block = make(chan struct{})
	const n = 16
	replies := make(chan Reply, n)
	var ready sync.WaitGroup
	for range n {
		_, call := conversation(t, r, sessions.Request{Role: "calculator"})
		ready.Add(1)
		go func() {
			ready.Done()
			replies <- call("add", 2, 3)
		}()
	}
	ready.Wait()
	close(model.Block)
	for range n {
		if got := <-replies; string(got.Outcome.Value) != "5" {
			t.Errorf("got %s %s", got.Outcome.Value, got.Outcome.ErrorMessage)
		}
	}
	if got := model.Count("calculator.add", ""); got != 1 {
		t.Errorf("%d model requests, want 1", got)
	}
	a, err := r.env.Store.Artifact(t.Context(), "calculator", "add")
	if err != nil {
		t.Fatal(err)
	}
	if a.SuccessCount != n || len(a.Generations) != 1 {
		t.Errorf("%d successes of %d generations, want %d of 1", a.SuccessCount, len(a.Generations), n)
	}
}

// A stored program that fails is repaired with its code, class and message.
func TestRepair(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"r.m": {run(boomOnBad), run(fixes)}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "cold", call("m", 1), "1 generated")
	wantReply(t, "repaired", call("m", "bad"), `"fixed" repaired`)
	wantReply(t, "warm", call("m", "bad"), `"fixed" persisted`)
	last := model.Requests()[1].Messages[len(model.Requests()[1].Messages)-1].Content
	for _, part := range []string{"<failed_code>", `panic("boom")`, "<failure_class>intrinsic</failure_class>",
		"boom"} {
		if !strings.Contains(last, part) {
			t.Errorf("the repair request lacks %q:\n%s", part, last)
		}
	}
	a, _ := r.env.Store.Artifact(t.Context(), "r", "m")
	if a.RepairCountSinceRegen != 1 || a.IntrinsicFailureCount != 1 || a.Generations[0].Trigger != "repair:execution" ||
		*a.Generations[0].ParentID != "gen-1" {
		t.Errorf("repairs %d, intrinsic %d, newest %+v", a.RepairCountSinceRegen, a.IntrinsicFailureCount,
			a.Generations[0])
	}
}

// Proof before serving: a repair that breaks an older answer is refused and the broken fixture
// goes to the model; with fixtures off it is accepted.
func TestProofBeforeServing(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"pf.m": {run(boomOnBad), run(breaks), run(fixes)}})
	_, call := conversation(t, r, sessions.Request{Role: "pf"})
	first := call("m", 1)
	wantReply(t, "cold", first, "1 generated")
	wantReply(t, "the repair breaks the fixture, the next program does not", call("m", "bad"), `"fixed" generated`)
	wantReply(t, "the older answer holds", call("m", 1), "1 persisted")
	if text := lastUser(model.Requests()[2]); !strings.Contains(text, "broke an earlier call") {
		t.Errorf("the request of the next attempt does not mention the broken fixture:\n%s", text)
	}
	a, _ := r.env.Store.Artifact(t.Context(), "pf", "m")
	if len(a.Rejections) != 1 || a.Rejections[0].Fixture != first.CallID {
		t.Errorf("rejections %+v, want one that names %s", a.Rejections, first.CallID)
	}
	off, _ := newRuntime(t, map[string][]string{"pf.m": {run(boomOnBad), run(breaks)}})
	patchPolicy(t, off, `{"fixtures_enabled": false}`)
	_, call = conversation(t, off, sessions.Request{Role: "pf"})
	call("m", 1)
	wantReply(t, "fixtures off", call("m", "bad"), `"fixed" repaired`)
}

// A repair that fails goes on to a new program in the same call; a spent budget forges at once.
func TestBudgets(t *testing.T) {
	boom := run("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn 1, nil")
	r, model := newRuntime(t, map[string][]string{"b.m": {boom}})
	patchPolicy(t, r, `{"execution_repair_budget": 0, "backoff": {"base_seconds": 0}, "degraded": {"min_failures": 20}}`)
	_, call := conversation(t, r, sessions.Request{Role: "b"})
	wantReply(t, "cold", call("m", "good"), "1 generated")
	for range 4 {
		if got := call("m", "bad"); got.Outcome.ErrorType != agent.ErrExecution {
			t.Fatalf("got %+v", got.Outcome)
		}
	}
	kinds := ""
	for _, q := range model.Requests() {
		kinds += q.Kind[:1]
	}
	if kinds != "f"+"rf"+"rf"+"rf"+"f" {
		t.Errorf("requests were %s, want f rf rf rf f: three repairs, then only new programs", kinds)
	}
}

// Authored errors are honest answers: no repair, no effect on health. Only invalid_input keeps the program.
func TestAuthoredErrors(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{
		"a.low":   {run("\treturn nil, recurgent.Fail(\"low_utility\", \"nothing useful\")")},
		"a.input": {run("\tif len(call.Args) == 0 {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"an argument is needed\")\n\t}\n\treturn 1, nil")},
		"a.plain": {run("\treturn nil, errors.New(\"no\")", "errors")},
	})
	_, call := conversation(t, r, sessions.Request{Role: "a"})
	low := call("low")
	wantReply(t, "low utility", low, "low_utility generated")
	if !low.Outcome.Authored || low.Outcome.Retriable {
		t.Errorf("authored %v, retriable %v", low.Outcome.Authored, low.Outcome.Retriable)
	}
	if _, err := r.env.Store.Artifact(t.Context(), "a", "low"); err == nil {
		t.Error("a first call that ends in an authored error keeps its program")
	}
	wantReply(t, "plain error", call("plain"), "tool_error generated")
	wantReply(t, "invalid input", call("input"), "invalid_input generated")
	wantReply(t, "invalid input keeps the program", call("input", 1), "1 persisted")
	if n := model.Count("a.input", ""); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// Delegation: children commit before their parents, budgets bound the tree, and speakers name the caller.
func TestNestedCalls(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{
		"boss.work":   {run("\to := call.Tool(\"helper\").Call(\"help\", 20.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value.(float64) + 1, nil")},
		"helper.help": {run("\treturn call.Arg(0, \"n\").(float64) * 2, nil")},
		"loop.again":  {run("\to := call.Tool(\"loop\").Call(\"again\")\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")},
	})
	id, call := conversation(t, r, sessions.Request{Role: "boss"})
	wantReply(t, "delegation", call("work"), "41 generated")
	page, err := r.History(t.Context(), id, store.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var records []agent.Record
	for _, raw := range page.Records {
		var rec agent.Record
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	if len(records) != 2 || records[0].MethodName != "help" || records[0].ParentCallID != records[1].CallID ||
		records[0].Depth != 1 ||
		records[0].Speaker != agent.SpeakerAgent || records[1].Speaker != agent.SpeakerUser ||
		records[0].TraceID != records[1].TraceID {
		t.Errorf("records %+v", records)
	}
	_, loop := conversation(t, r, sessions.Request{Role: "loop"})
	if got := loop("again"); got.Outcome.ErrorType != agent.ErrBudgetExceeded {
		t.Errorf("endless delegation ended in %+v", got.Outcome)
	}
}

// A dead provider ends in a provider outcome; warm calls go on and nothing is learned from it.
func TestDeadProvider(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"calculator.add": {run(add)}})
	_, call := conversation(t, r, sessions.Request{Role: "calculator"})
	call("add", 1, 2)
	model.Err = &provider.Error{Type: agent.ErrProvider, Reason: "network", Message: "connection refused"}
	got := call("new")
	wantReply(t, "cold", got, "provider none")
	if !got.Outcome.Retriable {
		t.Error("a provider outcome must be retriable")
	}
	wantReply(t, "warm", call("add", 2, 2), "4 persisted")
}
