package runtime

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// An answered call has its outcome and everything that its commit needs.
type answered struct {
	selected
	open    *opened // the call as it is registered; nil in a correction
	outcome agent.Outcome
	class   agent.Class // failure class, derived from evidence
	weak    bool        // the ok outcome is a weak success; set by the commit

	source     string            // generated, persisted, repaired; "" when no program ran
	program    *agent.Generation // the last program that ran; nil if none did
	generation string            // the program's ID; "" for a candidate until it is adopted
	fresh      *forge.Candidate  // the program's candidate; nil for a stored program
	facts      *report.Facts     // of the program
	last       judge.Judged      // the attempt of program
	kept       bool              // the attempt answers the call, so its effects are committed
	valueLost  bool              // the storage share has no room for the recorded answer
	hidden     bool              // the stored effects have secrets masked; set by the commit

	context  *agent.ContextChange
	changes  []agent.ArtifactChange
	room     [1]agent.ArtifactChange // backs changes: most calls make one
	adopting *adoption               // nil if no candidate is adopted
	// stored programs are switched off, and the candidate that answers does not become a generation
	unkept bool

	attempts  int // programs run or refused; numbers the attempt IDs
	trail     trail
	predicted agent.Usage // what its programs' questions to the model cost
	stages    telemetry.Stages

	beyond   *agent.Effects // what its programs reached, or tried to reach, beyond the manifest; nil if nothing
	adaptive bool           // the stored program failed because an external response changed shape
	drifted  []string       // the sources that changed
}

// A trail records what was tried for a call.
type trail struct {
	forge.Ledger
	rolledBack bool // a failed attempt ran, and its context changes were dropped
	warnings   []string
	refused    string // checksum of the last program that the gate refused
}

// warn adds a warning to the call's log entry, unless it is a duplicate or the entry is full.
func (t *trail) warn(text string) {
	text = agent.Clip(text, 400)
	if len(t.warnings) < attempt.MaxWarnings && !slices.Contains(t.warnings, text) { // a contract may be resolved twice
		t.warnings = append(t.warnings, text)
	}
}

// ran records the program that ran and the judged attempt.
func (a *answered) ran(source string, g *agent.Generation, j judge.Judged) {
	a.source, a.program, a.generation, a.last, a.class, a.facts = source, g, g.ID, j, j.Class, j.Result.Facts
	a.fresh, a.kept = nil, false
	for _, w := range j.Warnings {
		a.trail.warn(w)
	}
}

// ranCandidate records a new program that ran.
func (a *answered) ranCandidate(source string, cand *forge.Candidate, j judge.Judged) {
	a.ran(source, &cand.Generation, j)
	a.fresh = cand
	if a.facts == nil {
		a.facts = a.Env.Facts.Of(&cand.Generation)
	}
}

// keep makes the attempt the call's answer and returns its outcome.
func (a *answered) keep(j judge.Judged) agent.Outcome {
	a.last, a.class, a.kept = j, j.Class, true
	if j.Result.Facts != nil {
		a.facts = j.Result.Facts
	}
	if j.Outcome.OK() && a.Depth == 0 {
		a.context = j.Result.Context
	}
	return j.Outcome
}

// programSource returns where the program came from, or agent.SourceNone if no program ran.
func (a *answered) programSource() string {
	if a.source == "" {
		return agent.SourceNone
	}
	return a.source
}
