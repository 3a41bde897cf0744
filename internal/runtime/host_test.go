package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// asks is a program that does something with its host and returns the text that comes of it.
func asks(what func(ctx context.Context, q sandbox.Request, h sandbox.Host) string) runtimetest.Run {
	return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
		return runtimetest.Value(string(agent.Encoded(what(ctx, q, h))))
	}
}

func texts(values ...string) (out []json.RawMessage) {
	for _, v := range values {
		out = append(out, json.RawMessage(v))
	}
	return out
}

func historyOf(t *testing.T, r *Runtime, session string) (out []agent.Record) {
	t.Helper()
	page, err := r.History(t.Context(), session, store.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range page.Records {
		var rec agent.Record
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// Nested calls as a program sees them: shapes are recorded, budgets end them, and the root call pays.
func TestNestedCall(t *testing.T) {
	t.Parallel()
	invoke := func(role, method string) runtimetest.Run {
		return asks(func(ctx context.Context, q sandbox.Request, h sandbox.Host) string {
			o := h.Call(ctx, role, method, texts("7"), nil)
			return strings.TrimSpace(string(o.Value) + " " + o.ErrorType + " " + o.ErrorMessage)
		})
	}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{
		"boss": invoke("helper", "help"), "again": invoke("loop", "again"), "bad": invoke("a/b", "m"),
		"help": runtimetest.Returns(`{"b":1,"a":"x"}`),
		"many": asks(func(ctx context.Context, _ sandbox.Request, h sandbox.Host) string {
			var types []string
			for range 5 {
				types = append(types, h.Call(ctx, "helper", "help", nil, nil).ErrorType)
			}
			return strings.Join(types, ",")
		}),
	}}
	r, _ := scripted(t, box, map[string][]string{"r.boss": {"boss"}, "helper.help": {"help"}, "loop.again": {"again"},
		"r.bad": {"bad"}, "r.many": {"many"}}, nil)
	patchPolicy(t, r, `{"nested_call_budget": 3, "delegation_depth": 2}`)
	id, ask := conversation(t, r, sessions.Request{Role: "r"})
	got := ask("boss")
	wantReply(t, "delegation", got, `"{\"b\":1,\"a\":\"x\"}" generated`)
	if got.Usage.ModelRequests != 2 {
		t.Errorf("the root call reports %d requests, want its own and the nested one's", got.Usage.ModelRequests)
	}
	if shapes := artifactOf(t, r, "r", "boss").Current().Shapes; shapes["helper.help"] != "object{a:string,b:number}" {
		t.Errorf("shapes %v", shapes)
	}
	records := historyOf(t, r, id)
	if len(records) != 2 || records[0].MethodName != "help" || records[0].Depth != 1 ||
		records[0].ParentCallID != got.CallID ||
		records[0].AttemptID != got.CallID+".1" || records[0].Speaker != agent.SpeakerAgent || records[1].Depth != 0 {
		t.Errorf("records %+v", records)
	}
	if got := string(ask("many").Outcome.Value); got != `",,,budget_exceeded,budget_exceeded"` {
		t.Errorf("five calls of three ended in %s", got)
	}
	if n := len(historyOf(t, r, id)); n != 2+3+1+1 {
		t.Errorf("%d records, want one refusal on record", n-2)
	}
	if got := string(ask("bad").Outcome.Value); !strings.Contains(got, agent.ErrInvalidInput) {
		t.Errorf("a bad name: %s", got)
	}
	_, loop := conversation(t, r, sessions.Request{Role: "loop"})
	if got := string(loop("again").Outcome.Value); !strings.Contains(got, "calls are nested too deep") ||
		strings.Contains(got, "as many") {
		t.Errorf("endless delegation: %s", got)
	}
}

// Delegate registers a role once, and holds nested calls through it to the contract.
func TestDelegate(t *testing.T) {
	t.Parallel()
	delegate := func(role, contract string) runtimetest.Run {
		return asks(func(ctx context.Context, _ sandbox.Request, h sandbox.Host) string {
			if refused := h.Delegate(ctx, role, json.RawMessage(contract)); refused != nil {
				return refused.Type + ": " + refused.Message
			}
			o := h.Call(ctx, role, "m", nil, nil)
			return string(o.Value) + o.ErrorType + fmt.Sprint(" ", h.Revision(ctx, "tools"))
		})
	}
	tests := []struct{ method, role, contract, want string }{
		{"kept", "counter", `{"purpose":"counts","deliverable":{"type":"number"}}`, "1 2"},
		{"broken", "counter2", `{"deliverable":{"type":"string"}}`, "contract_violation 2"},
		{"known", "counter", `{"purpose":"other"}`, "1 2"},
		{"name", "a/b", `{}`, "invalid_input: "},
		{"unreadable", "x", `[1]`, "invalid_input: the contract is not readable"},
		{"unusable", "x", `{"deliverable":{"$ref":"#/nowhere"}}`,
			"invalid_input: the contract's deliverable cannot be checked"},
	}
	programs, sources := map[string]runtimetest.Run{"one": runtimetest.Returns("1")},
		map[string][]string{"counter.m": {"one"}, "counter2.m": {"one"}}
	for _, tt := range tests {
		programs[tt.method] = delegate(tt.role, tt.contract)
		sources["r."+tt.method] = []string{tt.method}
	}
	r, _ := scripted(t, &runtimetest.Box{Programs: programs}, sources, nil)
	_, invoke := conversation(t, r, sessions.Request{Role: "r"})
	for _, tt := range tests {
		var got string
		if err := json.Unmarshal(invoke(tt.method).Outcome.Value, &got); err != nil || !strings.HasPrefix(got,
			tt.want) {
			t.Errorf("%s: got %q, want %q", tt.method, got, tt.want)
		}
	}
	tool, err := r.env.Store.Tool(t.Context(), "counter")
	if err != nil || tool.Purpose != "counts" {
		t.Errorf("the registered tool is %+v, %v", tool, err)
	}
	if _, err := r.env.Store.Tool(t.Context(), "x"); err == nil {
		t.Error("a refused contract registered its role")
	}
}

// Programs read the registry, the history and kept results.
func TestHostReads(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{
		"one": runtimetest.Returns(`{"n":1}`),
		"tools": asks(func(ctx context.Context, _ sandbox.Request, h sandbox.Host) string {
			raw, err := h.Tools(ctx)
			return fmt.Sprint(string(raw), err)
		}),
		"history": asks(func(ctx context.Context, q sandbox.Request, h sandbox.Host) string {
			var all []string
			for _, query := range []struct {
				all, page    bool
				after, limit int
			}{{}, {all: true}, {page: true, after: 1, limit: 1}, {page: true, limit: -1},
				{page: true, after: -5, limit: 2000}} {
				raw, err := h.History(ctx, query.all, query.page, query.after, query.limit)
				var records []agent.Record
				if err != nil || json.Unmarshal(raw, &records) != nil {
					return string(raw)
				}
				names := ""
				for _, rec := range records {
					names += rec.MethodName[:1]
				}
				all = append(all, names)
			}
			return strings.Join(all, " ") + fmt.Sprint(" ", h.Revision(ctx, "history"), h.Revision(ctx, "content"))
		}),
		"nested": asks(func(ctx context.Context, _ sandbox.Request, h sandbox.Host) string {
			h.Call(ctx, "r", "one", nil, nil)
			return "done"
		}),
		"content": asks(func(ctx context.Context, q sandbox.Request, h sandbox.Host) string {
			var ref string
			_ = json.Unmarshal(q.Args[0], &ref)
			raw, err := h.Content(ctx, ref)
			return fmt.Sprint(string(raw), err)
		}),
	}}
	r, _ := scripted(t, box, map[string][]string{"r.one": {"one"}, "r.tools": {"tools"}, "r.history": {"history"},
		"r.nested": {"nested"}, "r.content": {"content"}}, nil)
	if _, err := r.env.Store.PutTool(t.Context(), agent.Tool{Role: "known",
		Contract: agent.Contract{Purpose: "knows", Deliverable: json.RawMessage(`"text"`)}}, 0, nil); err != nil {
		t.Fatal(err)
	}
	id, invoke := conversation(t, r, sessions.Request{Role: "r"})
	invoke("one")
	invoke("nested")
	if got := string(invoke("history").Outcome.Value); got != `"on oon o oon oon 3 0"` {
		t.Errorf("history: %s", got)
	}
	var text string
	if err := json.Unmarshal(invoke("tools").Outcome.Value, &text); err != nil {
		t.Fatal(err)
	}
	var tools map[string]struct {
		Role, Purpose string
		Deliverable   json.RawMessage
		Methods       []string
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, "<nil>")), &tools); err != nil || len(tools) != 2 {
		t.Fatalf("tools %s, %v", text, err)
	}
	if k := tools["known"]; k.Role != "known" || k.Purpose != "knows" || k.Deliverable != nil || k.Methods == nil ||
		len(k.Methods) != 0 {
		t.Errorf("known is %+v in %s", k, text)
	}
	if m := tools["r"].Methods; len(m) == 0 {
		t.Errorf("r has no methods in %s", text)
	}
	ref := ""
	for _, rec := range historyOf(t, r, id) {
		if rec.MethodName == "one" && rec.Depth == 0 {
			ref = rec.OutcomeSummary.ContentRef
		} else if rec.Depth > 0 && rec.OutcomeSummary.ContentRef != "" {
			t.Error("a nested result is kept")
		}
	}
	if got := string(invoke("content", ref).Outcome.Value); got != `"{\"n\":1}\u003cnil\u003e"` &&
		got != `"{\"n\":1}<nil>"` {
		t.Errorf("content: %s", got)
	}
	if got := string(invoke("content",
		"content:none").Outcome.Value); !strings.Contains(got, `"`) || strings.Contains(got, "not") {
		t.Errorf("missing content: %s", got)
	}
}

