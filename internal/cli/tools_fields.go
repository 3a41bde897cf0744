package cli

import (
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// artifactFields decodes an artifact for the tables.
type artifactFields struct {
	agent.Artifact
	Current        string   `json:"current_generation"`
	Doubted        bool     `json:"doubted"`
	Stale          string   `json:"stale"`
	BreaksExamples int      `json:"breaks_examples"`
	BrokenExamples []string `json:"broken_examples"` // by the operation that this is the reply to

	ShownTo   string           `json:"shown_to"`
	Native    nativeFields     `json:"native"`
	Interface *agent.Interface `json:"interface"`
}

// agents describes whose agents are shown the method.
func (a artifactFields) agents() string {
	if a.ShownTo == "owner" {
		return "shown to those of its owner; to everybody's once tools approve lets them, or a person registers the role"
	}
	return "shown to everybody's"
}

// takes describes the method's parameters, one per line.
func (a artifactFields) takes() string {
	if a.Interface == nil {
		return "takes: not known yet; the next call finds out"
	}
	out := fmt.Sprintf("takes: %s (%s)", text.Cell(a.Interface.Signature(a.MethodName)), text.Cell(a.Interface.Origin))
	if a.Interface.Summary != "" {
		out += "\n  " + text.Clean(a.Interface.Summary, agent.MaxSummary)
	}
	for _, p := range a.Interface.Parameters {
		if p.Description != "" {
			out += "\n  " + text.Cell(p.Name) + ": " + text.Clean(p.Description, agent.MaxDescription)
		}
	}
	return out
}

// tier describes what runs the program.
func (a artifactFields) tier() string {
	if a.Native.State == "native" {
		return "native"
	}
	return "engine; " + text.Cell(a.Native.Why)
}

// nativeFields describe whether programs are compiled.
type nativeFields struct {
	State string `json:"state"` // native, or off
	Why   string `json:"why"`   // set if off
}

// standing describes the state of an artifact.
func (a artifactFields) standing() string {
	words := []string{a.LifecycleState, a.Current}
	if a.Doubted {
		words = append(words, "doubted")
	}
	if a.Quarantined {
		words = append(words, "quarantined")
	}
	if a.Pinned {
		words = append(words, "pinned")
	}
	if a.Approved {
		words = append(words, "approved")
	}
	if a.Artifact.AwaitsReach(a.Artifact.Find(a.Current)) {
		words = append(words, "waits for approval of what it reaches")
	}
	if a.BreaksExamples > 0 {
		words = append(words, "waits for approval: it does not hold "+text.Plural(a.BreaksExamples, "example"))
	}
	if a.Stale != "" {
		words = append(words, "stale: "+a.Stale)
	}
	if a.ForceRegenerate != "" {
		words = append(words, "regenerates at the next call")
	}
	return text.Clean(strings.Join(words, ", "), 200)
}
