package sandbox

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/sampled"
)

// program returns a forged program with the body and the imports.
func program(body string, imports ...string) string {
	var b strings.Builder
	b.WriteString("package tool\n\nimport (\n")
	for _, i := range append(imports, "recurgent") {
		b.WriteString("\t\"" + i + "\"\n")
	}
	b.WriteString(")\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n")
	return b.String()
}

// A call's changes of its context are returned by top-level key, and nothing else is.
func TestContextChanges(t *testing.T) {
	p := nativePool(t, nil)
	req := request("setcontext")
	req.Context = map[string]json.RawMessage{"changed": json_(`["a"]`), "gone": json_(`1`),
		"kept": json_(`{"b":1,"a":[]}`), "exact": json_(`9007199254740993`), "float": json_(`1.0`)}
	got := p.Run(t.Context(), req, &fakeHost{})
	if said(got) != `value "ok"` || got.Context == nil {
		t.Fatal(said(got))
	}
	if keys := slices.Sorted(maps.Keys(got.Context.Set)); !slices.Equal(keys, []string{"changed", "new"}) ||
		string(got.Context.Set["changed"]) != `["b"]` || !slices.Equal(got.Context.Delete, []string{"gone"}) {
		t.Errorf("%+v", got.Context)
	}
	// A value that a program only reads is never rewritten, not even a number that float64 cannot represent.
	req = request("context")
	req.Context = map[string]json.RawMessage{"exact": json_(`9007199254740993`), "order": json_(`{"b":1,"a":2}`)}
	if got := p.Run(t.Context(), req, &fakeHost{}); got.Failure != nil || got.Context != nil {
		t.Errorf("%s %+v", said(got), got.Context)
	}
	if got := p.Run(t.Context(), request("fail"), &fakeHost{}); got.Context != nil {
		t.Error("a failed call changed its context")
	}
}

func TestHostCalls(t *testing.T) {
	p := nativePool(t, nil)
	for _, c := range []struct{ source, want, call string }{
		{"nested", `value {"status":"ok","value":"nested","error_type":"","error_message":"","retriable":false,"metadata":null}`, "call adder.add"},
		{"delegate", `value {"status":"error","value":null,"error_type":"denied","error_message":"not this one","retriable":false,"metadata":null}`, "delegate bad"},
		{"history", `value 1`, "history all=false page=false after=0 limit=0"},
		{"tools", `value {"adder":{"role":"adder","purpose":"adds","deliverable":null,"methods":null,"usage_count":0}}`,
			""},
		{"content", `value ["content of a",null]`, ""},
	} {
		h := &fakeHost{}
		got := p.Run(t.Context(), request(c.source), h)
		if said(got) != c.want {
			t.Errorf("%s: %s, want %s", c.source, said(got), c.want)
		}
		if c.call != "" && !slices.Contains(h.calls, c.call) {
			t.Errorf("%s: the host was asked %v, want %s", c.source, h.calls, c.call)
		}
	}
	h := &fakeHost{}
	if p.Run(t.Context(), request("page"), h); !slices.Contains(h.calls, "history all=true page=true after=3 limit=4") {
		t.Error(h.calls)
	}
}

// One runner serves one program and one owner. Another runner serves them only after its death.
func TestRunnersAreNotShared(t *testing.T) {
	p := nativePool(t, nil)
	run := func(source, owner string) Result {
		req := request(source)
		namespace, name, _ := strings.Cut(owner, "/")
		req.Owner = agent.Owner{Namespace: agent.Namespace(namespace), Name: name}
		return p.Run(t.Context(), req, &fakeHost{})
	}
	// The native engine does not reset state, so a count above 1 shows the same process.
	for _, c := range []struct{ source, owner, want string }{
		{"count", "x/a", "value 1"}, {"count", "x/a", "value 2"}, {"count", "x/b", "value 1"},
		{"count other", "x/a", "value 1"}, {"count", "x/a", "value 3"}, {"count", "x/b", "value 2"},
		{"count", "y/a", "value 1"}, {"count", "y/a", "value 2"},
	} {
		if got := said(run(c.source, c.owner)); got != c.want {
			t.Errorf("%s for %s: %s, want %s", c.source, c.owner, got, c.want)
		}
	}
	p.Forget("x")
	for owner, want := range map[string]string{"x/a": "value 1", "x/b": "value 1", "y/a": "value 3"} {
		if got := said(run("count", owner)); got != want {
			t.Errorf("after a namespace was forgotten: %s for %s, want %s", got, owner, want)
		}
	}
	each := nativePool(t, func(o *Options) { o.Isolation = IsolationCall })
	for range 3 {
		if got := said(each.Run(t.Context(), request("count"), &fakeHost{})); got != "value 1" {
			t.Errorf("isolation call: %s", got)
		}
	}
}

