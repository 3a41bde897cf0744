package overview

import (
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Health summarizes the health of a tool's programs.
type Health struct {
	Methods           int     `json:"methods"` // with a program
	SuccessCount      int64   `json:"success_count"`
	FailureCount      int64   `json:"failure_count"`       // failures of programs and of their sources
	RecentFailureRate float64 `json:"recent_failure_rate"` // the highest rate among its current programs, 0 to 1
	Degraded          int     `json:"degraded"`            // number of methods, as are the three below
	Quarantined       int     `json:"quarantined"`
	Doubted           int     `json:"doubted"` // a person judged an answer of the current program wrong
	// Stale counts methods whose purpose a person changed, with no program made or checked for it since.
	Stale       int          `json:"stale"`
	LastFailure *LastFailure `json:"last_failure"` // null if none is known
}

// LastFailure is the newest failure of a tool's programs.
type LastFailure struct {
	Method string      `json:"method"`
	Class  agent.Class `json:"class"`
	Reason string      `json:"reason,omitempty"` // may quote calls, so only for readers who may see all calls
	At     *time.Time  `json:"at"`               // null if the time was not kept
}

// A digest holds the figures kept for a method.
type digest struct {
	success, failure               int64
	rate                           float64
	degraded, quarantined, doubted bool
	last                           *LastFailure
	selectable                     *agent.Artifact // nil if no program records its wording, so that none can be stale
	implied                        *agent.Tool     // entry of an unregistered role; nil without a program
}

// digestOf returns the figures of a method.
func digestOf(a *agent.Artifact) digest {
	d := digest{success: a.SuccessCount, failure: a.FailureCount, rate: a.RecentFailureRate,
		degraded:    a.LifecycleState == agent.StateDegraded,
		quarantined: a.Quarantined, doubted: a.Doubted(a.CurrentID), selectable: selectableOf(a),
		implied: agent.Implied([]*agent.Artifact{a})}
	if a.LastFailureClass != agent.ClassNone {
		d.last = &LastFailure{Method: a.MethodName, Class: a.LastFailureClass, Reason: a.LastFailureReason}
		if len(a.Failures) > 0 && a.Failures[0].Class == a.LastFailureClass {
			at := a.Failures[0].At.UTC()
			d.last.At = &at
		}
	}
	return d
}

// selectableOf returns a reduced artifact to check for staleness, or nil if no program records the wording that it was
// made for.
func selectableOf(a *agent.Artifact) *agent.Artifact {
	if slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.MadeFor != nil }) {
		return a.Selectable()
	}
	return nil
}

// Stale reports whether the program that answers was made for another wording than the registered one. The artifact may
// be a result of agent.Artifact.Selectable.
type Stale func(a *agent.Artifact) bool

// HealthOf returns the health of a tool with these methods.
func HealthOf(all []*agent.Artifact, stale Stale) *Health {
	h := &Health{}
	for _, a := range all {
		h.add(digestOf(a), stale)
	}
	return h
}

// add adds the figures of a method.
func (h *Health) add(d digest, stale Stale) {
	h.Methods++
	h.SuccessCount += d.success
	h.FailureCount += d.failure
	h.RecentFailureRate = max(h.RecentFailureRate, d.rate)
	for _, f := range []struct {
		is bool
		n  *int
	}{{d.degraded, &h.Degraded}, {d.quarantined, &h.Quarantined}, {d.doubted, &h.Doubted},
		{d.selectable != nil && stale(d.selectable), &h.Stale}} {
		if f.is {
			*f.n++
		}
	}
	if d.last.after(h.LastFailure) {
		h.LastFailure = d.last
	}
}

// after reports whether f is newer than o. A failure with a known time is newer than one without; among equals, the
// first by method name wins. Both may be nil.
func (f *LastFailure) after(o *LastFailure) bool {
	switch {
	case f == nil || o == nil:
		return f != nil
	case f.At == nil || o.At == nil:
		return f.At != nil || o.At == nil && f.Method < o.Method
	}
	return f.At.After(*o.At) || f.At.Equal(*o.At) && f.Method < o.Method
}

// WithoutCalls returns the health without texts of calls, as everybody may see it. h may be nil.
func (h *Health) WithoutCalls() *Health {
	if h == nil || h.LastFailure == nil {
		return h
	}
	c, last := *h, *h.LastFailure
	last.Reason = ""
	c.LastFailure = &last
	return &c
}
