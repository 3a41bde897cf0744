package runtime

import (
	"context"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

func TestHeldMeanwhile(t *testing.T) {
	t.Parallel()
	gen := func(id, trigger string) *agent.Generation { return &agent.Generation{ID: id, Trigger: trigger} }
	first, second := gen("gen-1", "initial_forge"), gen("gen-2", "repair:execution")
	was := selectiontest.Artifact(nil, second, first)
	current := func(id string) func(*agent.Artifact) { return func(a *agent.Artifact) { a.CurrentID = id } }
	tests := []struct {
		name     string
		was, now *agent.Artifact
		want     bool
	}{
		{"there is still none", nil, selectiontest.Artifact(nil), false},
		{"another call stored the first one", nil, selectiontest.Artifact(nil, first), false},
		{"a person put in the first one", nil, selectiontest.Artifact(nil, gen("gen-1", "operator:mine")), true},
		{"nothing happened", was, selectiontest.Artifact(nil, second, first), false},
		{"another call repaired it", was, selectiontest.Artifact(nil, gen("gen-3", "repair:execution"), second, first),
			false},
		{"a person put one in", was, selectiontest.Artifact(nil, gen("gen-3", "operator:mine"), second, first), true},
		{"a person's program served all along", selectiontest.Artifact(nil, gen("gen-3", "operator:mine")),
			selectiontest.Artifact(nil, gen("gen-3", "operator:mine")), false},
		{"a person went back", was, selectiontest.Artifact(current("gen-1"), second, first), true},
		{"the current one is not kept any more", was, selectiontest.Artifact(current("gen-0"), second, first), false},
		{"quarantined", was, selectiontest.Artifact(func(a *agent.Artifact) { a.Quarantined = true }, second, first),
			true},
		{"pinned", was, selectiontest.Artifact(func(a *agent.Artifact) { a.Pinned = true }, second, first), true},
	}
	for _, tt := range tests {
		if got := heldMeanwhile(tt.was, tt.now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A person's operation during a forge wins over the forged program, which answers its call and is not kept.
func TestOperationsDuringForge(t *testing.T) {
	yes, reason := true, "odd"
	examples := []agent.Example{example("ex_1", "1", "7")}
	tests := []struct {
		name    string
		change  agent.ArtifactChange
		current string // afterwards
		kept    int    // generations
	}{
		{"nothing", agent.ArtifactChange{}, "gen-2", 2},
		{"quarantine", agent.ArtifactChange{Quarantine: &reason}, "gen-1", 1},
		{"pin", agent.ArtifactChange{Pin: &yes}, "gen-1", 1},
		{"a program of a person's",
			agent.ArtifactChange{Generation: &agent.Generation{ID: "gen-2", Trigger: "operator:mine", Code: "old",
				CodeChecksum: agent.Checksum("old")}}, "gen-2", 2},
		{"an example", agent.ArtifactChange{Examples: &examples}, "gen-1", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r *Runtime
			box := &runtimetest.Box{Programs: map[string]runtimetest.Run{
				"old": func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
					if string(q.Args[0]) == `"bad"` {
						return runtimetest.Failure(agent.ErrExecution, "boom")
					}
					return runtimetest.Value("1")
				},
				"new": func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
					if q.Recorded == nil && tt.name != "nothing" {
						change := tt.change
						change.Role, change.MethodName = "r", "m"
						operate(t, r, change)
					}
					return runtimetest.Value("1")
				},
			}}
			r, _ = scripted(t, box, map[string][]string{"r.m": {"old", "new"}}, nil)
			_, call := conversation(t, r, sessions.Request{Role: "r"})
			wantReply(t, "first", call("m", "fine"), "1 generated")
			wantReply(t, "the new program answers", call("m", "bad"), "1 repaired")
			a, err := r.env.Store.Artifact(t.Context(), "r", "m")
			if err != nil {
				t.Fatal(err)
			}
			if a.CurrentID != tt.current || len(a.Generations) != tt.kept {
				t.Errorf("%s of %d serves, want %s of %d", a.CurrentID, len(a.Generations), tt.current, tt.kept)
			}
			if unkept := a.UnkeptCalls; a.SuccessCount+unkept != 2 || (unkept == 1) != a.Quarantined {
				t.Errorf("%d successes and %d calls that count on no artifact; want 2, and of a quarantined one 1 each",
					a.SuccessCount, unkept)
			}
		})
	}
}

// With approval required a new program is stored and not run, and a failing call says where to approve it.
func TestUnapproved(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"a": runtimetest.Returns("1"),
		"b": runtimetest.Returns("2")}}
	r, _ := scripted(t, box, map[string][]string{"r.m?": {"a"}}, nil)
	patchPolicy(t, r, `{"approval_required": true}`)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for range 2 { // forged, then selected
		got := call("m?")
		if got.Outcome.ErrorType != agent.ErrDenied ||
			got.Outcome.Metadata["approve"] != "POST /v1/tools/r/methods/m%3F/approve" ||
			got.Program.Source != agent.SourceNone {
			t.Errorf("got %+v, %+v", got.Outcome, got.Program)
		}
	}
	if n := len(box.Runs("a")); n != 0 {
		t.Errorf("it ran %d times", n)
	}
	if a, err := r.env.Store.Artifact(t.Context(), "r", "m?"); err != nil || a.SuccessCount+a.FailureCount != 0 ||
		a.Current() == nil {
		t.Errorf("stored %+v, %v", a, err)
	}
}
