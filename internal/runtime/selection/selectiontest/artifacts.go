// Package selectiontest makes artifacts for tests of selections.
package selectiontest

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// Generation returns a generation as a healthy artifact has it, with that window of results.
func Generation(id, checked, window string, change func(*agent.Generation)) *agent.Generation {
	g := &agent.Generation{ID: id, Code: "package tool // " + id, CheckedFingerprint: checked,
		RuntimeVersion: agent.ABI, Cacheable: true,
		Window: window, Dependencies: []string{"strings"}}
	g.CodeChecksum = agent.Checksum(g.Code)
	for _, r := range window {
		switch r {
		case 'o':
			g.SuccessCount++
		case 'i':
			g.IntrinsicFailureCount++
		case 'a':
			g.AdaptiveFailureCount++
		}
	}
	if change != nil {
		change(g)
	}
	return g
}

// Artifact returns an artifact of these generations, the current one first.
func Artifact(change func(*agent.Artifact), generations ...*agent.Generation) *agent.Artifact {
	a := &agent.Artifact{SchemaVersion: agent.SchemaVersion, Role: "calculator", MethodName: "add",
		Generations: generations}
	if len(generations) > 0 {
		a.CurrentID = generations[0].ID
	}
	if change != nil {
		change(a)
	}
	return a
}
