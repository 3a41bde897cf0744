package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// Only the newest few of many questions that were asked again are shown.
func TestShownQuestions(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"weak": runtimetest.Returns(`{"status":"empty"}`),
		"one": runtimetest.Returns("1")}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"weak", "one"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	asked := []string{"rain in Spain", "good action movies", "trains to Vienna", "price of gold", "tallest mountain"}
	for _, q := range asked {
		call("m", q)
		call("m", q)
	}
	reason := "nicer"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
	call("m", "last")
	text := lastUser(model.Requests()[1])
	if n := strings.Count(text, "asked again"); n != forge.ShownRemarks {
		t.Errorf("%d questions are shown, want %d:\n%s", n, forge.ShownRemarks, text)
	}
	for i, q := range asked {
		if got, want := strings.Contains(text, "asked again: ["+fmt.Sprintf("%q", q)),
			i >= len(asked)-forge.ShownRemarks; got != want {
			t.Errorf("%q is shown: %v, want %v", q, got, want)
		}
	}
}

// The model is shown the last calls of the session, as many as the policy says, oldest first.
func TestShownHistory(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]string{0: "", 1: "c", 2: "b c", 3: "a b c"} {
		echo := func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result { return runtimetest.Value("1") }
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": echo}}
		scripts := map[string][]string{}
		for _, m := range []string{"a", "b", "c", "d"} {
			scripts["r."+m] = []string{"one"}
		}
		r, model := scripted(t, box, scripts, nil)
		patchPolicy(t, r, fmt.Sprintf(`{"history_preview_limit": %d}`, limit))
		_, call := conversation(t, r, sessions.Request{Role: "r"})
		ids := map[string]string{}
		for _, m := range []string{"a", "b", "c", "d"} {
			ids[m] = call(m).CallID
		}
		text := lastUser(model.Requests()[3])
		var got []string
		at := -1
		for _, m := range []string{"a", "b", "c"} {
			if i := strings.Index(text, ids[m]); i >= 0 {
				got = append(got, m)
				if i < at {
					t.Errorf("limit %d: %s stands before the call before it", limit, m)
				}
				at = i
			}
		}
		if strings.Join(got, " ") != want || !strings.Contains(text, "records: 3") {
			t.Errorf("limit %d: %v are shown, want %s\n%s", limit, got, want, text)
		}
	}
}

// Only a program that replaces one which failed counts as a patch.
func TestPatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		decision, reason string
		generation       *agent.Generation
		want             bool
	}{
		{agent.DecideRun, selection.ReasonHealthy, &agent.Generation{}, true}, // it ran, and failed
		{agent.DecideRepair, selection.ReasonDegraded, &agent.Generation{}, true},
		{agent.DecideForge, selection.ReasonUnproven, &agent.Generation{}, true},
		{agent.DecideForge, selection.ReasonCorrection, &agent.Generation{}, false},
		{agent.DecideForge, selection.ReasonMissing, nil, false},
		{agent.DecideForge, selection.ReasonDegraded, nil, false},
	} {
		rec := &recovery{answered: &answered{selected: selected{Against: proof.Against{Selection: call.Selection{Decision: selection.Decision{Decision: tt.decision,
			Reason: tt.reason, Generation: tt.generation}}}}}}
		if got := rec.patches(); got != tt.want {
			t.Errorf("%s for %s: got %v, want %v", tt.decision, tt.reason, got, tt.want)
		}
	}
}

// These reasons lead to a repair first, all others to a new program.
func TestRepairable(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		selection.ReasonContractChanged: true, selection.ReasonDegraded: true, selection.ReasonArgsIgnored: true,
		selection.ReasonUnproven: true,
		selection.ReasonMissing:  false, selection.ReasonHealthy: false, selection.ReasonNotCacheable: false,
		selection.ReasonCorrection: false,
		selection.ReasonChecksum:   false, "": false,
	} {
		if got := selection.Repairable(reason); got != want {
			t.Errorf("%s: got %v, want %v", reason, got, want)
		}
	}
}
