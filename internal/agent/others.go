package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WithoutCalls returns a copy of the artifact as everybody may see it, whoever called it: without what single calls left in it, which are
// ids, owners, arguments, values, texts of failures and the paths of what was fetched. Counts stay.
func (a *Artifact) WithoutCalls() *Artifact {
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
		shared.Fixtures = make([]Fixture, len(g.Fixtures)) // they are counted
		c.Generations[i] = &shared
	}
	return &c
}

// Declares reports whether the method's parameters or the text of its programs have the name, so that everybody in the namespace may read it: what else
// stands in the place of a name may be data.
func (a *Artifact) Declares(name string) bool {
	if p, _ := a.Takes().Parameter(name); p != nil {
		return true
	}
	return a != nil && name != "" && slices.ContainsFunc(a.Lineage(),
		func(g *Generation) bool { return spells(g.Code, name) })
}

// spells reports whether a program has the name as a text, alone or at the beginning of a field's tag.
func spells(code, name string) bool {
	return strings.Contains(code, strconv.Quote(name)) || strings.Contains(code, "`"+name+"`") ||
		strings.Contains(code, `"`+name+`,`)
}

// WithoutCall returns the example without the call that it was made from.
func (x Example) WithoutCall() Example {
	x.CallID, x.SessionID = "", ""
	return x
}

// WithoutOthers returns the entry without what may be of other sessions than the call's: the prompt, which in entries of earlier versions shows what failed in them, and
// which of their calls a discarded program broke.
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
