package selection

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

// callers makes a generation one of a caller's contract.
func callers(g *agent.Generation) { g.CallersContract = true }

// A program made for a caller's contract never replaces another one for a call without a contract, neither while a
// model writes nor while the current program waits for a person.
func TestCallersContractsStandInForNothing(t *testing.T) {
	t.Parallel()
	ask := agent.DefaultPolicy()
	ask.ApprovalRequired = true
	approved := func(g *agent.Generation) { g.Approved = true }
	both := func(g *agent.Generation) { callers(g); approved(g) }
	for _, c := range []struct {
		name     string
		artifact *agent.Artifact
		policy   agent.Policy
		want     string // decision, reason, the program that runs and the one that stands in
	}{
		{"nothing else", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", "k", "o", callers)),
			agent.DefaultPolicy(),
			"forge contract_changed - -"},
		{"asked for anew", selectiontest.Artifact(func(a *agent.Artifact) { a.ForceRegenerate = "suspect" },
			selectiontest.Generation("gen-1", "k", "o", callers)), agent.DefaultPolicy(),
			"forge regenerate_requested - -"},
		{"it waits, and was preceded by a caller's", selectiontest.Artifact(nil, selectiontest.Generation("gen-2",
			"none", "o", nil),
			selectiontest.Generation("gen-1", "k", "o", both)), ask, "refuse approval_required - -"},
		{"it waits, and was preceded by its like", selectiontest.Artifact(nil, selectiontest.Generation("gen-3",
			"none", "o", nil),
			selectiontest.Generation("gen-2", "k", "o", both), selectiontest.Generation("gen-1", "none", "o",
				approved)), ask,
			"run approval_required gen-1 -"},
	} {
		d := Select(Input{Role: "calculator", Method: "add", Artifact: c.artifact,
			CheckedFingerprint: agent.FingerprintNone, Policy: &c.policy,
			ImportAllowed: func(string) bool { return true },
			IgnoresArgs:   func(*agent.Generation) bool { return false }})
		runs, standsIn := "-", "-"
		if d.Decision == agent.DecideRun {
			runs = d.Generation.ID
		}
		if d.Fallback != nil {
			standsIn = d.Fallback.ID
		}
		if got := strings.Join([]string{d.Decision, d.Reason, runs, standsIn}, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// The decision matrix of seed 001.
func TestSelect(t *testing.T) {
	t.Parallel()
	const k, other = "sha256:k", "sha256:other"
	healthy := func() *agent.Artifact {
		return selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", nil))
	}
	degraded := func() *agent.Artifact {
		return selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "oiiii", nil))
	}
	with := func(a *agent.Artifact, change func(*agent.Artifact)) *agent.Artifact { change(a); return a }
	policy := func(change func(*agent.Policy)) agent.Policy {
		p := agent.DefaultPolicy()
		change(&p)
		return p
	}
	tests := []struct {
		name       string
		artifact   *agent.Artifact
		policy     agent.Policy
		method     string
		checked    string
		args       bool
		decision   string
		reason     string
		generation string
	}{
		{name: "missing, or corrupt and moved away", decision: agent.DecideForge, reason: ReasonMissing},
		{name: "healthy", artifact: healthy(), decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "no contract matches any generation", artifact: healthy(), checked: agent.FingerprintNone,
			decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "no contract, and all are of callers' contracts",
			artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "o", callers)),
			checked:  agent.FingerprintNone,
			decision: agent.DecideForge, reason: ReasonContractChanged, generation: "gen-1"},
		{name: "no contract, beside one of a caller's", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-2", k, "o", callers),
			selectiontest.Generation("gen-1", agent.FingerprintNone, "o", nil)), checked: agent.FingerprintNone,
			decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "that caller's contract", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-2",
			agent.FingerprintNone, "o", nil),
			selectiontest.Generation("gen-1", k, "o", callers)), decision: agent.DecideRun, reason: ReasonHealthy,
			generation: "gen-1"},
		{name: "no contract, and a person pinned a caller's",
			artifact: with(selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "o", callers)),
				func(a *agent.Artifact) { a.Pinned = true }), checked: agent.FingerprintNone, decision: agent.DecideRun,
			reason: ReasonPinned, generation: "gen-1"},
		{name: "no generation is kept", artifact: selectiontest.Artifact(nil), decision: agent.DecideForge,
			reason: ReasonMissing},
		{name: "schema of another time", artifact: with(healthy(), func(a *agent.Artifact) { a.SchemaVersion = 99 }),
			decision: agent.DecideForge, reason: ReasonSchema, generation: "gen-1"},
		{name: "another ABI", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "o",
			func(g *agent.Generation) { g.RuntimeVersion = "abi-0" })), decision: agent.DecideForge,
			reason: ReasonRuntime, generation: "gen-1"},
		{name: "tampered code", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "o",
			func(g *agent.Generation) { g.Code += "!" })), decision: agent.DecideForge, reason: ReasonChecksum,
			generation: "gen-1"},
		{name: "an import is not allowed any more", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-1", k, "o", func(g *agent.Generation) { g.Dependencies = []string{"os"} })),
			decision: agent.DecideForge, reason: ReasonDependencies, generation: "gen-1"},
		{name: "not cacheable", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "o",
			func(g *agent.Generation) { g.Cacheable = false })), decision: agent.DecideForge,
			reason: ReasonNotCacheable, generation: "gen-1"},
		{name: "dispatch method", artifact: healthy(), method: "ask", decision: agent.DecideForge,
			reason: ReasonDispatch, generation: "gen-1"},
		{name: "arguments it does not look at", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-1", k, "o",
				func(g *agent.Generation) {
					g.Facts = json.RawMessage(
						`{"uses_args":false}`)
				})), args: true, decision: agent.DecideRepair, reason: ReasonArgsIgnored, generation: "gen-1"},
		{name: "a person's program that looks at no argument", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-1", k, "o", func(g *agent.Generation) {
				g.Facts, g.Model = json.RawMessage(`{"uses_args":false}`), "operator"
			})), args: true, decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "quarantined", artifact: with(healthy(), func(a *agent.Artifact) { a.Quarantined = true }),
			decision: agent.DecideForge, reason: ReasonQuarantined, generation: "gen-1"},
		{name: "quarantined and pinned", artifact: with(healthy(),
			func(a *agent.Artifact) { a.Quarantined, a.Pinned = true, true }), decision: agent.DecideForge,
			reason: ReasonQuarantined, generation: "gen-1"},
		{name: "an operator asked for a new one", artifact: with(healthy(),
			func(a *agent.Artifact) { a.ForceRegenerate = "suspect" }), decision: agent.DecideForge,
			reason: ReasonRequested, generation: "gen-1"},
		{name: "pinned and degraded", artifact: with(degraded(), func(a *agent.Artifact) { a.Pinned = true }),
			decision: agent.DecideRun, reason: ReasonPinned, generation: "gen-1"},
		{name: "degraded", artifact: degraded(), decision: agent.DecideRepair, reason: ReasonDegraded,
			generation: "gen-1"},
		{name: "degraded, repair off", artifact: degraded(),
			policy: policy(func(p *agent.Policy) { p.RepairEnabled = false }), decision: agent.DecideForge,
			reason: ReasonDegraded, generation: "gen-1"},
		{name: "degraded, budget spent", artifact: with(degraded(),
			func(a *agent.Artifact) { a.RepairCountSinceRegen = 3 }), decision: agent.DecideForge,
			reason: ReasonDegraded, generation: "gen-1"},
		{name: "fails, but not more than it serves", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-1", k, "ooooioioi", nil)),
			decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "fails in a row, after it served for long", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-1", k, "oooooooooooooooooiii", nil)), decision: agent.DecideRepair,
			reason:     ReasonDegraded,
			generation: "gen-1"},
		{name: "too few failures", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ii",
			nil)),
			decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "stale", artifact: healthy(), checked: other, decision: agent.DecideRepair,
			reason: ReasonContractChanged, generation: "gen-1"},
		{name: "stale, repair off", artifact: healthy(), checked: other,
			policy: policy(func(p *agent.Policy) { p.RepairEnabled = false }), decision: agent.DecideForge,
			reason: ReasonContractChanged, generation: "gen-1"},
		{name: "stale, budget spent", artifact: with(healthy(),
			func(a *agent.Artifact) { a.RepairCountSinceRegen = 3 }), checked: other, decision: agent.DecideForge,
			reason: ReasonContractChanged, generation: "gen-1"},
		{name: "an older generation keeps this contract", artifact: selectiontest.Artifact(nil,
			selectiontest.Generation("gen-2", k, "o", nil),
			selectiontest.Generation("gen-1", other, "oo", nil)), checked: other, decision: agent.DecideRun,
			reason:     ReasonHealthy,
			generation: "gen-1"},
		{name: "the older one is degraded", artifact: selectiontest.Artifact(nil, selectiontest.Generation("gen-2", k,
			"o", nil),
			selectiontest.Generation("gen-1", other, "iiii", nil)), checked: other, decision: agent.DecideRepair,
			reason: ReasonContractChanged, generation: "gen-2"},
		{name: "reads are off", artifact: healthy(),
			policy: policy(func(p *agent.Policy) { p.ArtifactReadEnabled = false }), decision: agent.DecideForge,
			reason: ReasonReadDisabled, generation: "gen-1"},
		{name: "generation is forced", artifact: healthy(),
			policy: policy(func(p *agent.Policy) { p.ForceGeneration = true }), decision: agent.DecideForge,
			reason: ReasonForced, generation: "gen-1"},
		{name: "canary, this role is none", artifact: healthy(),
			policy:   policy(func(p *agent.Policy) { p.ArtifactReadRoles = []string{"other"} }),
			decision: agent.DecideForge, reason: ReasonNotCanary, generation: "gen-1"},
		{name: "canary, this role is one", artifact: healthy(),
			policy:   policy(func(p *agent.Policy) { p.ArtifactReadRoles = []string{"calculator"} }),
			decision: agent.DecideRun, reason: ReasonHealthy, generation: "gen-1"},
		{name: "approval is missing", artifact: healthy(),
			policy: policy(func(p *agent.Policy) { p.ApprovalRequired = true }), decision: agent.DecideRefuse,
			reason: ReasonApprovalRequired, generation: "gen-1"},
		{name: "approved", artifact: with(healthy(), func(a *agent.Artifact) { a.Generations[0].Approved = true }),
			policy: policy(func(p *agent.Policy) { p.ApprovalRequired = true }), decision: agent.DecideRun,
			reason: ReasonHealthy, generation: "gen-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if reflect.DeepEqual(tt.policy, agent.Policy{}) {
				tt.policy = agent.DefaultPolicy()
			}
			if tt.checked == "" {
				tt.checked = k
			}
			if tt.method == "" {
				tt.method = "add"
			}
			in := Input{Role: "calculator", Method: tt.method, HasArgs: tt.args, Artifact: tt.artifact,
				CheckedFingerprint: tt.checked, Policy: &tt.policy,
				Now: time.Unix(0, 0), ImportAllowed: func(p string) bool { return p == "strings" },
				IgnoresArgs: new(programs.Facts).IgnoresArgs}
			got := Select(in)
			id := ""
			if got.Generation != nil {
				id = got.Generation.ID
			}
			if got.Decision != tt.decision || got.Reason != tt.reason || id != tt.generation {
				t.Errorf("got %s (%s) of %q, want %s (%s) of %q", got.Decision, got.Reason, id, tt.decision, tt.reason,
					tt.generation)
			}
			if in.Artifact != nil && !in.HasArgs {
				slim := in
				slim.Artifact = in.Artifact.Selectable()
				of := Select(slim)
				if id = ""; of.Generation != nil {
					id = of.Generation.ID
				}
				if of.Decision != tt.decision || of.Reason != tt.reason || id != tt.generation {
					t.Errorf("got %s (%s) of %q from what is selectable, want %s (%s) of %q", of.Decision, of.Reason,
						id, tt.decision, tt.reason, tt.generation)
				}
			}
			for range 100 { // The same state gives the same decision
				if again := Select(in); !reflect.DeepEqual(again, got) {
					t.Fatalf("another decision on the same state: %+v, then %+v", got, again)
				}
			}
		})
	}
}

