package runtime

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Which programs may answer another call than the one they were written for.
func TestCacheability(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	purpose := &agent.Contract{Purpose: "adds"}
	tests := []struct {
		name     string
		call     *opened
		contract *agent.Contract
		facts    report.Facts
		want     bool
		why      string
	}{
		{"it uses its arguments", &opened{args: texts("7")}, nil, report.Facts{UsesArgs: true, Literals: []string{"7"}},
			true, CacheStable},
		{"there are none", &opened{}, nil, report.Facts{}, true, CacheStable},
		{"it ignores them", &opened{args: texts("7")}, nil, report.Facts{Literals: []string{"8"}}, false, cacheIgnored},
		{"it ignores keywords", &opened{kwargs: json.RawMessage(`{"n":7}`)}, nil, report.Facts{}, false, cacheIgnored},
		{"it declares to take none", &opened{args: texts("7")}, nil, report.Facts{Literals: []string{"7"}}, true,
			CacheStable},
		{"an argument stands in it", &opened{args: texts(`"Ada"`)}, nil, report.Facts{Literals: []string{`"Ada"`}},
			false, cacheBaked},
		{"a keyword's value stands in it", &opened{kwargs: json.RawMessage(`{"n":7}`)}, nil,
			report.Facts{Literals: []string{"7"}}, false, cacheBaked},
		{"a dispatch method", &opened{method: "ask"}, nil, report.Facts{UsesArgs: true}, false, cacheDispatch},
		{"delegated with a contract", &opened{depth: 1}, purpose, report.Facts{}, true, cacheDelegated},
		{"delegated without", &opened{depth: 1}, nil, report.Facts{}, true, CacheStable},
		{"a contract of a client's", &opened{}, purpose, report.Facts{}, true, CacheStable},
	}
	for _, tt := range tests {
		tt.call.policy = &p
		if tt.call.kwargs == nil {
			tt.call.kwargs = json.RawMessage("{}")
		}
		s := &selected{opened: tt.call, terms: terms{contract: tt.contract}}
		takes := &agent.Interface{Origin: agent.OriginInferred}
		if strings.Contains(tt.name, "declares") {
			takes.Origin = agent.OriginDeclared
		}
		if got, why := s.cacheability(&tt.facts, takes); got != tt.want || why != tt.why {
			t.Errorf("%s: %v (%s), want %v (%s)", tt.name, got, why, tt.want, tt.why)
		}
	}
}

