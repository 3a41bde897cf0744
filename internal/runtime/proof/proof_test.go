package proof

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// Which calls become proofs for successors. Each row spoils one thing of a call that does.
func TestFixture(t *testing.T) {
	t.Parallel()
	type fixtureCall struct {
		p       *agent.Policy
		s       *call.Selection
		g       *agent.Generation
		attempt judge.Judged
	}
	tests := []struct {
		name  string
		spoil func(c *fixtureCall)
		want  bool
	}{
		{"nothing", func(*fixtureCall) {}, true},
		{"fixtures off", func(c *fixtureCall) { c.p.FixturesEnabled = false }, false},
		{"one fixture fewer than the most", func(c *fixtureCall) {
			c.g.Fixtures = make([]agent.Fixture,
				agent.MaxFixtures-1)
		},
			true},
		{"the most fixtures", func(c *fixtureCall) { c.g.Fixtures = make([]agent.Fixture, agent.MaxFixtures) }, false},
		{"effects cut", func(c *fixtureCall) { c.attempt.Result.Effects.Truncated = true }, false},
		{"a history input", func(c *fixtureCall) { c.s.InputHistory = json.RawMessage("{}") }, false},
		{"no facts", func(c *fixtureCall) { c.attempt.Result.Facts = nil }, false},
		{"it reads the history", func(c *fixtureCall) { c.attempt.Result.Facts.HistoryAccess = true }, false},
		{"it names the history",
			func(c *fixtureCall) { c.attempt.Result.Facts.ContextReads = []string{attempt.HistoryKey} },
			false},
		{"it reads kept results", func(c *fixtureCall) { c.attempt.Result.Facts.UsesContent = true }, false},
		{"not cacheable", func(c *fixtureCall) { c.g.Cacheable = false }, false},
		{"the same input", func(c *fixtureCall) {
			c.g.Fixtures = []agent.Fixture{{Args: texts("7"),
				Kwargs: json.RawMessage("{}")}}
		}, false},
		{"another input", func(c *fixtureCall) {
			c.g.Fixtures = []agent.Fixture{{Args: texts("7", "8"),
				Kwargs: json.RawMessage("{}")}}
		}, true},
		{"other keywords", func(c *fixtureCall) {
			c.g.Fixtures = []agent.Fixture{{Args: texts("7"),
				Kwargs: json.RawMessage(`{"a":1}`)}}
		}, true},
	}
	make1 := func() *fixtureCall {
		p := agent.DefaultPolicy()
		c := &fixtureCall{p: &p, g: &agent.Generation{ID: "gen-1", Cacheable: true}}
		c.s = &call.Selection{Call: &call.Call{ID: "call_1", Policy: &p,
			Args:   texts("7"),
			Kwargs: json.RawMessage("{}")}, Artifact: selectiontest.Artifact(nil)}
		c.attempt = judge.Judged{Outcome: agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("14")}}
		c.attempt.Result = sandbox.Result{Facts: &report.Facts{UsesArgs: true},
			Effects: sandbox.Effects{Journal: json.RawMessage(`["e"]`)}}
		return c
	}
	for _, tt := range tests {
		c := make1()
		tt.spoil(c)
		if got, _ := fixtureOf(c.s, c.g, c.attempt); (got != nil) != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	c := make1()
	c.s.Memory = map[string]json.RawMessage{"k": json.RawMessage("1")}
	if f, _ := fixtureOf(c.s, c.g, c.attempt); f.Context != nil || string(f.Value) != "14" ||
		string(f.Effects) != `["e"]` || f.CallID != "call_1" {
		t.Errorf("a program that does not look at the context: %+v", f)
	}
	for _, facts := range []report.Facts{{ContextReads: []string{"k"}}, {ContextWrites: []string{"k"}}} {
		c.attempt.Result.Facts = &facts
		if f, _ := fixtureOf(c.s, c.g, c.attempt); string(f.Context) != `{"k":1}` {
			t.Errorf("a program that looks at the context: %+v", f)
		}
	}
	c.s.Memory = nil
	if f, _ := fixtureOf(c.s, c.g, c.attempt); f.Context != nil {
		t.Errorf("an empty context: %s", f.Context)
	}
	// Everything counts towards the size: kwargs, value, effects, arguments and context.
	size := func(c *fixtureCall, memory int) int {
		return len(c.s.Kwargs) + len(c.attempt.Outcome.Value) + len(c.attempt.Result.Effects.Journal) +
			len(c.s.Args[0]) + memory
	}
	fill := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, more := range []int{0, 1} {
		c := make1()
		c.attempt.Outcome.Value = fill(agent.MaxFixtureBytes - size(c, 0) + 2 + more)
		if f, _ := fixtureOf(c.s, c.g, c.attempt); (f != nil) != (more == 0) {
			t.Errorf("%d bytes: %v", size(c, 0), f != nil)
		}
		c = make1()
		c.attempt.Result.Facts.ContextReads = []string{"k"}
		c.s.Memory = map[string]json.RawMessage{"k": json.RawMessage("1")}
		c.attempt.Outcome.Value = fill(agent.MaxFixtureBytes - size(c, len(`{"k":1}`)) + 2 + more)
		if f, _ := fixtureOf(c.s, c.g, c.attempt); (f != nil) != (more == 0) {
			t.Errorf("%d bytes with the context: %v", size(c, len(`{"k":1}`)), f != nil)
		}
	}
}

