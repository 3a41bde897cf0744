package call

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// A Selection is a call with its contract, its context, and the decision about its program. It is a value: a phase that
// reads the artifact again makes a new one. Flights read it concurrently.
type Selection struct {
	*Call

	Terms    Terms
	Memory   map[string]json.RawMessage // the session's context; empty for nested calls
	Artifact *agent.Artifact            // nil if none is stored
	Decision selection.Decision
	Took     time.Duration // how long the selection took
	Reached  agent.Effects // effects of the stored program that failed in this call
}

// Input returns the input of Select for the call and the given artifact.
func (s *Selection) Input(a *agent.Artifact) selection.Input {
	return selection.Input{Role: s.Role, Method: s.Method, HasArgs: s.HasArgs(), Positional: len(s.Args),
		Kwargs:             s.Kwargs,
		Artifact:           a,
		CheckedFingerprint: CheckedOf(a, s.Terms.Checked, s.Terms.Written), Words: s.Terms.RegisteredWords(),
		Policy: s.Policy, Now: s.Started, ImportAllowed: s.Env.AllowImport, IgnoresArgs: s.Env.Facts.IgnoresArgs,
		Intact: s.Env.Intact.Has}
}

// CheckedOf returns the fingerprint of the contract that the artifact's programs are held to. It is written, the
// fingerprint that earlier versions computed, if the artifact holds only programs from those versions.
func CheckedOf(a *agent.Artifact, checked, written string) string {
	if written != checked && !a.Fits(checked) && a.Fits(written) {
		return written
	}
	return checked
}

// SwitchedOff reports whether stored programs are ignored: they are not run, not shown to the model, and not used to
// prove the program that answers instead. The call behaves as if nothing were stored, except that people's decisions
// still apply.
func (s *Selection) SwitchedOff() bool {
	return s.UnderSwitch() || s.Decision.Reason == selection.ReasonQuarantined
}

// Alone reports whether the program is for this call only: a switch demands a new program each time, or the method's
// programs answer a single question each.
func (s *Selection) Alone() bool {
	switch s.Decision.Reason {
	case selection.ReasonDispatch, selection.ReasonNotCacheable:
		return true
	}
	return s.SwitchedOff() || s.Dispatch()
}

// PersonAsked reports whether a person requested the program, by a regeneration or by a verdict. Such a program may
// answer differently from its predecessor.
func (s *Selection) PersonAsked() bool {
	return s.Decision.Reason == selection.ReasonRequested || s.Decision.Reason == selection.ReasonCorrection
}

// Reserve returns the part of the remaining time that is reserved for the fallback program, which answers if the model
// does not: one run's timeout, but at most half. It is 0 without a fallback.
func (s *Selection) Reserve(left time.Duration) time.Duration {
	if s.Decision.Fallback == nil {
		return 0
	}
	return min(s.Env.RunTimeout, left/2)
}

// Patience returns how long the call can wait for the model in total.
func (s *Selection) Patience() time.Duration {
	whole := s.Deadline.Sub(s.Started)
	return whole - s.Reserve(whole)
}

// MadeFor returns the MadeFor of the requested program, and the wording that a person confirmed for it. A program that
// must reproduce its predecessor's answers inherits both.
func (s *Selection) MadeFor(predecessor *agent.Generation) (*agent.MadeFor, agent.WordingDigest) {
	if predecessor != nil && predecessor.MadeFor != nil && !s.Rewrites() {
		return predecessor.MadeFor, predecessor.Confirmed
	}
	return s.MadeForNow(), ""
}

// MadeForNow returns the MadeFor of a program for the registered wording, or nil if no contract was resolved.
func (s *Selection) MadeForNow() *agent.MadeFor {
	if s.Terms.Words == nil {
		return nil
	}
	m := s.Terms.Words.Made
	if !s.Terms.Registered && s.Terms.Contract != nil { // the role is registered with its first program
		m.Purpose = s.Terms.Contract.Purpose
	}
	return &m
}

// Rewrites reports whether the new program is for another wording than its predecessor's. The predecessor's fixtures do
// not apply then. Corrections always keep the predecessor's answers.
func (s *Selection) Rewrites() bool {
	return s.Decision.Reworded && s.Decision.Reason != selection.ReasonCorrection
}