// After any doubt a runner is not reused.
func TestRunnersAreDiscarded(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.RunnerCalls = 3 })
	for _, source := range []string{"panic", "exit", "leak", "nan"} {
		p.Run(t.Context(), request(source), &fakeHost{})
		for _, r := range p.warmKeys() {
			if r.program == "sha256:"+source && r.reason.Load() == nil {
				t.Errorf("the runner of %s was kept", source)
			}
		}
	}
	for i, want := range []string{"value 1", "value 2", "value 3", "value 1"} {
		if got := said(p.Run(t.Context(), request("count"), &fakeHost{})); got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
	for _, source := range []string{"echo", "fail", "plain", "history"} {
		p.Run(t.Context(), request(source), &fakeHost{})
	}
	// An error that the program returned is a proper answer, so its runner is kept.
	if got := p.Stats().Warm; got != 5 {
		t.Errorf("%d warm runners, want 5", got)
	}
}

// Randomness restarts with each run in a warm runner, even if a run has used part of a number.
func TestRandomnessIsOfOneRun(t *testing.T) {
	p := compilePool(t, nil)
	for _, path := range []string{"math/rand", "crypto/rand"} {
		req := request(program("b := make([]byte, 3)\n_, err := rand.Read(b)\nreturn b, err", path))
		req.Program.Checksum = path
		first, second := p.Run(t.Context(), req, &fakeHost{}), p.Run(t.Context(), req, &fakeHost{})
		if first.Failure != nil || said(first) != said(second) || second.Timing.Gate != 0 {
			t.Errorf("%s: %s, then %s in %+v", path, said(first), said(second), second.Timing)
		}
	}
}

func TestLoad(t *testing.T) {
	for _, isolation := range []string{IsolationProgram, IsolationCall} {
		p := compilePool(t, func(o *Options) { o.Isolation = isolation })
		req := request(program("return call.Tools(), nil"))
		facts, failure := p.Load(t.Context(), req.Program, req.Owner)
		if failure != nil || facts == nil || !slices.Equal(facts.Imports, []string{"recurgent"}) {
			t.Fatalf("%+v %+v", facts, failure)
		}
		if got := p.Run(t.Context(), req, &fakeHost{}); got.Failure != nil || got.Facts == nil || got.Timing.Gate != 0 {
			t.Errorf("%s %+v", said(got), got.Timing)
		}
		bad := request(program("return undefined, nil"))
		if _, failure := p.Load(t.Context(), bad.Program,
			bad.Owner); failure == nil || failure.Type != agent.ErrInvalidCode ||
			!strings.Contains(failure.Message, "undefined") {
			t.Errorf("%+v", failure)
		}
	}
}

// replayed returns programs that take from outside in every possible way.
func replayed() map[string]string {
	return map[string]string{
		"pure":    program(`return []any{call.Args, call.Kwargs, call.Role, call.CallID}, nil`),
		"clock":   program("time.Sleep(time.Second)\nreturn time.Now().Format(time.RFC3339Nano), nil", "time"),
		"random":  program("return []int{rand.Int(), rand.IntN(1000), rand.Perm(5)[0]}, nil", "math/rand/v2"),
		"hashed":  program("var h maphash.Hash\nh.WriteString(\"a\")\nreturn []uint64{h.Sum64(), maphash.Comparable(maphash.MakeSeed(), 1)}, nil", "hash/maphash"),
		"crypto":  program("b := make([]byte, 16)\n_, err := rand.Read(b)\nreturn b, err", "crypto/rand"),
		"maps":    program("m := map[string]int{}\nfor i := range 20 {\n\tm[strconv.Itoa(i)] = i\n}\nvar out []string\nfor k := range m {\n\tout = append(out, k)\n}\nreturn out, nil", "strconv"),
		"context": program("n, _ := call.Context[\"n\"].(float64)\ncall.Context[\"n\"] = n + 1\nreturn n, nil"),
		"history": program("return call.History(), nil"),
		"named":   program("return call.Context[\"conversation_history\"], nil"),
		"ranged":  program("out := map[string]any{}\nfor k, v := range call.Context {\n\tout[k] = v\n}\nreturn out, nil"),
		"nested":  program("o := call.Tool(\"adder\").Call(\"add\", 1, 2)\nreturn o.Value, nil"),
		"refused": program("o := call.Delegate(\"bad\", recurgent.Contract{}).Call(\"x\")\nreturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)"),
		"denied":  program("_, err := call.Fetch(\"https://127.0.0.1/\")\nreturn nil, err"),
		"asked":   program("a, err := call.Ask(\"is it?\", call.Args[0])\n_, down := call.Predict(recurgent.Signature{Inputs: []recurgent.Field{{Name: \"q\"}}, Outputs: []recurgent.Field{{Name: \"a\", Schema: map[string]any{\"enum\": []any{\"x\"}}}}}, map[string]any{\"q\": \"down\"})\nreturn []any{a, err, down.Error()}, nil"),
		"content": program("return call.Content(\"a\"), nil"),
		"input":   program("return call.InputHistory(), nil"),
		"failing": program("var m map[string]int\nm[\"x\"] = 1\nreturn m, nil"),
		"own":     program("return nil, recurgent.Fail(\"low_utility\", time.Now().String())", "time"),
	}
}

