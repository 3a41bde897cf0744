package operator_test

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A program without MadeFor, as of earlier versions, gets it before it is archived in any way, since the wording may
// change meanwhile.
func TestWordsAreNotedOnTheWayOut(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(g *rig) error{
		"archive the method": func(g *rig) error {
			return g.op.ArchiveArtifact(t.Context(), "units", "convert", "",
				"ann")
		},
		"archive the tool": func(g *rig) error { return g.op.ArchiveTool(t.Context(), "units", "", "ann") },
		"prune": func(g *rig) error {
			_, err := g.op.Prune(t.Context(), operator.PruneRequest{Mode: "archive", Actor: "ann"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, nil)
			put := func(purpose string) {
				t.Helper()
				if _, _, err := g.op.PutTool(t.Context(), operator.ToolPut{Role: "units",
					Contract: agent.Contract{Purpose: purpose}, Revision: store.AnyRevision,
					Actor: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			put("celsius to fahrenheit")
			code := run("return 32, nil")
			old := &agent.Generation{ID: "gen-1", Trigger: "initial_forge", Code: code,
				CodeChecksum: agent.Checksum(code), CheckedFingerprint: agent.FingerprintNone, Cacheable: true,
				RuntimeVersion: agent.ABI}
			change := agent.ArtifactChange{Role: "units", MethodName: "convert", At: time.Now().Add(-time.Hour),
				Generation: old, Result: agent.ClassOK}
			if _, err := g.memory.ChangeArtifact(t.Context(), 0, change, nil); err != nil {
				t.Fatal(err)
			}
			if err := takeAway(g); err != nil {
				t.Fatal(err)
			}
			put("celsius to kelvin")
			if _, err := g.op.Restore(t.Context(), store.Target{Role: "units", Method: "convert"}, "ann",
				""); err != nil {
				t.Fatal(err)
			}
			a, err := g.memory.Artifact(t.Context(), "units", "convert")
			if err != nil {
				t.Fatal(err)
			}
			if m := a.Current().MadeFor; m == nil || m.Purpose != "celsius to fahrenheit" ||
				g.op.Staleness(t.Context(), "units")(a) != agent.StalePurpose {
				t.Errorf("it was made for %+v, and is stale by %q", m, g.op.Staleness(t.Context(), "units")(a))
			}
		})
	}
}
