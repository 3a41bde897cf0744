package runtime

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

// While the current generation waits because of its reach, its predecessor answers, and is the predecessor of the next
// program. A rejected generation never answers, and neither does one that a person rolled back from.
func TestSelectionWhileReachWaits(t *testing.T) {
	t.Parallel()
	gen := func(id, parent, contract string, beyond *agent.Effects) *agent.Generation {
		g := &agent.Generation{ID: id, RuntimeVersion: agent.ABI, Cacheable: true, Code: id,
			CodeChecksum: agent.Checksum(id), CheckedFingerprint: contract, Beyond: beyond, SuccessCount: 1}
		if parent != "" {
			g.ParentID = &parent
		}
		return g
	}
	more := &agent.Effects{Hosts: []string{"b.example"}}
	const requested = "another"
	for _, tt := range []struct {
		name       string
		a          *agent.Artifact
		change     func(a *agent.Artifact, p *agent.Policy)
		checked    string
		want       string // decision, reason, generation
		fallenBack string
	}{
		{"it waits", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c", nil)), nil,
			"c",
			"run new_reach gen-1", ""},
		{"a person approved it", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c",
			nil)),
			func(a *agent.Artifact, _ *agent.Policy) { a.Generations[0].Approved = true }, "c", "run healthy gen-2",
			""},
		{"a person allowed it", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c",
			nil)),
			func(a *agent.Artifact, _ *agent.Policy) {
				a.Manifest = &agent.Manifest{Effects: *more, ApprovedBy: "op"}
			}, "c", "run healthy gen-2", ""},
		{"the policy allows it", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c",
			nil)),
			func(_ *agent.Artifact, p *agent.Policy) { p.NewReach = agent.ReachAllow }, "c", "run healthy gen-2", ""},
		{"approvals come first", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c",
			nil)),
			func(a *agent.Artifact, p *agent.Policy) {
				a.Generations[1].Approved, p.ApprovalRequired = true, true
			}, "c", "run approval_required gen-1", ""},
		{"two wait", selectiontest.Artifact(nil, gen("gen-3", "gen-2", "c", more), gen("gen-2", "gen-1", "c", more),
			gen("gen-1", "", "c", nil)), nil, "c", "run new_reach gen-1", ""},
		{"another contract", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "d", more), gen("gen-1", "", "c", nil)),
			nil, "d",
			"run new_reach gen-1", ""},
		{"nothing else may run", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "", "c",
			nil)),
			func(a *agent.Artifact, _ *agent.Policy) { a.Generations[1].RuntimeVersion = "old" }, "c",
			"refuse new_reach gen-2", ""},
		{"one that a person went back from does not step in", selectiontest.Artifact(nil, gen("gen-3", "gen-1", "c",
			more),
			gen("gen-2", "gen-1", "c", nil), gen("gen-1", "", "c", nil)),
			func(a *agent.Artifact, _ *agent.Policy) { a.Generations[2].RuntimeVersion = "old" }, "c",
			"refuse new_reach gen-3", ""},
		{"it was rejected, and has the contract of the call",
			selectiontest.Artifact(func(a *agent.Artifact) { a.CurrentID = "gen-1" }, gen("gen-2", "gen-1", "d", more),
				gen("gen-1", "", "c", nil)), nil, "d", "repair contract_changed gen-1", "gen-1"},
		{"a person asks for another", selectiontest.Artifact(nil, gen("gen-2", "gen-1", "c", more), gen("gen-1", "",
			"c", nil)),
			func(a *agent.Artifact, _ *agent.Policy) { a.ForceRegenerate = requested }, "c",
			"forge regenerate_requested gen-1", "gen-1"},
	} {
		p := agent.DefaultPolicy()
		if tt.change != nil {
			tt.change(tt.a, &p)
		}
		d := selection.Select(selection.Input{Role: "r", Method: "m", Artifact: tt.a, CheckedFingerprint: tt.checked,
			Policy:        &p,
			ImportAllowed: func(string) bool { return true },
			IgnoresArgs:   func(*agent.Generation) bool { return false }})
		if got := d.Decision + " " + d.Reason + " " +
			idOf(d.Generation); got != tt.want || tt.fallenBack != "" && idOf(d.Fallback) != tt.fallenBack {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.name, got, idOf(d.Fallback), tt.want, tt.fallenBack)
		}
	}
}

// idOf returns the generation's ID, or "" for nil.
func idOf(g *agent.Generation) string {
	if g == nil {
		return ""
	}
	return g.ID
}
