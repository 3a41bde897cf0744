package cli

import (
	"bytes"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// For people, each check is one line, followed by the layers of the confinement with reasons, and the remedy.
func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := &output{sh: Shell{Stdout: &b, Env: noEnvironment}, form: formTable}
	status := &sandbox.Status{Level: sandbox.LevelReduced, Layers: map[string]string{"seccomp": "on",
		"landlock": "off (this kernel has none)", "netns": "off (user namespaces are forbidden)"},
		Probes: map[string]string{"connect": "ALLOWED", "open": "denied (EPERM)"}}
	err := printFindings(out, []finding{{Check: "settings", Result: checkOK, Detail: "valid; all at their defaults"},
		{Check: "sandbox", Result: checkWarn, Detail: "level reduced; missing: " + missingLayers(*status),
			Fix: "docs/security.md says", Status: status},
		{Check: "model", Result: checkFail, Detail: "dial\x1b[31m refused\n", Fix: "check OPENAI_BASE_URL"}})
	if err == nil || err.Error() != "1 of 3 checks failed" {
		t.Errorf("got %v", err)
	}
	want := `ok    settings   valid; all at their defaults
warn  sandbox    level reduced; missing: landlock, netns
                 off  landlock (this kernel has none)
                 off  netns (user namespaces are forbidden)
                 on   seccomp
                 open a runner may connect: ALLOWED
                 → docs/security.md says
fail  model      dial�[31m refused
                 → check OPENAI_BASE_URL
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
