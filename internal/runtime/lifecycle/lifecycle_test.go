package lifecycle

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

// The lifecycle's edges as docs/concepts.md lists them, as lifecycle.go holds them, and as artifacts follow them.
func TestLifecycleIsAsDrawn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (-|candidate|probation|durable|degraded) \| (\w+) \| (\w+) \|$`)
	var drawn []transition
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		drawn = append(drawn, transition{strings.TrimPrefix(m[1], "-"), m[2], m[3]})
	}
	edges := transitions()
	if len(drawn) != len(edges) {
		t.Fatalf("%d edges are drawn, %d are held", len(drawn), len(edges))
	}
	for i, e := range edges {
		if drawn[i] != e {
			t.Errorf("edge %d: drawn %v, held %v", i, drawn[i], e)
		}
		if got := moved(t, e); got != e.to {
			t.Errorf("%s on %s: an artifact went to %q, want %q", e.from, e.event, got, e.to)
		}
	}
	for _, state := range []string{agent.StateCandidate, agent.StateProbation, agent.StateDurable,
		agent.StateDegraded} {
		if after(state, "rumour") != state {
			t.Errorf("%s moved on an event that is none", state)
		}
	}
}

// moved takes an artifact in the edge's first state through its event, by the code that calls use.
func moved(t *testing.T, e transition) string {
	t.Helper()
	p := agent.DefaultPolicy()
	at := time.Unix(1, 0)
	a := (*agent.Artifact)(nil).Apply(agent.ArtifactChange{Role: "r", MethodName: "m", At: at,
		Generation: &agent.Generation{ID: "gen-1", Trigger: "initial_forge", CheckedFingerprint: "none"}})
	if e.event == onAdopted {
		return a.LifecycleState
	}
	window, ok, bad := strings.Repeat("o", 9), int64(9), int64(0)
	if e.event == onFailing || e.from == agent.StateDegraded && e.event != onGates {
		window, ok, bad = "ii", 0, 2
	}
	g := *a.Generations[0]
	g.State, g.Window, g.SuccessCount, g.IntrinsicFailureCount = e.from, window, ok, bad
	a.Generations[0], a.LifecycleState, a.Scorecard.Sessions = &g, e.from, []string{"one"}
	c := &Answer{Policy: &p, Session: "two", Artifact: a, Stored: true, Generation: "gen-1", OK: true}
	change := agent.ArtifactChange{Role: "r", MethodName: "m", At: at, ResultOf: "gen-1", Result: agent.ClassOK,
		SessionID: "two"}
	switch e.event {
	case onFailing:
		c.OK, change.Result = false, agent.ClassIntrinsic
	case onPromotion:
		change = agent.ArtifactChange{Role: "r", MethodName: "m", At: at, State: agent.StateDurable}
		return a.Apply(change).LifecycleState
	}
	c.Changes = []agent.ArtifactChange{change}
	Of(c)
	return a.Apply(c.Changes[0]).LifecycleState
}

// The gates of solver_promotion_v1, each at its edge.
func TestPromotionGates(t *testing.T) {
	t.Parallel()
	base := func() *agent.Artifact {
		return selectiontest.Artifact(func(a *agent.Artifact) {
			a.Scorecard = agent.Scorecard{Sessions: []string{"one"}, ContractChecked: 20, ContractPassed: 19}
		}, selectiontest.Generation("gen-1", "none", "ooooooooo", nil))
	}
	tests := []struct {
		name    string
		change  func(*agent.Artifact)
		session string
		want    bool
	}{
		{"all gates", nil, "two", true},
		{"one session", nil, "one", false},
		{"nine calls", func(a *agent.Artifact) { a.Generations[0].SuccessCount = 8 }, "two", false},
		{"contract kept too seldom", func(a *agent.Artifact) { a.Scorecard.ContractPassed = 18 }, "two", false},
		{"an exhausted guardrail", func(a *agent.Artifact) { a.Scorecard.GuardrailExhausted = 1 }, "two", false},
		{"an exhausted outcome repair", func(a *agent.Artifact) { a.Scorecard.OutcomeRepairExhausted = 1 }, "two",
			false},
		{"a referral", func(a *agent.Artifact) { a.Scorecard.WrongToolBoundary = 1 }, "two", false},
		{"an incumbent that fails more seldom", func(a *agent.Artifact) {
			a.Generations[0].Window = "ooooooooio"
			a.Generations = append(a.Generations, selectiontest.Generation("gen-0", "none", "oooo",
				func(g *agent.Generation) { g.State = agent.StateDurable }))
		}, "two", false},
		{"an incumbent of another contract", func(a *agent.Artifact) {
			a.Generations[0].Window = "ooooooooio"
			a.Generations = append(a.Generations, selectiontest.Generation("gen-0", "other", "oooo",
				func(g *agent.Generation) { g.State = agent.StateDurable }))
		}, "two", true},
		{"an incumbent that is no better", func(a *agent.Artifact) {
			a.Generations = append(a.Generations, selectiontest.Generation("gen-0", "none", "oooo",
				func(g *agent.Generation) { g.State = agent.StateDurable }))
		}, "two", true},
	}
	p := agent.DefaultPolicy()
	for _, tt := range tests {
		a := base()
		if tt.change != nil {
			tt.change(a)
		}
		if got := promotable(a, tt.session, &p); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// With enforcement the generation furthest in its lifecycle runs; without it states do not count.
func TestSelectEnforced(t *testing.T) {
	t.Parallel()
	state := func(s string) func(*agent.Generation) { return func(g *agent.Generation) { g.State = s } }
	a := selectiontest.Artifact(nil, selectiontest.Generation("gen-3", "k", "o", state(agent.StateProbation)),
		selectiontest.Generation("gen-2", "k", "o", state(agent.StateDurable)),
		selectiontest.Generation("gen-1", "other", "o", state(agent.StateDurable)))
	in := selection.Input{Role: "r", Method: "m", Artifact: a, CheckedFingerprint: "k",
		ImportAllowed: func(string) bool { return true }, IgnoresArgs: func(*agent.Generation) bool { return false }}
	for _, enforce := range []bool{false, true} {
		p := agent.DefaultPolicy()
		p.Promotion.Enforce = enforce
		in.Policy = &p
		want := map[bool]string{false: "gen-3 healthy", true: "gen-2 not_promoted"}[enforce]
		if d := selection.Select(in); d.Generation.ID+" "+d.Reason != want {
			t.Errorf("enforce %v: %s %s, want %s", enforce, d.Generation.ID, d.Reason, want)
		}
	}
}

// With enforcement, a restored program below a newer one does not take over because of its more mature state, until a
// person picks it.
func TestSelectEnforcedRestored(t *testing.T) {
	t.Parallel()
	restored := selectiontest.Generation("gen-2", "k", "o", func(g *agent.Generation) {
		g.State, g.Restored = agent.StateDurable,
			&agent.Restored{By: "audit_1"}
	})
	a := selectiontest.Artifact(nil, selectiontest.Generation("gen-3", "k", "o",
		func(g *agent.Generation) { g.State = agent.StateCandidate }),
		restored)
	p := agent.DefaultPolicy()
	p.Promotion.Enforce = true
	in := selection.Input{Role: "r", Method: "m", Artifact: a, CheckedFingerprint: "k", Policy: &p,
		ImportAllowed: func(string) bool { return true }, IgnoresArgs: func(*agent.Generation) bool { return false }}
	wants := func(when, want string) {
		t.Helper()
		if d := selection.Select(in); d.Generation.ID+" "+d.Reason != want {
			t.Errorf("%s: %s %s, want %s", when, d.Generation.ID, d.Reason, want)
		}
	}
	a.CurrentID, a.Generations[0].ParentID = "gen-3", nil
	wants("restored below", "gen-3 healthy")
	a.CurrentID = "gen-2"
	wants("picked", "gen-2 healthy")
	a.CurrentID, a.Generations[0].ParentID = "gen-3", &restored.ID
	wants("the current one was made of it", "gen-2 not_promoted")
}

// The lifecycle of generations, where calls do not show it.
func TestLifecycleOfAnswers(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	failing := func(id string) []agent.ArtifactChange {
		return []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: time.Unix(1, 0), ResultOf: id,
			Result: agent.ClassIntrinsic, ErrorType: agent.ErrExecution}}
	}
	answer := func(a *agent.Artifact, generation string, changes []agent.ArtifactChange) *Answer {
		return &Answer{Policy: &p, Session: "s", Artifact: a, Stored: true, Generation: generation, Changes: changes}
	}
	of := func(state string) func(*agent.Generation) { return func(g *agent.Generation) { g.State = state } }
	two := func() *agent.Artifact {
		return selectiontest.Artifact(func(a *agent.Artifact) { a.LifecycleState = agent.StateProbation },
			selectiontest.Generation("gen-2", "none", "ii", of(agent.StateDurable)), selectiontest.Generation("gen-1",
				"none", "ooo", of("")))
	}
	for _, id := range []string{"gen-2", ""} { // "" is the current one
		c := answer(two(), "gen-2", failing(id))
		if state, decision := Of(c); state != agent.StateDegraded || decision != decideDemote ||
			c.Changes[0].State != agent.StateDegraded {
			t.Errorf("of %q: %s, %s, change to %q", id, state, decision, c.Changes[0].State)
		}
	}
	c := answer(two(), "gen-1", failing("gen-2"))
	if state, decision := Of(c); state != agent.StateProbation || decision != decideHold ||
		c.Changes[0].State != agent.StateDegraded {
		t.Errorf("another generation answered: %s, %s, change to %q", state, decision, c.Changes[0].State)
	}
	c = answer(two(), "gen-2", failing("gen-2"))
	c.Changes[0].Result = agent.ClassAdaptive
	if state, _ := Of(c); state != agent.StateDegraded {
		t.Errorf("after adaptive failures: %s", state)
	}
	c = answer(two(), "gen-2", failing("gen-2"))
	c.Changes[0].Result = agent.ClassExtrinsic
	if state, decision := Of(c); state != agent.StateDurable || decision != decideHold {
		t.Errorf("after an outage: %s, %s", state, decision)
	}
	p.Promotion.Shadow = false
	c = answer(two(), "gen-2", failing("gen-2"))
	if state, _ := Of(c); state != agent.StateDurable || c.Changes[0].State != "" {
		t.Errorf("without gates: %s", state)
	}
	if got := selection.StateRank(agent.StateDurable)*100 + selection.StateRank(agent.StateProbation)*10 +
		selection.StateRank(
			agent.StateCandidate); got != 321 || selection.StateRank(agent.StateDegraded) != 0 {
		t.Errorf("ranks %d", got)
	}
	for _, e := range transitions() {
		if got := after(e.from, e.event); got != e.to {
			t.Errorf("%q after %s: %q, want %q", e.from, e.event, got, e.to)
		}
	}
	// Failures count as calls, too.
	p.Promotion = agent.PromotionPolicy{MinCalls: 10, MinSessions: 1}
	p.Degraded.MinFailures = 20
	if a := selectiontest.Artifact(nil, selectiontest.Generation("gen-1", "none", "ooooooiia", nil)); !promotable(a,
		"s", &p) {
		t.Error("nine calls and this one are not ten")
	}
	if a := selectiontest.Artifact(nil, selectiontest.Generation("gen-1", "none", "oooooiia", nil)); promotable(a, "s",
		&p) {
		t.Error("eight calls and this one are ten")
	}
}
