package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WithoutCalls returns a copy of the artifact that may be shown to everybody. It lacks the traces of single calls: ids,
// owners, arguments, values, error texts and the paths of fetched sources. Counts stay.
func (a *Artifact) WithoutCalls() *Artifact {
	// Lists are replaced, never changed in place: the original is shared.
	c := *a
	c.LastFailureReason, c.LastFailureOwner, c.Scorecard.Sessions, c.Owner = "", "", nil, ""
	c.Displaced, c.Verdicts, c.Failures, c.Drifts = nil, nil, nil, nil
	c.Rejections = slices.Clone(a.Rejections)
	for i := range c.Rejections {
		r := &c.Rejections[i]
		r.CallID, r.Owner, r.Reason, r.Hint, r.Fixture = "", "", "", "", ""
	}
	if a.Correction != nil {
		correction := *a.Correction
		correction.LastError = nil
		c.Correction = &correction
	}
	c.Generations = make([]*Generation, len(a.Generations))
	for i, g := range a.Generations {
		shared := *g
		shared.Owner, shared.Callers = "", nil
		shared.ChangedAnswers, shared.Shapes, shared.Outlines, shared.ShapesOwner, shared.Answered = nil, nil, nil, "",
			nil
		shared.Fixtures = make([]Fixture, len(g.Fixtures)) // only their number is kept
		c.Generations[i] = &shared
	}
	return &c
}

// Declares reports whether the name is a parameter of the method or appears in the source of its programs, which
// everybody in the namespace may read. Other keywords of a call may be data.
func (a *Artifact) Declares(name string) bool {
	if p, _ := a.Takes().Parameter(name); p != nil {
		return true
	}
	return a != nil && name != "" && slices.ContainsFunc(a.Lineage(),
		func(g *Generation) bool { return spells(g.Code, name) })
}

// spells reports whether the source contains the name as a string literal, alone or at the beginning of a field's tag.
func spells(code, name string) bool {
	return strings.Contains(code, strconv.Quote(name)) || strings.Contains(code, "`"+name+"`") ||
		strings.Contains(code, `"`+name+`,`)
}

// WithoutCall returns the example without the call that it was made from.
func (x Example) WithoutCall() Example {
	x.CallID, x.SessionID = "", ""
	return x
}

// WithoutOthers returns the entry without data that may belong to other sessions: the prompt, which in entries of
// earlier versions shows their failures, and the ids of their calls that a discarded program broke.
func (e LogEntry) WithoutOthers() LogEntry {
	e.UserPrompt = ""
	e.OutcomeErrorMetadata = withoutFixture(e.OutcomeErrorMetadata)
	e.AttemptFailures = slices.Clone(e.AttemptFailures)
	for i := range e.AttemptFailures {
		e.AttemptFailures[i].Metadata = withoutFixture(e.AttemptFailures[i].Metadata)
	}
	return e
}

func withoutFixture(metadata map[string]any) map[string]any {
	if metadata["fixture"] == nil {
		return metadata
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "fixture")
	return metadata
}
