package agent

import (
	"slices"
	"time"
)

// maxFailures is the number of newest failures that an artifact keeps as evidence for the next program.
const maxFailures = 3

// Failure is a failed run, kept as evidence for the program that replaces the failing one.
type Failure struct {
	At         time.Time `json:"at"`
	CallID     string    `json:"call_id"`
	SessionID  string    `json:"session_id"`
	Generation string    `json:"generation,omitempty"`
	Class      Class     `json:"class"`
	ErrorType  string    `json:"error_type"`
	Message    string    `json:"message"`           // at most 400 characters
	Sources    []Source  `json:"sources,omitempty"` // what was fetched, at most 4
	// Unknown lists keywords of the call that the program does not read; at most 16.
	Unknown []string `json:"unknown_keywords,omitempty"`
}

// Source is one response that a failing run fetched.
type Source struct {
	URL         string `json:"url"`
	Status      int    `json:"status"` // 0 if there was no response
	ContentType string `json:"content_type,omitempty"`
	Bytes       int    `json:"bytes,omitempty"`
	Sample      string `json:"sample,omitempty"`    // the first 2 KiB of the body
	Shape       string `json:"shape,omitempty"`     // described in words if it has a shape
	WasShape    string `json:"was_shape,omitempty"` // at the last ok run, if different
}

// noteFailure records a failure and keeps the newest maxFailures.
func (a *Artifact) noteFailure(f Failure) {
	a.Failures = append([]Failure{f}, a.Failures...)
	a.Failures = a.Failures[:min(len(a.Failures), maxFailures)]
}

// forgetEvidence drops the verdicts, examples and failures of the session.
func (a *Artifact) forgetEvidence(session string) {
	a.Examples = slices.DeleteFunc(slices.Clone(a.Examples), func(x Example) bool { return x.SessionID == session })
	a.Verdicts = slices.DeleteFunc(slices.Clone(a.Verdicts), func(v Verdict) bool { return v.SessionID == session })
	a.Failures = slices.DeleteFunc(slices.Clone(a.Failures), func(f Failure) bool { return f.SessionID == session })
	a.Rejections = slices.Clone(a.Rejections)
	for i := range a.Rejections {
		a.Rejections[i].Hint = "" // it may quote the session
	}
	for _, g := range a.Generations {
		if slices.ContainsFunc(g.ChangedAnswers, func(c ChangedAnswer) bool { return c.SessionID == session }) {
			g2 := a.change(g.ID)
			g2.ChangedAnswers = slices.DeleteFunc(slices.Clone(g.ChangedAnswers),
				func(c ChangedAnswer) bool { return c.SessionID == session })
		}
	}
}

// Drift records that a source changed, as shown by a repair that was adopted for it.
type Drift struct {
	Source string    `json:"source"` // its URL without query and fragment
	At     time.Time `json:"at"`     // of the call that was repaired
}

// maxDrifts bounds Artifact.Drifts.
const maxDrifts = 16

// noteDrift records that the sources changed at that time. Each source is listed once, the latest change first.
func (a *Artifact) noteDrift(sources []string, at time.Time) {
	for _, s := range sources {
		a.Drifts = slices.DeleteFunc(slices.Clone(a.Drifts), func(d Drift) bool { return d.Source == s })
		a.Drifts = append([]Drift{{s, at}}, a.Drifts...)
		a.Drifts = a.Drifts[:min(len(a.Drifts), maxDrifts)]
	}
}

// DriftedSince reports whether one of the sources changed after then. a may be nil.
func (a *Artifact) DriftedSince(sources []string, then time.Time) bool {
	return a != nil && slices.ContainsFunc(a.Drifts, func(d Drift) bool {
		return then.Before(d.At) &&
			slices.Contains(sources, d.Source)
	})
}