// A nested call whose arguments have no JSON form leaves a record and is not made.
func TestRefuse(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"refuses": asks(func(ctx context.Context,
		_ sandbox.Request, h sandbox.Host) string {
		return h.Refuse(ctx, "tool", "m", texts(`"NaN"`), nil, "argument 1: NaN").ErrorType + " " +
			h.Refuse(ctx, "to/ol", "m", nil, nil, "argument 1: NaN").ErrorType + fmt.Sprint(" ",
			h.Revision(ctx, "tools"))
	})}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"refuses"}}, nil)
	id, invoke := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "refused", invoke("m"), `"non_serializable_result invalid_input 2" generated`)
	records := historyOf(t, r, id)
	if len(records) != 2 || records[0].Role != "tool" || records[0].ErrorType != agent.ErrNonSerializable ||
		records[0].ProgramSource != agent.SourceNone || string(records[0].Args[0]) != `"NaN"` {
		t.Errorf("records %+v", records)
	}
}

// Nothing happens in a replay or a dry run: no call is forged or recorded, no role registered.
func TestHostsWithoutConsequences(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1"),
		"honest": runtimetest.Raises("none", "there is none")}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"one"}, "r.e": {"honest"}, "r.forced": {"one"}}, nil)
	id, invoke := conversation(t, r, sessions.Request{Role: "r"})
	invoke("m")
	invoke("forced")
	reason := "nicer"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "forced", ForceRegenerate: &reason})
	s, err := r.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	asked, ran := model.Count("r.m", ""), len(box.Runs("one"))
	recorded := r.RecordedHost(s)
	if o := recorded.Call(t.Context(), "r", "m", nil, nil); o.ErrorType != agent.ErrDenied {
		t.Errorf("a replay called: %+v", o)
	}
	if o := recorded.Refuse(t.Context(), "r", "m", nil, nil, "no"); o.ErrorType != agent.ErrNonSerializable {
		t.Errorf("a replay recorded: %+v", o)
	}
	if refused := recorded.Delegate(t.Context(), "a/b", nil); refused != nil {
		t.Errorf("a replay delegated: %+v", refused)
	}
	if len(box.Runs("one")) != ran {
		t.Error("a replay ran something")
	}
	dry := &attempt.Host{For: &call.Call{Env: r.env, Policy: r.PolicyInForce(), Session: s, Tree: &call.Tree{}},
		Nester: nester{r}, Dry: true}
	if o := dry.Call(t.Context(), "r", "m", nil, nil); string(o.Value) != "1" || o.ToolRole != "r" ||
		o.MethodName != "m" {
		t.Errorf("a dry run of what serves: %+v", o)
	}
	if o := dry.Call(t.Context(), "r", "forced", nil, nil); string(o.Value) != "1" {
		t.Errorf("a dry run of what serves until another is forged: %+v", o)
	}
	if o := dry.Call(t.Context(), "r", "unknown", nil, nil); o.ErrorType != agent.ErrDenied ||
		!strings.Contains(o.ErrorMessage, "r.unknown") {
		t.Errorf("a dry run of what is not there: %+v", o)
	}
	if o := dry.Refuse(t.Context(), "r", "m", nil, nil, "no"); o.ErrorType != agent.ErrNonSerializable {
		t.Errorf("a dry run recorded: %+v", o)
	}
	if refused := dry.Delegate(t.Context(), "fresh",
		json.RawMessage("{}")); refused != nil || dry.Delegated["fresh"] == nil {
		t.Errorf("a dry run's delegation: %+v", refused)
	}
	if _, err := r.env.Store.Tool(t.Context(), "fresh"); err == nil {
		t.Error("a dry run registered a role")
	}
	deep := &attempt.Host{For: &call.Call{Env: r.env, Policy: r.PolicyInForce(), Session: s, Tree: &call.Tree{},
		Depth: 8},
		Nester: nester{r},
		Dry:    true}
	if o := deep.Call(t.Context(), "r", "m", nil, nil); o.ErrorType != agent.ErrBudgetExceeded {
		t.Errorf("a deep dry run: %+v", o)
	}
	if n := len(historyOf(t, r, id)); n != 2 || model.Count("r.m", "") != asked {
		t.Errorf("%d records, %d requests more", n, model.Count("r.m", "")-asked)
	}
}

