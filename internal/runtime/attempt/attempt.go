// Package attempt runs one program for a call: it checks the arguments, starts the run, and answers the program's host
// calls. A Nester makes the nested calls. The package does not judge results and commits nothing.
package attempt

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
	StageValidation = "validation"     // the gate refused the program
	StageExecution  = "execution"      // the program ran
	StageOutcome    = "outcome_policy" // its value broke the contract
	StageProof      = "proof"          // the program answers an earlier call differently
)

// An Attempt is one run of one program for the call.
type Attempt struct {
	ID      string // call ID, dot, number; "" if nothing ran
	Program *agent.Generation
	Result  sandbox.Result
	Nested  map[string]string // shapes of nested values, by role.method
	// failures of nested calls and of the model that are not the program's fault, by error type
	Failed    map[string]Excused
	Authored  map[string]bool // types of the errors that programs of nested calls authored
	Warnings  []string
	Takes     *agent.Interface // the program's interface; nil if it is not known
	Fit       agent.Fit        // how the call's arguments fit Takes
	Misfit    bool             // the arguments do not fit, and the program did not run
	Tools     []string         // role.method of the nested calls
	miscalled bool             // a nested call did not fit the interface of its program, through this program's fault
	made      []string         // media types of the files that the program made
	Guard     *Guard           // nil: nothing is enforced

	Granted time.Duration // time from the program's start to the call's deadline

	Args   []json.RawMessage // args and kwargs as the program read them; nil if the caller sent them in that form
	Kwargs json.RawMessage

	Predicted   agent.Usage // what the program's questions to the model cost
	ModelFailed bool        // one of the questions had no answer
	ModelFinal  bool        // none will have an answer until a person changes something
	Overasked   bool        // one of the questions was over a limit
	NoRoom      bool        // a storage share had no room for something the program, or a call below it, wanted to keep
}

// maxSleep bounds the time that all programs of a call may sleep in total.
const maxSleep = 30 * time.Second

// A Request describes one run of one program for a call.
type Request struct {
	Call    *call.Call
	Memory  map[string]json.RawMessage // the session's context
	Attempt string                     // ID of the attempt
	Program *agent.Generation          // a stored generation or a candidate
	Guard   *Guard                     // limits the run; nil: nothing is enforced
	Nester  Nester
}

// Run runs a stored generation or a candidate for the call, within the limits of the guard. If the arguments do not fit
// the generation's interface, nothing runs and Misfit is set.
func Run(ctx context.Context, what Request) Attempt {
	s, g := what.Call, what.Program
	s.Reveal(g.Interface) // before the program passes its arguments on to nested calls
	a := Attempt{ID: what.Attempt, Program: g, Takes: g.Interface, Fit: s.Fit(g.Interface), Guard: what.Guard}
	if a.Misfit = s.Binds(g.Interface) && !a.Fit.OK(); a.Misfit {
		return a
	}
	h := &Host{For: s, Nester: what.Nester, Attempt: what.Attempt, program: g, Guard: what.Guard}
	args, kwargs := g.Arrange(s.Args, s.Kwargs)
	if len(args) != len(s.Args) || !bytes.Equal(kwargs, s.Kwargs) {
		a.Args, a.Kwargs = args, kwargs
	}
	q := sandbox.Request{
		Program: ProgramOf(g), Owner: s.Env.Owner(s.Owner),
		Role: s.Role, Method: s.Method, CallID: s.ID, TraceID: s.TraceID, Depth: s.Depth,
		Args: args, Kwargs: kwargs, Context: what.Memory, InputHistory: s.InputHistory,
		Now: s.Env.Now(), Seed: Seed(s.ID), Timeout: s.Env.RunTimeout, Fetches: s.Policy.FetchesPerCall,
		Sleep: max(1, maxSleep-time.Duration(s.Slept.Load())), End: s.Deadline,
		Guard: h.Guard.OfFetch(), Writes: &s.Tree.Writes,
	}
	a.Granted = time.Until(s.Deadline)
	s.Tree.Writes.Return(s.Begins)
	a.Result = s.Env.Sandbox.Run(ctx, q, h)
	s.Slept.Add(int64(a.Result.Effects.Slept))
	if engine, tier := a.RanOn(a.Result.Facts); tier != "" {
		s.Env.Metrics.Run(engine, tier)
	}
	if a.Takes == nil {
		a.Takes = programs.InterfaceOf(g, a.Result.Facts)
		a.Fit = s.Fit(a.Takes)
	}
	s.Reveal(a.Takes)
	s.MaskFetches(a.Result.Effects.Fetches)
	s.Drafts = append(s.Drafts, h.Drafts...)
	for _, d := range h.Drafts {
		a.made = append(a.made, d.MediaType())
	}
	a.Result.Context = withoutHistory(a.Result.Context)
	a.Nested, a.Failed, a.Authored, a.Warnings, a.Tools, a.Guard = h.shapes, h.failed, h.authored, h.warnings, h.tools,
		h.Guard
	a.miscalled = h.miscalled
	a.Predicted, a.ModelFailed, a.ModelFinal, a.Overasked, a.NoRoom = h.predicted, h.modelFailed, h.modelFinal,
		h.overasked, h.noRoom
	return a
}

// RanOn returns the engine and the tier that ran the attempt's program, according to the facts. The engine is "" if the
// native program ran but the facts come from an engine; both are "" if no program ran.
func (a *Attempt) RanOn(f *report.Facts) (engine, tier string) {
	engine, tier = programs.EngineOf(f)
	if a.Result.Tier == sandbox.TierNative && tier != sandbox.TierNative {
		return "", sandbox.TierNative
	}
	return engine, tier
}

// ProgramOf returns the generation's program in the form that a runner takes.
func ProgramOf(g *agent.Generation) sandbox.Program {
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