// The decision matrix of seed 001, every state of an artifact under every switch.
func TestDecisionMatrix(t *testing.T) {
	t.Parallel()
	const k, other = "sha256:k", "sha256:other"
	spent := func(a *agent.Artifact) { a.RepairCountSinceRegen = 3 }
	held := func(a *agent.Artifact) { a.Quarantined = true }
	cacheable := func(g *agent.Generation) { g.Cacheable = false }
	tampered := func(g *agent.Generation) { g.Code += "!" }
	foreign := func(g *agent.Generation) { g.RuntimeVersion = "abi-0" }
	states := []struct {
		name     string
		artifact *agent.Artifact
		checked  string
	}{
		{"missing", nil, k},
		{"healthy", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", nil)), k},
		{"stale", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", nil)), other},
		{"stale, budget spent", selectiontest.Artifact(spent, selectiontest.Generation("gen-1", k, "ooo", nil)), other},
		{"degraded", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "oiiii", nil)), k},
		{"degraded, budget spent", selectiontest.Artifact(spent, selectiontest.Generation("gen-1", k, "oiiii", nil)),
			k},
		{"quarantined", selectiontest.Artifact(held, selectiontest.Generation("gen-1", k, "ooo", nil)), k},
		{"not cacheable", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", cacheable)), k},
		{"tampered", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", tampered)), k},
		{"another ABI", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k, "ooo", foreign)), k},
	}
	switches := []struct {
		name   string
		change func(*agent.Policy)
		want   string // of the states, in their order
	}{
		{"defaults", func(*agent.Policy) {},
			"forge:missing run:healthy repair:contract_changed forge:contract_changed repair:degraded forge:degraded forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
		{"repair off", func(p *agent.Policy) { p.RepairEnabled = false },
			"forge:missing run:healthy forge:contract_changed forge:contract_changed forge:degraded forge:degraded forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
		{"reads off", func(p *agent.Policy) { p.ArtifactReadEnabled = false },
			"forge:missing" + strings.Repeat(" forge:read_disabled", 9)},
		{"forced", func(p *agent.Policy) { p.ForceGeneration = true },
			"forge:missing" + strings.Repeat(" forge:force_generation", 9)},
		{"a canary role", func(p *agent.Policy) { p.ArtifactReadRoles = []string{"calculator"} },
			"forge:missing run:healthy repair:contract_changed forge:contract_changed repair:degraded forge:degraded forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
		{"no canary role", func(p *agent.Policy) { p.ArtifactReadRoles = []string{"other"} },
			"forge:missing" + strings.Repeat(" forge:not_a_canary_role", 9)},
		{"dispatch-like", func(p *agent.Policy) { p.DispatchMethods = []string{"add"} },
			"forge:missing" + strings.Repeat(" forge:dispatch_method", 9)},
		{"a longer budget", func(p *agent.Policy) { p.MaxRepairsBeforeRegen = 4 },
			"forge:missing run:healthy repair:contract_changed repair:contract_changed repair:degraded repair:degraded forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
		{"a person approves", func(p *agent.Policy) { p.ApprovalRequired = true },
			"forge:missing refuse:approval_required refuse:approval_required refuse:approval_required refuse:approval_required refuse:approval_required forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
		{"another idea of degraded",
			func(p *agent.Policy) { p.Degraded = agent.DegradedPolicy{MinFailures: 5, Rate: 0.6, Window: 20} },
			"forge:missing run:healthy repair:contract_changed forge:contract_changed run:healthy run:healthy forge:quarantined forge:not_cacheable forge:checksum_mismatch forge:runtime_incompatible"},
	}
	for _, sw := range switches {
		want := strings.Fields(sw.want)
		for i, st := range states {
			p := agent.DefaultPolicy()
			sw.change(&p)
			in := Input{Role: "calculator", Method: "add", Artifact: st.artifact, CheckedFingerprint: st.checked,
				Policy: &p, Now: time.Unix(0, 0),
				ImportAllowed: func(string) bool { return true }, IgnoresArgs: new(programs.Facts).IgnoresArgs}
			d := Select(in)
			if got := d.Decision + ":" + d.Reason; got != want[i] {
				t.Errorf("%s, %s: got %s, want %s", sw.name, st.name, got, want[i])
			}
			if again := Select(in); !reflect.DeepEqual(again, d) {
				t.Errorf("%s, %s: another decision on the same state", sw.name, st.name)
			}
		}
	}
}

// The edges of what degrades a generation, and the figures of a decision.
func TestDegradedAtItsEdges(t *testing.T) {
	t.Parallel()
	p := agent.DegradedPolicy{MinFailures: 3, Rate: 0.6, Window: 5}
	for window, want := range map[string]bool{"oiii": true, "ooii": false, "oii": false, "oooiii": true, "ooiii": true,
		"ooiiaa": true, "oiaiiooiii": true, "iioiiioiii": true, "iiioo": false, "iiaoi": true, "ioioi": false,
		"iiiiiooooo": false} {
		g := selectiontest.Generation("gen-1", "k", window, nil)
		if got := Degraded(g, p); got != want {
			rate, _ := g.RecentRate(p.Window)
			t.Errorf("%s (recent rate %.2f): %v, want %v", window, rate, got, want)
		}
	}
	a := selectiontest.Artifact(func(a *agent.Artifact) { a.RepairCountSinceRegen = 2 },
		selectiontest.Generation("gen-1", "k", "ooiia", nil))
	f := figures(a, a.Current())
	if f != (Figures{RecentFailureRate: 0.6, Counted: 5, Successes: 2, Failures: 3, Repairs: 2}) {
		t.Errorf("figures %+v", f)
	}
	for _, tt := range []struct {
		d       Decision
		figures bool
	}{{Decision{Decision: agent.DecideRun, Generation: a.Current(), Figures: f}, false},
		{Decision{Decision: agent.DecideRepair, Generation: a.Current(), Figures: f}, true},
		{Decision{Decision: agent.DecideForge}, false}} {
		s := tt.d.Logged()
		if (s.Figures != nil) != tt.figures || (s.Generation != "") != (tt.d.Generation != nil) ||
			s.Decision != tt.d.Decision {
			t.Errorf("%+v is reported as %+v", tt.d, s)
		}
		if tt.figures && (s.Figures["counted"] != 5 || s.Figures["failures"] != int64(3) ||
			s.Figures["repairs_since_regen"] != 2) {
			t.Errorf("figures %v", s.Figures)
		}
	}
}

// A generation that never answered with a value is repaired after the second authored error in a row.
func TestUnproven(t *testing.T) {
	t.Parallel()
	for streak, want := range map[int]string{0: agent.DecideRun, 1: agent.DecideRun, 2: agent.DecideRepair,
		3: agent.DecideRepair} {
		p := agent.DefaultPolicy()
		a := selectiontest.Artifact(nil, selectiontest.Generation("gen-1", "k", "",
			func(g *agent.Generation) { g.AuthoredStreak = streak }))
		d := Select(Input{Role: "calculator", Method: "add", Artifact: a, CheckedFingerprint: "k", Policy: &p,
			ImportAllowed: func(string) bool { return true }, IgnoresArgs: new(programs.Facts).IgnoresArgs})
		if d.Decision != want {
			t.Errorf("after %d: %s (%s), want %s", streak, d.Decision, d.Reason, want)
		}
	}
}

// With promotion enforced the generation that has come furthest runs, among those of the call's contract; of equals the
// current one.
func TestPromotedRuns(t *testing.T) {
	t.Parallel()
	in := func(state string) func(*agent.Generation) { return func(g *agent.Generation) { g.State = state } }
	tests := []struct {
		name    string
		checked string
		others  []*agent.Generation // below the current one, a candidate of contract k
		want    string
	}{
		{"a durable one", "k", []*agent.Generation{selectiontest.Generation("gen-1", "k", "o",
			in(agent.StateDurable))}, "gen-1"},
		{"the better of two", "k", []*agent.Generation{selectiontest.Generation("gen-2", "k", "o",
			in(agent.StateProbation)),
			selectiontest.Generation("gen-1", "k", "o", in(agent.StateDurable))}, "gen-1"},
		{"the newer of equals", "k", []*agent.Generation{selectiontest.Generation("gen-2", "k", "o",
			in(agent.StateDurable)),
			selectiontest.Generation("gen-1", "k", "o", in(agent.StateDurable))}, "gen-2"},
		{"an equal one", "k", []*agent.Generation{selectiontest.Generation("gen-1", "k", "o",
			in(agent.StateCandidate))}, "gen-3"},
		{"a durable one of another contract", "k",
			[]*agent.Generation{selectiontest.Generation("gen-1", "other", "o", in(agent.StateDurable))}, "gen-3"},
		{"a call without a contract, a durable one of the current one's", agent.FingerprintNone,
			[]*agent.Generation{selectiontest.Generation("gen-1", "k", "o", in(agent.StateDurable))}, "gen-1"},
		{"a call without a contract, a durable one of another", agent.FingerprintNone,
			[]*agent.Generation{selectiontest.Generation("gen-1", "other", "o", in(agent.StateDurable))}, "gen-3"},
		{"a degraded one", "k", []*agent.Generation{selectiontest.Generation("gen-1", "k", "iiii",
			in(agent.StateDurable))}, "gen-3"},
	}
	for _, tt := range tests {
		p := agent.DefaultPolicy()
		p.Promotion.Enforce = true
		a := selectiontest.Artifact(nil, append([]*agent.Generation{selectiontest.Generation("gen-3", "k", "o",
			in(agent.StateCandidate))},
			tt.others...)...)
		d := Select(Input{Role: "calculator", Method: "add", Artifact: a, CheckedFingerprint: tt.checked,
			Policy: &p, ImportAllowed: func(string) bool { return true }, IgnoresArgs: new(programs.Facts).IgnoresArgs})
		if d.Decision != agent.DecideRun || d.Generation == nil || d.Generation.ID != tt.want {
			t.Errorf("%s: %s (%s) of %+v, want %s", tt.name, d.Decision, d.Reason, d.Generation, tt.want)
		}
	}
}

// While the current generation waits for approval the newest approved one that fits answers, else one that may run.
func TestApprovedRuns(t *testing.T) {
	t.Parallel()
	yes := func(g *agent.Generation) { g.Approved = true }
	tests := []struct {
		name   string
		others []*agent.Generation
		want   string // "" is a refusal
	}{
		{"none is approved", []*agent.Generation{selectiontest.Generation("gen-1", "k", "o", nil)}, ""},
		{"the newest", []*agent.Generation{selectiontest.Generation("gen-2", "k", "o", yes),
			selectiontest.Generation("gen-1", "k", "o", yes)},
			"gen-2"},
		{"one that keeps the contract", []*agent.Generation{selectiontest.Generation("gen-2", "other", "o", yes),
			selectiontest.Generation("gen-1", "k", "o", yes)}, "gen-1"},
		{"one that is healthy", []*agent.Generation{selectiontest.Generation("gen-2", "k", "iiii", yes),
			selectiontest.Generation("gen-1", "k", "o", yes)}, "gen-1"},
		{"the newest of those that do not fit", []*agent.Generation{selectiontest.Generation("gen-2", "other", "o",
			yes),
			selectiontest.Generation("gen-1", "k", "iiii", yes)}, "gen-2"},
		{"not one that was put aside",
			[]*agent.Generation{selectiontest.Generation("gen-1", "k", "o", func(g *agent.Generation) {
				g.Approved, g.Aside = true,
					true
			})}, ""},
		{"not one that cannot run",
			[]*agent.Generation{selectiontest.Generation("gen-1", "k", "o", func(g *agent.Generation) {
				g.Approved,
					g.RuntimeVersion = true, "abi-0"
			})}, ""},
	}
	for _, tt := range tests {
		p := agent.DefaultPolicy()
		p.ApprovalRequired = true
		a := selectiontest.Artifact(nil, append([]*agent.Generation{selectiontest.Generation("gen-3", "k", "o", nil)},
			tt.others...)...)
		d := Select(Input{Role: "calculator", Method: "add", Artifact: a, CheckedFingerprint: "k", Policy: &p,
			ImportAllowed: func(string) bool { return true }, IgnoresArgs: new(programs.Facts).IgnoresArgs})
		switch {
		case tt.want == "" && d.Decision != agent.DecideRefuse, tt.want != "" &&
			(d.Decision != agent.DecideRun || d.Generation.ID != tt.want), d.Reason != ReasonApprovalRequired:
			t.Errorf("%s: %s (%s) of %+v, want %q", tt.name, d.Decision, d.Reason, d.Generation, tt.want)
		}
	}
}
