package docs

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The commands of the first screen work as they stand there, also where the daemon takes tokens.
func TestFirstScreenRuns(t *testing.T) {
	t.Parallel()
	const token = "ann-token-0123456789abcdef"
	for name, args := range map[string][]string{"open": nil,
		"tokens": {"--auth-tokens-file", rig.WriteFile(t, "tokens", "ann "+token+"\n")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := rig.Start(t, nil, args...)
			rig.Until(t, "the first screen to its last line",
				func() bool { return strings.Contains(d.Output.String(), "OPENAI_BASE_URL") })
			_, screen, _ := strings.Cut(d.Output.String(), "Try, in another terminal:\n")
			screen, _, _ = strings.Cut(screen, "and in a browser")
			var list []step
			for line := range strings.Lines(screen) {
				if command := strings.TrimSpace(line); command != "" {
					list = append(list, step{Command: command})
				}
			}
			outputs := runSteps(t, d, list, map[string]string{"RECURGENT_TOKEN=...": "RECURGENT_TOKEN=" + token})
			want := []string{"\n5\n", `{"x":6}`, `"creme-brulee-10-tips"`, `"method_name":"add"`}
			if name == "tokens" {
				want = append([]string{""}, want...) // export prints nothing
			}
			if len(list) != len(want) {
				t.Fatalf("%d commands, want %d:\n%s", len(list), len(want), screen)
			}
			for i, s := range list {
				if !strings.Contains(outputs[i], want[i]) {
					t.Errorf("%s prints %q, want %s", s.Command, outputs[i], want[i])
				}
			}
		})
	}
}
