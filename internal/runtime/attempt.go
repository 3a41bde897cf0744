package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Stages of an attempt: where it ended.
const (
	stageValidation = "validation"     // the gate refused the program
	stageExecution  = "execution"      // the program ran
	stageOutcome    = "outcome_policy" // its value broke the contract
	stageProof      = "proof"          // it answers an earlier call differently
)

// An attempted call is one run of one program for it.
type attempted struct {
	id      string // call id, dot, number; "" when nothing ran
	program *agent.Generation
	result  sandbox.Result
	nested  map[string]string // shapes of nested values, by role.method
	// failures that are not the program's fault, of nested calls and of the model, by error type
	failed    map[string]excused
	authored  map[string]bool // types of the errors that programs of nested calls authored
	warnings  []string
	takes     *agent.Interface // what the program reads; nil where that is not known
	fit       agent.Fit        // of the call's arguments to that
	misfit    bool             // they do not fit what is declared, and the program did not run
	tools     []string         // role.method of the nested calls
	miscalled bool             // one of them did not fit what its program declares, by what this program wrote
	made      []string         // media types of the files that it made
	guard     *manifestGuard   // nil: nothing was enforced

	granted time.Duration // from the program's beginning to the end of the call's time

	args   []json.RawMessage // in the form in which the program read them, where that is another than the caller's
	kwargs json.RawMessage

	predicted   agent.Usage // what the program's questions to the model cost
	modelFailed bool        // one of them had no answer
	modelFinal  bool        // and will have none before a person has changed something
	overasked   bool        // one of them was over a limit
	noRoom      bool        // what it wanted to keep, or a call below it, had no room
}

// maxSleep bounds what the programs of a call may sleep in sum.
const maxSleep = 30 * time.Second

// run runs the generation, a stored one or a candidate's, for the call, within what the guard permits.
func (s *selected) run(ctx context.Context, attemptID string, g *agent.Generation, guard *manifestGuard) attempted {
	s.reveal(g.Interface) // before its program makes calls with what it was given
	a := attempted{id: attemptID, program: g, takes: g.Interface, fit: s.fit(g.Interface), guard: guard}
	if a.misfit = s.binds(g.Interface) && !a.fit.OK(); a.misfit {
		return a
	}
	h := &host{call: s.opened, attempt: attemptID, program: g, guard: guard}
	args, kwargs := g.Arrange(s.args, s.kwargs)
	if len(args) != len(s.args) || !bytes.Equal(kwargs, s.kwargs) {
		a.args, a.kwargs = args, kwargs
	}
	q := sandbox.Request{
		Program: programOf(g), Owner: s.r.Owner(s.owner),
		Role: s.role, Method: s.method, CallID: s.id, TraceID: s.traceID, Depth: s.depth,
		Args: args, Kwargs: kwargs, Context: s.memory, InputHistory: s.inputHistory,
		Now: s.r.o.Now(), Seed: Seed(s.id), Timeout: s.r.o.RunTimeout, Fetches: s.policy.FetchesPerCall,
		Sleep: max(1, maxSleep-time.Duration(s.slept.Load())), End: s.deadline,
		Guard: h.guard.ofFetch(), Writes: &s.tree.writes,
	}
	a.granted = time.Until(s.deadline)
	s.tree.writes.Return(s.begins)
	a.result = s.r.box.Run(ctx, q, h)
	s.slept.Add(int64(a.result.Effects.Slept))
	if engine, tier := a.ranOn(a.result.Facts); tier != "" {
		s.r.metrics.Run(engine, tier)
	}
	if a.takes == nil {
		a.takes = interfaceOf(g, a.result.Facts)
		a.fit = s.fit(a.takes)
	}
	s.reveal(a.takes)
	s.maskFetches(a.result.Effects.Fetches)
	s.drafts = append(s.drafts, h.drafts...)
	for _, d := range h.drafts {
		a.made = append(a.made, d.MediaType())
	}
	a.result.Context = withoutHistory(a.result.Context)
	a.nested, a.failed, a.authored, a.warnings, a.tools, a.guard = h.shapes, h.failed, h.authored, h.warnings, h.tools,
		h.guard
	a.miscalled = h.miscalled
	a.predicted, a.modelFailed, a.modelFinal, a.overasked, a.noRoom = h.predicted, h.modelFailed, h.modelFinal,
		h.overasked, h.noRoom
	return a
}

// ranOn returns the engine that ran the attempt's program, which the facts name, and the tier; the engine is "" for a program that an engine ran before, and both where no program ran.
func (a *attempted) ranOn(f *report.Facts) (engine, tier string) {
	engine, tier = engineOf(f)
	if a.result.Tier == sandbox.TierNative && tier != sandbox.TierNative {
		return "", sandbox.TierNative
	}
	return engine, tier
}

// programOf is the generation's program as a runner takes it.
func programOf(g *agent.Generation) sandbox.Program {
	return sandbox.Program{Source: g.Code, Checksum: g.CodeChecksum}
}

// Seed derives a program's randomness from the call's id (FNV-1a), so that a replay has the same.
func Seed(callID string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(callID) {
		h = (h ^ uint64(callID[i])) * 1099511628211
	}
	return h
}
