package runtime

import (
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// An answered call has its outcome and all that its commit needs.
type answered struct {
	selected
	outcome agent.Outcome
	class   agent.Class // of a failure, by evidence
	weak    bool        // an ok outcome is a weak success; known from the commit on

	source     string            // generated, persisted, repaired; "" when no program ran
	program    *agent.Generation // the last one that ran; nil when none did
	generation string            // its id; "" for a candidate until it is adopted
	fresh      *candidate        // the program's candidate; nil for a stored program
	facts      *report.Facts     // of the program
	last       judged            // the program's attempt
	kept       bool              // the attempt answers the call, so its effects count
	valueLost  bool              // there is no room for what is kept of the answer
	hidden     bool              // its effects are stored with secrets masked; known from the commit on

	context  *agent.ContextChange
	changes  []agent.ArtifactChange
	room     [1]agent.ArtifactChange // for changes: most calls make one
	adopting *adoption               // nil when no candidate is to be adopted
	// what is stored is switched off, and the candidate that answers becomes no generation
	unkept bool

	attempts  int // programs run or refused, for attempt ids
	trail     trail
	predicted agent.Usage // by its programs
	stages    telemetry.Stages
	leaves    []func() // flights to leave after the commit

	beyond   *agent.Effects // what its programs reached, or tried to, beyond the manifest; nil for nothing
	adaptive bool           // the stored program failed because an external response changed shape
	drifted  []string       // the sources that changed
}

// A trail is what was tried for a call.
type trail struct {
	failures         []agent.AttemptFailure
	rolledBack       bool // a failed attempt ran, and its changes of the context were dropped
	feedback         bool // the model was shown an earlier failure
	repairAttempted  bool
	repairSucceeded  bool
	repairOpen       bool // the model was asked for a repair whose success is not known yet
	repairShared     bool // another call asked for the open repair, and counts it
	guardrails       int  // recoveries used, as the next two
	executionRepairs int
	outcomeRepairs   int
	repeated         int // programs asked for after a run that failed as the one before it
	requested        int // programs asked of the model
	usage            agent.Usage
	system, user     string   // the last prompt
	tools            []string // roles of the known tools that it shows
	warnings         []string
	gated            time.Duration // of forging: the checks of what was written
	built            time.Duration // waited for the compiler
	refused          string        // checksum of the last program that the gate refused
}

// Bounds of what a call's log entry holds of its trail.
const (
	maxAttemptFailures = 8
	maxWarnings        = 8
)

func (t *trail) warn(text string) {
	text = Clip(text, 400)
	if len(t.warnings) < maxWarnings && !slices.Contains(t.warnings, text) { // a contract may be resolved twice
		t.warnings = append(t.warnings, text)
	}
}

// ran notes the program that ran and how its attempt was judged.
func (a *answered) ran(source string, g *agent.Generation, j judged) {
	a.source, a.program, a.generation, a.last, a.class, a.facts = source, g, g.ID, j, j.class, j.result.Facts
	a.fresh, a.kept = nil, false
	for _, w := range j.warnings {
		a.trail.warn(w)
	}
}

// ranCandidate notes a new program that ran.
func (a *answered) ranCandidate(source string, cand *candidate, j judged) {
	a.ran(source, &cand.generation, j)
	a.fresh = cand
	if a.facts == nil {
		a.facts = a.r.facts.of(&cand.generation)
	}
}

// keep makes the attempt the one that answers the call, and returns its outcome.
func (a *answered) keep(j judged) agent.Outcome {
	a.last, a.class, a.kept = j, j.class, true
	if j.result.Facts != nil {
		a.facts = j.result.Facts
	}
	if j.outcome.OK() && a.depth == 0 {
		a.context = j.result.Context
	}
	return j.outcome
}

// programSource is where the program came from; none when no program ran.
func (a *answered) programSource() string {
	if a.source == "" {
		return agent.SourceNone
	}
	return a.source
}

// named completes an outcome with the names under which it is reported.
func (c *opened) named(o agent.Outcome) agent.Outcome {
	o.ToolRole, o.MethodName = c.role, c.method
	if !o.OK() {
		o.ErrorMessage = Clip(o.ErrorMessage, 4000)
	}
	return o
}

// Clip cuts text to at most n characters, and marks the cut with an ellipsis.
func Clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

func with(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
