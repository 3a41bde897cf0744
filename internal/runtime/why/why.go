// Package why explains a call: which program answered and why that one, what else there was, what it reached, what was checked, what
// it cost, what another policy would have decided, and what can be done next.
//
// It computes an Explanation from what is stored and reads nothing itself. What models, programs, pages and callers wrote stands in its
// sentences either as a plain word or quoted with every unprintable character escaped, so that it forges neither a line nor an escape
// sequence. Values are never shown.
package why

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Explanation is the body of GET /v1/calls/{call_id}/why. Lists are never null.
type Explanation struct {
	CallID  string `json:"call_id"`
	Role    string `json:"role"`
	Method  string `json:"method"`
	Status  string `json:"status"`  // ok, error or running
	Summary string `json:"summary"` // plain words, a line for each question

	Selection    Selection     `json:"selection"`
	Alternatives []Alternative `json:"alternatives"` // the other generations that are kept, newest first
	// programs that were written or run for this call and did not answer, in order
	Candidates      []Candidate      `json:"candidates"`
	Tools           []Tool           `json:"tools"`           // the other methods of the role, at most 16
	Effects         []sandbox.Done   `json:"effects"`         // what the program asked of its host, in order
	Delegated       []Delegated      `json:"delegated"`       // the calls that the program made, newest first
	Notes           []string         `json:"notes,omitempty"` // what the program noted, in its own words
	Checks          []Check          `json:"checks"`          // of programs and of the answer
	Cost            Cost             `json:"cost"`            // of this call
	Counterfactuals []Counterfactual `json:"counterfactuals"` // the selection again, with one switch flipped each
	Next            []Step           `json:"next"`            // requests that work as they are for who asks
	NotRecorded     []string         `json:"not_recorded"`    // what is not known any more, so that the rest may be off
}

// Selection is the decision as it was recorded, and as the same state leads to it again.
type Selection struct {
	agent.Selection
	// where the program that answered came from: generated, persisted, repaired, none
	Program  string `json:"program"`
	Answered string `json:"answered,omitempty"` // the generation that answered
	Trigger  string `json:"trigger"`            // why that generation was made; "" where it is not kept
	Engine   string `json:"engine,omitempty"`   // what ran the program: go, ssa or yaegi
	Tier     string `json:"tier,omitempty"`     // engine or native
	// the selection run again without a change; null where nothing was selected or too little is kept
	Again *agent.Selection `json:"again"`
	Same  bool             `json:"same"` // it decides the same
}

// Alternative is a kept generation that did not answer.
type Alternative struct {
	Generation string `json:"generation"`
	WhyNot     string `json:"why_not"`
}

// Candidate is a program that was tried for the call and did not answer.
type Candidate struct {
	Attempt string `json:"attempt"`
	Stage   string `json:"stage"` // validation, execution, outcome_policy or proof
	WhyNot  string `json:"why_not"`
}

// Tool is another method of the role.
type Tool struct {
	Method string `json:"method"`
	WhyNot string `json:"why_not"`
}

// Delegated is a call that the program made.
type Delegated struct {
	CallID    string `json:"call_id"`
	Role      string `json:"role"`
	Method    string `json:"method"`
	Status    string `json:"status"`
	ErrorType string `json:"error_type,omitempty"`
}

// Check is one thing that was checked.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // passed, failed or none
	Detail string `json:"detail"`
}

// Cost is what the call cost.
type Cost struct {
	DurationMs float64     `json:"duration_ms"`
	Usage      agent.Usage `json:"usage"`
	// of usage, at most; null where no price is known, or requests reported no tokens
	Money    *Money       `json:"money"`
	Forge    *agent.Usage `json:"forge_usage"` // of making the program that answered; null where it is not kept
	Attempts int          `json:"attempts"`    // programs asked of the model
}

// Money is an amount by the price list.
type Money struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Counterfactual is what another policy would have decided.
type Counterfactual struct {
	Switch     string `json:"switch"` // a member of the policy, with dots for members of members
	Value      any    `json:"value"`  // instead of the one in force
	Decision   string `json:"decision"`
	Reason     string `json:"reason"`
	Generation string `json:"generation,omitempty"`
	Changes    bool   `json:"changes"` // it differs from the selection without a change
	// what else would have been different, in words; "" where nothing is known
	Then string `json:"then,omitempty"`
}

// Step is a request that can be sent as it is.
type Step struct {
	Name    string          `json:"name"` // what it does
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body"`              // null: none
	Command string          `json:"command,omitempty"` // that sends it, for a shell
}

// Asker says what who asks may do beside reading: requests that would be refused are not offered.
type Asker struct {
	Call    bool // judge, replay and cancel calls, and make new ones
	Operate bool // what a verdict of theirs says counts at once; without it, it is a proposal
}

