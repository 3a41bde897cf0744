package tools

import (
	"strings"
	"testing"
)

// A package-level initialiser of a compiled program can do nothing of what a program must not: the kernel refuses all of it.
func TestNativeInitIsConfined(t *testing.T) {
	t.Parallel()
	d := start(t, program("probes in its init"))
	layers, _ := d.Get("/v1/version")["sandbox"].(map[string]any)["layers"].(map[string]any)
	if state, _ := layers["launch"].(string); !strings.HasPrefix(state, "on (") {
		t.Errorf("layer launch is %q", state)
	}
	s := d.Session("worker")
	callUntil(d, s, "native")
	r := d.Call(s, "double", 99)
	outcomes, ok := r.Outcome.Value.(map[string]any)
	if !ok || r.Program.Tier != "native" {
		t.Fatalf("it did not probe: %v on %s", r.Outcome, r.Program.Tier)
	}
	if len(outcomes) < 100 {
		t.Errorf("only %d probes", len(outcomes))
	}
	for name, outcome := range outcomes {
		if text, _ := outcome.(string); !strings.HasPrefix(text, "denied") {
			t.Errorf("%s: %v", name, outcome)
		}
	}
}
