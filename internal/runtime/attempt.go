package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Stages at which an attempt can end.
const (
	stageValidation = "validation"     // the gate refused the program
	stageExecution  = "execution"      // the program ran
	stageOutcome    = "outcome_policy" // its value broke the contract
	stageProof      = "proof"          // the program answers an earlier call differently
)

// An attempted call is one run of one program for the call.
type attempted struct {
	id      string // call ID, dot, number; "" if nothing ran
	program *agent.Generation
	result  sandbox.Result
	nested  map[string]string // shapes of nested values, by role.method
	// failures of nested calls and of the model that are not the program's fault, by error type
	failed    map[string]excused
	authored  map[string]bool // types of the errors that programs of nested calls authored
	warnings  []string
	takes     *agent.Interface // the program's interface; nil if it is not known
	fit       agent.Fit        // how the call's arguments fit takes
	misfit    bool             // the arguments do not fit, and the program did not run
	tools     []string         // role.method of the nested calls
	miscalled bool             // a nested call did not fit the interface of its program, through this program's fault
	made      []string         // media types of the files that the program made
	guard     *manifestGuard   // nil: nothing is enforced

	granted time.Duration // time from the program's start to the call's deadline

	args   []json.RawMessage // args and kwargs as the program read them; nil if that is how the caller sent them
	kwargs json.RawMessage

	predicted   agent.Usage // what the program's questions to the model cost
	modelFailed bool        // one of the questions had no answer
	modelFinal  bool        // and will have none until a person changes something
	overasked   bool        // one of the questions was over a limit
	noRoom      bool        // a storage share had no room for something the program, or a call below it, wanted to keep
}

// maxSleep bounds the time that all programs of a call may sleep in total.
const maxSleep = 30 * time.Second

// A runRequest describes one run of one program for a call.
type runRequest struct {
	call    *call.Call
	memory  map[string]json.RawMessage // the session's context
	attempt string                     // ID of the attempt
	program *agent.Generation          // a stored generation or a candidate
	guard   *manifestGuard             // limits the run; nil: nothing is enforced
	nester  runNester
}

// runFor runs a stored generation or a candidate for the call, within the limits of the guard. If the arguments do not fit
// the generation's interface, nothing runs and misfit is set.
func runFor(ctx context.Context, what runRequest) attempted {
	s, g := what.call, what.program
	s.Reveal(g.Interface) // before the program passes its arguments on to nested calls
	a := attempted{id: what.attempt, program: g, takes: g.Interface, fit: s.Fit(g.Interface), guard: what.guard}
	if a.misfit = s.Binds(g.Interface) && !a.fit.OK(); a.misfit {
		return a
	}
	h := &host{call: s, nester: what.nester, attempt: what.attempt, program: g, guard: what.guard}
	args, kwargs := g.Arrange(s.Args, s.Kwargs)
	if len(args) != len(s.Args) || !bytes.Equal(kwargs, s.Kwargs) {
		a.args, a.kwargs = args, kwargs
	}
	q := sandbox.Request{
		Program: programOf(g), Owner: s.Env.Owner(s.Owner),
		Role: s.Role, Method: s.Method, CallID: s.ID, TraceID: s.TraceID, Depth: s.Depth,
		Args: args, Kwargs: kwargs, Context: what.memory, InputHistory: s.InputHistory,
		Now: s.Env.Now(), Seed: Seed(s.ID), Timeout: s.Env.RunTimeout, Fetches: s.Policy.FetchesPerCall,
		Sleep: max(1, maxSleep-time.Duration(s.Slept.Load())), End: s.Deadline,
		Guard: h.guard.ofFetch(), Writes: &s.Tree.Writes,
	}
	a.granted = time.Until(s.Deadline)
	s.Tree.Writes.Return(s.Begins)
	a.result = s.Env.Sandbox.Run(ctx, q, h)
	s.Slept.Add(int64(a.result.Effects.Slept))
	if engine, tier := a.ranOn(a.result.Facts); tier != "" {
		s.Env.Metrics.Run(engine, tier)
	}
	if a.takes == nil {
		a.takes = programs.InterfaceOf(g, a.result.Facts)
		a.fit = s.Fit(a.takes)
	}
	s.Reveal(a.takes)
	s.MaskFetches(a.result.Effects.Fetches)
	s.Drafts = append(s.Drafts, h.drafts...)
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

// ranOn returns the engine and the tier that ran the attempt's program, according to the facts. The engine is "" if the
// native program ran but the facts come from an engine; both are "" if no program ran.
func (a *attempted) ranOn(f *report.Facts) (engine, tier string) {
	engine, tier = programs.EngineOf(f)
	if a.result.Tier == sandbox.TierNative && tier != sandbox.TierNative {
		return "", sandbox.TierNative
	}
	return engine, tier
}

// programOf returns the generation's program in the form that a runner takes.
func programOf(g *agent.Generation) sandbox.Program {
	return sandbox.Program{Source: g.Code, Checksum: g.CodeChecksum}
}

// Seed derives a program's randomness from the call's ID (FNV-1a), which gives a replay the same randomness.
func Seed(callID string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(callID) {
		h = (h ^ uint64(callID[i])) * 1099511628211
	}
	return h
}