// Input is what an explanation is made of.
type Input struct {
	Asker       Asker
	Call        store.Call
	Artifact    *agent.Artifact // of the method as it is now; nil where none is kept
	Methods     []string        // of the role that have programs
	Nested      []agent.LogEntry
	Policy      *agent.Policy // in force when the call began
	PolicyKnown bool          // Policy is that, and not the one of now
	PolicyNow   *agent.Policy
	Select      func(runtime.SelectInput) runtime.Decision                                         // runs the selection
	Price       func(model string, used agent.Usage) (amount float64, currency string, known bool) // nil: no prices
}

// Explain explains a call, one under way too.
func Explain(in *Input) *Explanation {
	e := &in.Call.Log
	x := &Explanation{CallID: e.CallID, Role: e.Role, Method: e.Method, Status: e.OutcomeStatus,
		Selection: Selection{Selection: e.Selection, Program: orNone(e.ProgramSource), Answered: e.Generation,
			Engine: e.ProgramEngine, Tier: e.ProgramTier},
		Alternatives: []Alternative{}, Candidates: candidates(e), Tools: tools(in),
		Effects: sandbox.DoneIn(in.Call.Effects), Notes: e.Notes, Delegated: delegated(in.Nested),
		Counterfactuals: []Counterfactual{}, NotRecorded: []string{},
		Cost: Cost{DurationMs: e.DurationMs, Usage: e.Usage, Attempts: e.GenerationAttempt}}
	if x.Selection.Decision == "" {
		x.Selection.Decision = agent.DecideNone
	}
	if in.Price != nil && !unreported(&e.Usage) {
		if amount, currency, known := in.Price(e.Model, e.Usage); known {
			x.Cost.Money = &Money{amount, currency}
		}
	}
	if running(e) {
		x.Checks = []Check{}
	} else {
		x.program(in)
		x.Checks = checks(in)
		x.gone(in)
	}
	x.Next = next(in)
	x.Summary = x.words(in)
	return x
}

// unreported says that a model was asked and nobody reported how many tokens that took. What such requests count for, their upper estimates, is not
// kept by call.
func unreported(u *agent.Usage) bool {
	return u.ModelRequests > 0 && u.PromptTokens+u.CompletionTokens == 0
}

func running(e *agent.LogEntry) bool { return e.OutcomeStatus == agent.StatusRunning }

func orNone(source string) string {
	if source == "" {
		return agent.SourceNone
	}
	return source
}

// began is when the call began, to the millisecond.
func began(e *agent.LogEntry) time.Time {
	at, _ := time.Parse(agent.TimeFormat, e.Timestamp) // written by us
	return at
}

// gone notes what has expired or was never kept.
func (x *Explanation) gone(in *Input) {
	e := &in.Call.Log
	switch {
	case in.Call.Effects == nil && e.ReplayableReason != "" && e.ProgramSource != agent.SourceNone &&
		e.ProgramSource != "":
		x.note("what its program fetched and called is not kept: " + e.ReplayableReason)
	case in.Call.Outcome == nil:
		x.note("the value has expired, with what its program fetched and called")
	}
}

func (x *Explanation) note(what string) { x.NotRecorded = append(x.NotRecorded, what) }

// candidates are the attempts that did not answer.
func candidates(e *agent.LogEntry) []Candidate {
	list := []Candidate{}
	for i := range e.AttemptFailures {
		f := &e.AttemptFailures[i]
		list = append(list, Candidate{Attempt: f.AttemptID, Stage: f.Stage,
			WhyNot: stageWords(f.Stage) + " (" + word(f.ErrorType) + "): " + quoted(f.ErrorMessage)})
	}
	return list
}

// maxTools bounds the other methods that are listed.
const maxTools = 16

// tools are the other methods of the role that have programs.
func tools(in *Input) []Tool {
	list := []Tool{}
	called := map[string]bool{}
	for i := range in.Nested {
		if n := &in.Nested[i]; n.Role == in.Call.Log.Role {
			called[n.Method] = true
		}
	}
	for _, m := range in.Methods {
		why := "the call asked for " + word(in.Call.Log.Method)
		if called[m] {
			why += ", whose program called this one"
		}
		if m != in.Call.Log.Method && len(list) < maxTools {
			list = append(list, Tool{m, why})
		}
	}
	return list
}

func delegated(nested []agent.LogEntry) []Delegated {
	list := []Delegated{}
	for i := range nested {
		n := &nested[i]
		list = append(list, Delegated{n.CallID, n.Role, n.Method, n.OutcomeStatus, n.OutcomeErrorType})
	}
	return list
}
