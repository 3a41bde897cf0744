package runtime

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Programs that the gate refuses count against the promotion of the program that they would replace, but not those that a switch asked
// for: they replace nothing.
func TestRefusedProgramsUnderSwitches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, on string
		want     int64
	}{
		{"forge at every call", `{"force_generation": true}`, 0}, {"reads off", `{"artifact_read_enabled": false}`, 0}, {"not the canary", `{"artifact_read_roles": ["other"]}`, 0},
		{"a person asked for it", `{"repair_enabled": true}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := &runtimetest.Box{Programs: scriptedPrograms(), Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrDependencyPolicy, Message: "os"}}}
			r, _ := scripted(t, box, map[string][]string{"r.m": {"fickle", "refused"}}, nil)
			_, call := conversation(t, r, SessionRequest{Role: "r"})
			call("m", "fine")
			reason := "nicer"
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
			patchPolicy(t, r, tt.on)
			call("m", "fine")
			a := artifactOf(t, r, "r", "m")
			if a.Scorecard.GuardrailExhausted != tt.want || len(a.Rejections) != 1 {
				t.Errorf("%d exhausted guardrails on the scorecard, want %d; %d rejections", a.Scorecard.GuardrailExhausted, tt.want, len(a.Rejections))
			}
		})
	}
}
