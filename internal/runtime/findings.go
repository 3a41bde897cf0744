package runtime

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// findings are what a call learned on its way, for its record, its log entry and its reply.
type findings struct {
	selection  agent.Selection
	registered bool // the registry knows the role

	// The program that answered.
	source, generation, checksum, trigger string
	code                                  string // where the generation is new
	promptVersion, contractFingerprint    string
	cacheable                             bool
	cacheReason                           string
	solverShape                           json.RawMessage
	facts                                 *gate.Facts

	// How it ended.
	attempt, stage  string
	class           agent.Class
	context         *agent.ContextChange
	effects         sandbox.Effects
	checked, passed bool
	mismatch        string
	weak            []string
	correction      correction
	state, decision string // of the lifecycle

	// What was tried.
	attemptFailures                              []agent.AttemptFailure
	rolledBack, feedback                         bool
	repairAttempted, repairSucceeded             bool
	guardrails, executionRepairs, outcomeRepairs int
	requested                                    int // programs asked of the model
	usage                                        agent.Usage
	system, user                                 string
	warnings                                     []string
	refused                                      string // checksum of the last program that the gate refused
}

// serveFrom notes the stored generation that runs.
func (c *call) serveFrom(source string, g *agent.Generation, a attempt) {
	f := &c.found
	f.source, f.generation, f.checksum, f.trigger = source, g.ID, g.CodeChecksum, g.Trigger
	f.promptVersion, f.contractFingerprint = g.PromptVersion, g.ContractFingerprint
	f.cacheable, f.cacheReason, f.solverShape = g.Cacheable, g.CacheabilityReason, g.SolverShape
	f.attempt, f.stage, f.class, f.facts = a.id, a.stage, a.class, a.result.Facts
}

// serveCandidate notes the new program that runs.
func (c *call) serveCandidate(source string, cand *candidate, a attempt) {
	c.serveFrom(source, &cand.generation, a)
	c.found.code = cand.generation.Code
	if c.found.facts == nil {
		c.found.facts = c.r.facts.of(&cand.generation)
	}
}

func (c *call) warn(text string) {
	const most = 8
	text = clip(text, 400)
	if len(c.found.warnings) < most && !slices.Contains(c.found.warnings, text) { // a contract may be resolved twice
		c.found.warnings = append(c.found.warnings, text)
	}
}

// outcome completes the outcome with the names it is told under.
func (c *call) outcome(o agent.Outcome) agent.Outcome {
	o.ToolRole, o.MethodName = c.role, c.method
	if !o.OK() {
		o.ErrorMessage = clip(o.ErrorMessage, 4000)
	}
	return o
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
