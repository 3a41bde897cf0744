package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

// Which calls become proofs for successors. Each row spoils one thing of a call that does.
func TestFixture(t *testing.T) {
	t.Parallel()
	type fixtureCall struct {
		p       *agent.Policy
		s       *selected
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
		c.s = &selected{Against: proof.Against{Selection: call.Selection{Call: &call.Call{ID: "call_1", Policy: &p,
			Args:   texts("7"),
			Kwargs: json.RawMessage("{}")}, Artifact: selectiontest.Artifact(nil)}}}
		c.attempt = judge.Judged{Outcome: agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("14")}}
		c.attempt.Result = sandbox.Result{Facts: &report.Facts{UsesArgs: true},
			Effects: sandbox.Effects{Journal: json.RawMessage(`["e"]`)}}
		return c
	}
	for _, tt := range tests {
		c := make1()
		tt.spoil(c)
		if got, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); (got != nil) != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	c := make1()
	c.s.Memory = map[string]json.RawMessage{"k": json.RawMessage("1")}
	if f, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); f.Context != nil || string(f.Value) != "14" ||
		string(f.Effects) != `["e"]` || f.CallID != "call_1" {
		t.Errorf("a program that does not look at the context: %+v", f)
	}
	for _, facts := range []report.Facts{{ContextReads: []string{"k"}}, {ContextWrites: []string{"k"}}} {
		c.attempt.Result.Facts = &facts
		if f, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); string(f.Context) != `{"k":1}` {
			t.Errorf("a program that looks at the context: %+v", f)
		}
	}
	c.s.Memory = nil
	if f, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); f.Context != nil {
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
		if f, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); (f != nil) != (more == 0) {
			t.Errorf("%d bytes: %v", size(c, 0), f != nil)
		}
		c = make1()
		c.attempt.Result.Facts.ContextReads = []string{"k"}
		c.s.Memory = map[string]json.RawMessage{"k": json.RawMessage("1")}
		c.attempt.Outcome.Value = fill(agent.MaxFixtureBytes - size(c, len(`{"k":1}`)) + 2 + more)
		if f, _ := proof.FixtureOf(&c.s.Selection, c.g, c.attempt); (f != nil) != (more == 0) {
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
		s := &selected{Against: proof.Against{Selection: call.Selection{Call: &call.Call{},
			Terms:    call.Terms{Schema: tt.schema},
			Artifact: selectiontest.Artifact(func(a *agent.Artifact) { a.Examples = tt.examples })}}}
		if got := proof.Binds(&s.Selection, tt.f, tt.adaptive); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A proof is done once for all who share the candidate; one that was interrupted is done again by the next.
func TestProofIsDoneOnce(t *testing.T) {
	t.Parallel()
	ran := 0
	ctx, cut := context.WithCancel(t.Context())
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1"),
		"new": func(ctx context.Context, _ sandbox.Request, _ sandbox.Host) sandbox.Result {
			if ran++; ran == 1 {
				cut()
				return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrCanceled, Ours: true}}
			}
			return runtimetest.Value("2")
		}}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"one"}}, nil)
	_, invoke := conversation(t, r, SessionRequest{Role: "r"})
	invoke("m", 7)
	invoke("m", 8)
	a := artifactOf(t, r, "r", "m")
	s := r.selection(DryRun{Role: "r", Method: "m", Artifact: a})
	cand := &forge.Candidate{Candidate: proof.Candidate{Generation: agent.Generation{Code: "new",
		CodeChecksum: agent.Checksum("new")}, Predecessor: a.Current(), Proof: proof.Proof{Turn: make(chan struct{},
		1)}}}
	if broken := s.Prove(ctx, &cand.Candidate, false, false); broken == nil || broken.Class != agent.ClassNone ||
		broken.Outcome.ErrorType != agent.ErrCanceled || cand.Proof.Done {
		t.Fatalf("interrupted: %+v", broken)
	}
	broken := s.Prove(t.Context(), &cand.Candidate, false, false)
	if broken == nil || broken.Class != agent.ClassIntrinsic || broken.Fixture == "" ||
		!strings.HasSuffix(broken.ID, ".f1") ||
		broken.Hint.For(agent.LocalOwner) != "for args [7] kwargs {} the answer was 1, now it is 2" {
		t.Fatalf("broken: %+v", broken)
	}
	if again := s.Prove(t.Context(), &cand.Candidate, false, false); again == nil || again.Fixture != broken.Fixture ||
		again.Hint != broken.Hint || ran != 2 {
		t.Errorf("the proof was done again: %d runs", ran)
	}
	cand.Proof.Turn <- struct{}{} // another call is at it
	if waited := s.Prove(ctx, &cand.Candidate, false, false); waited == nil || waited.Class != agent.ClassNone ||
		waited.Stage != attempt.StageProof {
		t.Errorf("a call that was interrupted while it waited: %+v", waited)
	}
	<-cand.Proof.Turn
	// A person asked for the change: then the differences are listed, and failures break it all the same.
	may := &forge.Candidate{Candidate: proof.Candidate{Generation: cand.Generation, Predecessor: a.Current(),
		Proof: proof.Proof{Turn: make(chan struct{}, 1)}}}
	if broken := s.Prove(t.Context(), &may.Candidate, false, true); broken != nil || len(may.Proof.Changed) != 2 ||
		len(may.Proof.Kept) != 0 {
		t.Errorf("%d changed, %d kept, broken %+v", len(may.Proof.Changed), len(may.Proof.Kept), broken)
	}
	box.Programs["boom"] = runtimetest.Breaks(agent.ErrExecution, "boom")
	boom := &forge.Candidate{Candidate: proof.Candidate{Generation: agent.Generation{Code: "boom",
		CodeChecksum: agent.Checksum("boom")}, Predecessor: a.Current(), Proof: proof.Proof{Turn: make(chan struct{},
		1)}}}
	if broken := s.Prove(t.Context(), &boom.Candidate, false, true); broken == nil ||
		!strings.HasSuffix(broken.Hint.For(agent.LocalOwner), "now it is execution: boom") {
		t.Errorf("a failure: %+v", broken)
	}
}

// A runner that dies while a candidate is run on an example, or on an input that a person called wrong, leaves open
// whether the candidate may serve.
func TestProofIsOpenWhereARunnerDied(t *testing.T) {
	t.Parallel()
	wrong := agent.Verdict{CallID: "call_1", Verdict: agent.VerdictWrong, State: agent.ExampleActive,
		Args: []json.RawMessage{json.RawMessage("7")}, Kwargs: json.RawMessage("{}"), Got: json.RawMessage("1")}
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
		r, _ := scripted(t, box, nil, nil)
		fixed.Role, fixed.MethodName = "r", "m"
		s := r.selection(DryRun{Role: "r", Method: "m", Artifact: &fixed})
		cand := &proof.Candidate{Generation: agent.Generation{Code: "new", CodeChecksum: agent.Checksum("new")},
			Proof: proof.Proof{Turn: make(chan struct{}, 1)}}
		broken := s.Prove(t.Context(), cand, false, false)
		if broken == nil || broken.Class != agent.ClassNone || broken.Outcome.ErrorType != agent.ErrRunnerCrash ||
			cand.Proof.Done {
			t.Errorf("%s: the proof ended in %+v, want an interruption", name, broken)
		}
		dies = false
		if broken = s.Prove(t.Context(), cand, false, false); broken == nil || broken.Class != agent.ClassIntrinsic ||
			!cand.Proof.Done {
			t.Errorf("%s: the second proof ended in %+v, want a broken one", name, broken)
		}
	}
}