// TestReplay checks that every recorded call ends in the same bytes when it is replayed in another daemon, without real
// effects and with another clock.
func TestReplay(t *testing.T) {
	first, second := compilePool(t, nil), compilePool(t, nil)
	for name, source := range sampled.Map(replayed(), 3) {
		req := request(source, 1, "two")
		req.Kwargs = json_(`{"k":[1]}`)
		req.Context = map[string]json.RawMessage{"n": json_("41")}
		req.InputHistory = json_(`{"messages":[{"question":"q"}]}`)
		got := first.Run(t.Context(), req, &fakeHost{history: bigHistory()})
		rec := Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value, Authored: got.Authored}
		rec.Now, rec.Seed, rec.Context, rec.InputHistory = rec.Now.AddDate(1, 0, 0), 99, nil, nil
		if got.Failure != nil {
			rec.FailureType = got.Failure.Type
		}
		if got.Effects.Truncated {
			t.Errorf("%s: truncated", name)
		}
		cmp, err := Replay(t.Context(), second, rec, &refusingHost{history: bigHistory()})
		if err != nil || !cmp.Equal {
			t.Errorf("%s: %+v %v (journal %.300s)", name, cmp, err, got.Effects.Journal)
		}
	}
}

// A replay that cannot be faithful reports that.
func TestReplayDiverges(t *testing.T) {
	p := compilePool(t, nil)
	req := request(program("return len(call.History()), nil"))
	got := p.Run(t.Context(), req, &fakeHost{history: bigHistory()})
	rec := Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value}
	if cmp, err := Replay(t.Context(), p, rec,
		&refusingHost{history: `[]`}); err != nil || cmp.Equal || cmp.Diverged == "" {
		t.Errorf("another history: %+v %v", cmp, err)
	}
	// Later records do not matter.
	longer := strings.TrimSuffix(bigHistory(), "]") + `,{"call_id":"later"}]`
	if cmp, err := Replay(t.Context(), p, rec, &refusingHost{history: longer}); err != nil || !cmp.Equal {
		t.Errorf("a longer history: %+v %v", cmp, err)
	}
	rec.Value = json_(`"another"`)
	if cmp, err := Replay(t.Context(), p, rec,
		&refusingHost{history: bigHistory()}); err != nil || cmp.Equal || cmp.Diverged != "" {
		t.Errorf("another value: %+v %v", cmp, err)
	}
	rec.Journal = json_(`{"v":99}`)
	if _, err := Replay(t.Context(), p, rec, &refusingHost{}); err == nil {
		t.Error("a journal of a later version was taken")
	}
	rec.Journal = json_(`{`)
	if _, err := Replay(t.Context(), p, rec, &refusingHost{}); err == nil {
		t.Error("a broken journal was taken")
	}
}

// A journal is bounded. A call that exceeds it cannot be replayed, without other consequences. The journal of a call
// without effects is nil.
func TestJournalBounds(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.MaxJournal = 1000; o.MaxAsks = 100 })
	if got := p.Run(t.Context(), request("echo", 1), &fakeHost{}); got.Effects.Journal != nil || got.Effects.Truncated {
		t.Errorf("%+v", got.Effects)
	}
	big := &fakeHost{onCall: func(ctx context.Context, role, method string, args []json_, kwargs json_) agent.Outcome {
		return agent.Outcome{Status: agent.StatusOK, Value: json_(`"` + strings.Repeat("x", 5000) + `"`)}
	}}
	if got := p.Run(t.Context(), request("nested"), big); got.Failure != nil || got.Effects.Journal != nil ||
		!got.Effects.Truncated || got.Effects.Nested != 1 {
		t.Errorf("%s %+v", said(got), got.Effects)
	}
}

func bigHistory() string {
	return `[` + strings.Repeat(`{"call_id":"c","role":"r","args":[1,2,3],"kwargs":{}},`, 200) + `{"call_id":"last"}]`
}

// refusingHost serves the session's history and refuses everything else, because a replay has no access to real
// sources.
type refusingHost struct {
	fakeHost
	history string
}

func (h *refusingHost) Call(context.Context, string, string, []json.RawMessage, json.RawMessage) agent.Outcome {
	panic("a replay made a real call")
}

func (h *refusingHost) Predict(context.Context, json.RawMessage, json.RawMessage) (json.RawMessage, *AuthoredError) {
	panic("a replay asked the model")
}

func (h *refusingHost) Delegate(context.Context, string, json.RawMessage) *AuthoredError {
	panic("a replay delegated")
}

func (h *refusingHost) History(context.Context, bool, bool, int, int) (json.RawMessage, error) {
	return json.RawMessage(h.history), nil
}