// Which fixtures a successor must reproduce.
func TestBinding(t *testing.T) {
	t.Parallel()
	number, err := contract.Compile(json.RawMessage(`{"type":"number"}`))
	if err != nil {
		t.Fatal(err)
	}
	f := agent.Fixture{Args: texts("7"), Kwargs: json.RawMessage("{}"), Value: json.RawMessage("1")}
	read := f
	read.Effects = json.RawMessage(`[1]`)
	text := f
	text.Value = json.RawMessage(`"one"`)
	expects := func(v string) []agent.Example { return []agent.Example{example("ex_1", v, "7")} }
	tests := []struct {
		name     string
		f        agent.Fixture
		schema   *contract.Schema
		adaptive bool
		examples []agent.Example
		want     bool
	}{
		{"as a rule", f, nil, false, nil, true},
		{"it keeps the contract", f, number, false, nil, true},
		{"it breaks the contract of today", text, number, false, nil, false},
		{"a source changed", read, nil, true, nil, false},
		{"a source changed that it does not rest on", f, nil, true, nil, true},
		{"it rests on a source", read, nil, false, nil, true},
		{"a person expects the same", f, nil, false, expects("1"), true},
		{"a person expects something else", f, nil, false, expects("2"), false},
		{"a person expects something else of another input", f, nil, false, []agent.Example{example("ex_1", "2", "8")},
			true},
	}
	for _, tt := range tests {
		s := &call.Selection{Call: &call.Call{}, Terms: call.Terms{Schema: tt.schema},
			Artifact: selectiontest.Artifact(func(a *agent.Artifact) { a.Examples = tt.examples })}
		if got := binds(s, tt.f, tt.adaptive); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A proof is done once for all who share the candidate; one that was interrupted is done again by the next.
func TestProofIsDoneOnce(t *testing.T) {
	t.Parallel()
	ran := 0
	ctx, cut := context.WithCancel(t.Context())
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"boom": runtimetest.Breaks(agent.ErrExecution, "boom"),
		"new": func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
			if ran++; ran == 1 {
				cut()
				return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrCanceled, Ours: true}}
			}
			return runtimetest.Value("2")
		}}}
	g := &agent.Generation{ID: "gen-1", Code: "one", CodeChecksum: agent.Checksum("one"), Cacheable: true,
		CheckedFingerprint: agent.FingerprintNone}
	for i, arg := range []string{"7", "8"} {
		g.Fixtures = append(g.Fixtures, agent.Fixture{CallID: "call_" + strconv.Itoa(i), Args: texts(arg),
			Kwargs: json.RawMessage("{}"), Value: json.RawMessage("1"), SessionID: "sess_1"})
	}
	c := against(t, box, selectiontest.Artifact(nil, g))
	made := func(code string) *Candidate {
		return New(agent.Generation{Code: code, CodeChecksum: agent.Checksum(code)}, g)
	}
	cand := made("new")
	if broken := Prove(ctx, cand, c).Broken; broken == nil || broken.Class != agent.ClassNone ||
		broken.Outcome.ErrorType != agent.ErrCanceled || cand.proved {
		t.Fatalf("interrupted: %+v", broken)
	}
	broken := Prove(t.Context(), cand, c).Broken
	if broken == nil || broken.Class != agent.ClassIntrinsic || broken.Fixture == "" ||
		!strings.HasSuffix(broken.ID, ".f1") ||
		broken.Hint.For(agent.LocalOwner) != "for args [7] kwargs {} the answer was 1, now it is 2" {
		t.Fatalf("broken: %+v", broken)
	}
	if again := Prove(t.Context(), cand, c).Broken; again == nil || again.Fixture != broken.Fixture ||
		again.Hint != broken.Hint || ran != 2 {
		t.Errorf("the proof was done again: %d runs", ran)
	}
	cand.turn <- struct{}{} // another call is at it
	if waited := Prove(ctx, cand, c).Broken; waited == nil || waited.Class != agent.ClassNone ||
		waited.Stage != attempt.StageProof {
		t.Errorf("a call that was interrupted while it waited: %+v", waited)
	}
	<-cand.turn
	// A person asked for the change: then the differences are listed, and failures break it all the same.
	may := *c
	may.MayChange = true
	if v := Prove(t.Context(), made("new"), &may); v.Broken != nil || len(v.Changed) != 2 || len(v.Kept) != 0 {
		t.Errorf("%d changed, %d kept, broken %+v", len(v.Changed), len(v.Kept), v.Broken)
	}
	if broken := Prove(t.Context(), made("boom"), &may).Broken; broken == nil ||
		!strings.HasSuffix(broken.Hint.For(agent.LocalOwner), "now it is execution: boom") {
		t.Errorf("a failure: %+v", broken)
	}
}

