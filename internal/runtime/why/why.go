// Package why explains a call: which program answered and why that one, what the alternatives were, what the program
// reached, what was checked, what the call cost, what another policy would have decided, and what can be done next.
//
// It computes an Explanation from stored data and reads nothing itself. Text by models, programs, pages and callers
// appears in its sentences only as a plain word, or quoted with all unprintable characters escaped, so it can forge
// neither a line nor an escape sequence. Values are never shown.
package why

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Explanation is the body of GET /v1/calls/{call_id}/why. Lists are never null.
type Explanation struct {
	CallID  string `json:"call_id"`
	Role    string `json:"role"`
	Method  string `json:"method"`
	Status  string `json:"status"`  // ok, error or running
	Summary string `json:"summary"` // plain sentences, one line per question

	Selection    Selection     `json:"selection"`
	Alternatives []Alternative `json:"alternatives"` // the other kept generations, newest first
	// programs that were written or run for this call and did not answer, in order
	Candidates []Candidate    `json:"candidates"`
	Tools      []Tool         `json:"tools"`           // the other methods of the role, at most 16
	Effects    []sandbox.Done `json:"effects"`         // requests of the program to its host, in order
	Delegated  []Delegated    `json:"delegated"`       // calls that the program made, newest first
	Notes      []string       `json:"notes,omitempty"` // notes of the program, in its own words
	Checks     []Check        `json:"checks"`          // of programs and of the value
	Cost       Cost           `json:"cost"`            // of this call
	// the selection with one switch of the policy changed each
	Counterfactuals []Counterfactual `json:"counterfactuals"`
	Next            []Step           `json:"next"` // requests that the asker may send as they are
	// facts that are not known any more, so the rest may be wrong
	NotRecorded []string `json:"not_recorded"`
}

// Selection is the recorded decision, and the one that the same state leads to now.
type Selection struct {
	agent.Selection
	// origin of the program that answered: generated, persisted, repaired or none
	Program  string `json:"program"`
	Answered string `json:"answered,omitempty"` // the generation that answered
	Trigger  string `json:"trigger"`            // why that generation was made; "" if it is not kept
	Engine   string `json:"engine,omitempty"`   // engine that ran the program: go, ssa or yaegi
	Tier     string `json:"tier,omitempty"`     // engine or native
	// the repeated selection; null if nothing was selected or too little is kept
	Again *agent.Selection `json:"again"`
	Same  bool             `json:"same"` // Again equals the recorded decision
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

// Check is the result of one check.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // passed, failed or none (not checked)
	Detail string `json:"detail"`
}

// Cost is what the call cost.
type Cost struct {
	DurationMs float64     `json:"duration_ms"`
	Usage      agent.Usage `json:"usage"`
	// upper bound of the price of Usage; null if the model has no price, or requests reported no tokens
	Money    *Money       `json:"money"`
	Forge    *agent.Usage `json:"forge_usage"` // for making the program that answered; null if it is not kept
	Attempts int          `json:"attempts"`    // programs requested from the model
}

// Money is an amount according to the price list.
type Money struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Counterfactual is the decision under another policy.
type Counterfactual struct {
	Switch     string `json:"switch"` // name of a policy member, with dots for nested ones
	Value      any    `json:"value"`  // its other value
	Decision   string `json:"decision"`
	Reason     string `json:"reason"`
	Generation string `json:"generation,omitempty"`
	Changes    bool   `json:"changes"` // whether it differs from the selection without a change
	// further consequences, in words; "" if none are known
	Then string `json:"then,omitempty"`
}

// Step is a request that is ready to send.
type Step struct {
	Name    string          `json:"name"` // what it does, for people
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body"`              // null if there is none
	Command string          `json:"command,omitempty"` // shell command that sends it
}

// Asker holds the rights of the reader in addition to reading. Requests that would be refused are not offered.
type Asker struct {
	Call    bool // may judge, replay and cancel calls, and make new ones
	Operate bool // verdicts take effect at once; without it, they are proposals
}

// Input is the data for an explanation.
type Input struct {
	Asker       Asker
	Call        store.Call
	Artifact    *agent.Artifact // of the method, current state; nil if there is none
	Methods     []string        // methods of the role that have programs
	Nested      []agent.LogEntry
	Policy      *agent.Policy // in force when the call began
	PolicyKnown bool          // false if Policy is the current one, because the one at the call is unknown
	PolicyNow   *agent.Policy
	Select      func(selection.Input) selection.Decision // runs the selection
	// nil: no model has a price
	Price func(model string, used agent.Usage) (amount float64, currency string, known bool)
}

// Explain explains a call, which may be running. It does not modify in.
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
	// a running call has no outcome to explain yet
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

// unreported reports whether a model was asked but no server reported the tokens. The estimates that count instead are
// not kept by call.
func unreported(u *agent.Usage) bool {
	return u.ModelRequests > 0 && u.PromptTokens+u.CompletionTokens == 0
}

// running reports whether the call has not ended.
func running(e *agent.LogEntry) bool { return e.OutcomeStatus == agent.StatusRunning }

// orNone replaces an empty source by SourceNone.
func orNone(source string) string {
	if source == "" {
		return agent.SourceNone
	}
	return source
}

// began returns when the call began, to the millisecond.
func began(e *agent.LogEntry) time.Time {
	at, _ := time.Parse(agent.TimeFormat, e.Timestamp) // always valid: the daemon wrote it
	return at
}

// gone notes data that has expired or was never kept.
func (x *Explanation) gone(in *Input) {
	e := &in.Call.Log
	switch {
	case in.Call.Effects == nil && e.ReplayableReason != "" && e.ReplayableReason != agent.ReasonNoProgram:
		x.note("what its program fetched and called is not kept: " + e.ReplayableReason)
	case in.Call.Outcome == nil && !ran(e):
		x.note("the value has expired")
	case in.Call.Outcome == nil:
		x.note("the value has expired, with what its program fetched and called")
	}
}

// note adds to NotRecorded.
func (x *Explanation) note(what string) { x.NotRecorded = append(x.NotRecorded, what) }

// candidates returns the attempts that did not answer.
func candidates(e *agent.LogEntry) []Candidate {
	list := []Candidate{}
	for i := range e.AttemptFailures {
		f := &e.AttemptFailures[i]
		list = append(list, Candidate{Attempt: f.AttemptID, Stage: f.Stage,
			WhyNot: stageWords(f.Stage) + " (" + word(f.ErrorType) + "): " + quoted(f.ErrorMessage)})
	}
	return list
}

// maxTools bounds the other methods in an explanation.
const maxTools = 16

// tools returns the other methods of the role that have programs, and why they did not answer.
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

// delegated converts the log entries of nested calls.
func delegated(nested []agent.LogEntry) []Delegated {
	list := []Delegated{}
	for i := range nested {
		n := &nested[i]
		list = append(list, Delegated{n.CallID, n.Role, n.Method, n.OutcomeStatus, n.OutcomeErrorType})
	}
	return list
}