// Scalars are looked for in arrays and objects, to a depth.
func TestBaked(t *testing.T) {
	t.Parallel()
	literals := []string{"7", `"x"`, `"\u003cé\u003e"`} // an earlier version kept them with escapes
	for raw, want := range map[string]bool{"7": true, `"x"`: true, "8": false, `"7"`: false, "[1,7]": true,
		`{"a":"x"}`: true, `{"x":1}`: false, `{"a":[{"b":7}]}`: true,
		"[[[[7]]]]": true, "[[[[[7]]]]]": false, `{"a":{"a":{"a":{"a":{"a":7}}}}}`: false, "null": false, "true": false,
		`"<é>"`: true, `"<\u00e9\u003e"`: true, "7.0": true} {
		if got := baked(literals, texts(raw), json.RawMessage("{}")); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
}

func TestFactsCache(t *testing.T) {
	t.Parallel()
	var c factsCache
	g := func(checksum, facts string) *agent.Generation {
		return &agent.Generation{CodeChecksum: checksum, Facts: json.RawMessage(facts)}
	}
	first := c.of(g("a", `{"uses_fetch":true}`))
	if !first.UsesFetch || first.UsesArgs || c.of(g("a", "")) != first {
		t.Errorf("facts %+v", first)
	}
	for _, odd := range []string{"", "[", "7"} {
		if f := c.of(g("odd"+odd, odd)); !f.UsesArgs {
			t.Errorf("%q: nothing is known, and it counts as %+v", odd, f)
		}
	}
	most := 4096
	for i := len(c.all); i < most; i++ {
		c.of(g(strings.Repeat("x", i), "{}"))
	}
	if len(c.all) != most || c.of(g("a", "")) != first {
		t.Errorf("%d are kept", len(c.all))
	}
	if c.of(g("one more", "{}")); len(c.all) != 1 {
		t.Errorf("%d are kept beyond the bound", len(c.all))
	}
}

func TestEncodeFacts(t *testing.T) {
	t.Parallel()
	facts := func(n int) *report.Facts { return &report.Facts{Imports: []string{strings.Repeat("x", n)}} }
	rest := len(EncodeFacts(facts(1))) - 1
	if raw := EncodeFacts(facts(maxFactsEncoded - rest)); len(raw) != maxFactsEncoded {
		t.Errorf("facts of the greatest size: %d bytes", len(raw))
	}
	if raw := EncodeFacts(facts(maxFactsEncoded - rest + 1)); raw != nil {
		t.Errorf("facts of %d bytes are kept", len(raw))
	}
}

func TestEngineOf(t *testing.T) {
	t.Parallel()
	for engine, want := range map[string]string{"ssa 3": "ssa", "yaegi v0.16": "yaegi", "": "", "other 1": "",
		"ssaa": ""} {
		got, tier := engineOf(&report.Facts{Engine: engine})
		if got != want || (tier == sandbox.TierEngine) != (want != "") {
			t.Errorf("%q: %q of tier %q", engine, got, tier)
		}
	}
	if got, tier := engineOf(nil); got != "" || tier != "" {
		t.Errorf("nothing is known: %q of tier %q", got, tier)
	}
}

// The lifecycle of generations, where calls do not show it.
func TestLifecycleOfAnswers(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	failing := func(id string) []agent.ArtifactChange {
		return []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: time.Unix(1, 0), ResultOf: id,
			Result: agent.ClassIntrinsic, ErrorType: agent.ErrExecution}}
	}
	answer := func(a *agent.Artifact, generation string, changes []agent.ArtifactChange) *answered {
		return &answered{selected: selected{opened: &opened{policy: &p, session: agent.Session{ID: "s"}}, artifact: a},
			source: agent.SourcePersisted, generation: generation, changes: changes,
			outcome: agent.Failed(agent.ErrExecution, "boom")}
	}
	of := func(state string) func(*agent.Generation) { return func(g *agent.Generation) { g.State = state } }
	two := func() *agent.Artifact {
		return artifact(func(a *agent.Artifact) { a.LifecycleState = agent.StateProbation },
			generation("gen-2", "none", "ii", of(agent.StateDurable)), generation("gen-1", "none", "ooo", of("")))
	}
	for _, id := range []string{"gen-2", ""} { // "" is the current one
		c := answer(two(), "gen-2", failing(id))
		if state, decision := c.lifecycle(); state != agent.StateDegraded || decision != decideDemote ||
			c.changes[0].State != agent.StateDegraded {
			t.Errorf("of %q: %s, %s, change to %q", id, state, decision, c.changes[0].State)
		}
	}
	c := answer(two(), "gen-1", failing("gen-2"))
	if state, decision := c.lifecycle(); state != agent.StateProbation || decision != decideHold ||
		c.changes[0].State != agent.StateDegraded {
		t.Errorf("another generation answered: %s, %s, change to %q", state, decision, c.changes[0].State)
	}
	c = answer(two(), "gen-2", failing("gen-2"))
	c.changes[0].Result = agent.ClassAdaptive
	if state, _ := c.lifecycle(); state != agent.StateDegraded {
		t.Errorf("after adaptive failures: %s", state)
	}
	c = answer(two(), "gen-2", failing("gen-2"))
	c.changes[0].Result = agent.ClassExtrinsic
	if state, decision := c.lifecycle(); state != agent.StateDurable || decision != decideHold {
		t.Errorf("after an outage: %s, %s", state, decision)
	}
	p.Promotion.Shadow = false
	c = answer(two(), "gen-2", failing("gen-2"))
	if state, _ := c.lifecycle(); state != agent.StateDurable || c.changes[0].State != "" {
		t.Errorf("without gates: %s", state)
	}
	if got := stateRank(agent.StateDurable)*100 + stateRank(agent.StateProbation)*10 + stateRank(
		agent.StateCandidate); got != 321 || stateRank(agent.StateDegraded) != 0 {
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
	if a := artifact(nil, generation("gen-1", "none", "ooooooiia", nil)); !promotable(a, "s", &p) {
		t.Error("nine calls and this one are not ten")
	}
	if a := artifact(nil, generation("gen-1", "none", "oooooiia", nil)); promotable(a, "s", &p) {
		t.Error("eight calls and this one are ten")
	}
}