// A runner that dies while a candidate is run on an example, or on an input that a person called wrong, leaves open
// whether the candidate may serve.
func TestProofIsOpenWhereARunnerDied(t *testing.T) {
	t.Parallel()
	wrong := agent.Verdict{CallID: "call_1", Verdict: agent.VerdictWrong, State: agent.ExampleActive, Args: texts("7"),
		Kwargs: json.RawMessage("{}"), Got: json.RawMessage("1")}
	for name, fixed := range map[string]agent.Artifact{
		"example": {Examples: []agent.Example{example("ex_1", "2", "7")}},
		"verdict": {Verdicts: []agent.Verdict{wrong}},
	} {
		dies := true
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{
			"new": func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
				if dies {
					return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrRunnerCrash, Ours: true}}
				}
				return runtimetest.Value("1")
			}}}
		c := against(t, box, &fixed)
		cand := New(agent.Generation{Code: "new", CodeChecksum: agent.Checksum("new")}, nil)
		broken := Prove(t.Context(), cand, c).Broken
		if broken == nil || broken.Class != agent.ClassNone || broken.Outcome.ErrorType != agent.ErrRunnerCrash ||
			cand.proved {
			t.Errorf("%s: the proof ended in %+v, want an interruption", name, broken)
		}
		dies = false
		broken = Prove(t.Context(), cand, c).Broken
		if broken == nil || broken.Class != agent.ClassIntrinsic || !cand.proved {
			t.Errorf("%s: the second proof ended in %+v, want a broken one", name, broken)
		}
	}
}

// against returns the conditions of a call that proves programs of the box.
func against(t *testing.T, box *runtimetest.Box, a *agent.Artifact) *Against {
	t.Helper()
	p := agent.DefaultPolicy()
	held, err := storetest.NewMemory(time.Now).Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return &Against{Selection: call.Selection{Call: &call.Call{ID: "call_now", Policy: &p, Role: "r", Method: "m",
		Session: agent.Session{ID: "sess_1"}, Env: &env.Env{Options: env.Options{Sandbox: box, Now: time.Now}, Store: held}},
		Terms: call.Terms{Checked: agent.FingerprintNone}, Artifact: a}}
}

// A proof is repeated exactly if the predecessor has new answers since.
func TestUnseen(t *testing.T) {
	t.Parallel()
	g := &agent.Generation{ID: "gen-1", Fixtures: []agent.Fixture{{CallID: "call_1"}, {CallID: "call_2"}}}
	now := selectiontest.Artifact(nil, g)
	for _, tt := range []struct {
		name        string
		made        Reproduced
		predecessor *agent.Generation
		now         *agent.Artifact
		want        bool
	}{
		{"no predecessor", Reproduced{Checked: true}, nil, now, false},
		{"one that is not kept", Reproduced{Checked: true}, &agent.Generation{ID: "gen-0"}, now, false},
		{"no look at fixtures", Reproduced{}, g, now, false},
		{"all seen", Reproduced{Checked: true, Seen: []string{"call_1", "call_2"}}, g, now, false},
		{"one is new", Reproduced{Checked: true, Seen: []string{"call_1"}}, g, now, true},
		{"they went", Reproduced{Checked: true, Seen: []string{"call_1"}}, g, selectiontest.Artifact(nil,
			&agent.Generation{ID: "gen-1"}),
			false},
	} {
		if got := tt.made.Unseen(tt.predecessor, tt.now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A failed proof is found once for the calls that share a candidate, and each keeps it as its own.
func TestAFailedProofOfAnotherCall(t *testing.T) {
	t.Parallel()
	found := &judge.Judged{Attempt: attempt.Attempt{ID: "call_ann.f2"}, Of: "ann", Fixture: "call_ann",
		Outcome: agent.Failed(agent.ErrExecution, "it broke")}
	for owner, fixture := range map[string]any{"ann": "call_ann", "ben": nil} {
		c := &call.Call{ID: "call_now", Session: agent.Session{Owner: owner}}
		if own := proofFor(c, found); own.ID != "call_now.f2" || own.Outcome.Metadata["fixture"] != fixture ||
			found.Outcome.Metadata != nil {
			t.Errorf("%s: %+v", owner, own)
		}
	}
	found = &judge.Judged{Attempt: attempt.Attempt{ID: "call_ann.ex_1.2"}, Of: "ann", Example: "ex_1.2"}
	if own := proofFor((&call.Call{ID: "call_now",
		Session: agent.Session{Owner: "ben"}}), found); own.ID != "call_now.ex_1.2" ||
		own.Outcome.Metadata["example"] != "ex_1.2" {
		t.Errorf("of an example: %+v", own)
	}
}

func texts(values ...string) (out []json.RawMessage) {
	for _, v := range values {
		out = append(out, json.RawMessage(v))
	}
	return out
}

func example(id, value string, args ...string) agent.Example {
	return agent.Example{ID: id, State: agent.ExampleActive, Expect: agent.Expectation{Value: json.RawMessage(value)},
		Kwargs: json.RawMessage("{}"), Args: texts(args...)}
}