// The session's records are shown in its context, and nothing that a program does there is stored.
func TestHistoryInContext(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Facts: map[string]gate.Facts{"names": {UsesArgs: true,
		ContextReads: []string{attempt.HistoryKey}}},
		Programs: map[string]runtimetest.Run{
			"names": func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
				res := runtimetest.Value(string(agent.Encoded(string(q.Context["a"]))))
				res.Context = &agent.ContextChange{Set: map[string]json.RawMessage{attempt.HistoryKey: json.RawMessage("[]"),
					"b": json.RawMessage("2")}, Delete: []string{attempt.HistoryKey, "a"}}
				return res
			},
		}}
	r, _ := scripted(t, box, map[string][]string{"r.names": {"names"}}, nil)
	id, invoke := conversation(t, r, sessions.Request{Role: "r", Context: json.RawMessage(`{"a":1}`), Debug: true})
	got := invoke("names")
	wantReply(t, "named", got, `"1" generated`)
	if e := logOf(t, r, got.CallID); !e.HistoryAccessDetected || string(e.Context) != `{"a":1}` ||
		e.SystemPrompt == "" || e.UserPrompt == "" {
		t.Errorf("log: history %v, context %s", e.HistoryAccessDetected, e.Context)
	}
	memory, err := r.Context(t.Context(), id)
	if err != nil || len(memory) != 2 || string(memory["b"]) != "2" {
		t.Errorf("the context is %s, %v", agent.Encoded(memory), err)
	}
	var shown []agent.Record
	if err := json.Unmarshal(memory[attempt.HistoryKey], &shown); err != nil || len(shown) != 1 ||
		shown[0].CallID != got.CallID {
		t.Errorf("the context shows %s, %v", memory[attempt.HistoryKey], err)
	}
	if n := len(artifactOf(t, r, "r", "names").Current().Fixtures); n != 0 {
		t.Errorf("%d fixtures of a program that reads the history", n)
	}
}
