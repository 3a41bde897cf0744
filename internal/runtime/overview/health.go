package overview

import (
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Health is how the programs of a tool do.
type Health struct {
	Methods           int     `json:"methods"` // with a program
	SuccessCount      int64   `json:"success_count"`
	FailureCount      int64   `json:"failure_count"`       // of programs and of their sources
	RecentFailureRate float64 `json:"recent_failure_rate"` // the highest among its current programs, 0 to 1
	Degraded          int     `json:"degraded"`            // methods, as the four below
	Quarantined       int     `json:"quarantined"`
	Doubted           int     `json:"doubted"` // a person called an answer of the current program wrong
	// a person changed what the method is for, and no program was made or checked for it since
	Stale       int          `json:"stale"`
	LastFailure *LastFailure `json:"last_failure"` // null where none is known
}

// LastFailure is the newest failure of a tool's programs.
type LastFailure struct {
	Method string      `json:"method"`
	Class  agent.Class `json:"class"`
	Reason string      `json:"reason,omitempty"` // the texts of calls: for those who may see all calls
	At     *time.Time  `json:"at"`               // null where it is not kept
}

// A digest is what is kept of a method.
type digest struct {
	success, failure               int64
	rate                           float64
	degraded, quarantined, doubted bool
	last                           *LastFailure
	selectable                     *agent.Artifact // nil where no program says what it was made for
	implied                        *agent.Tool     // the entry of a role that nobody registered; nil without a program
}

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

// selectableOf returns what the selection looks at, where some program says what it was made for: no other can be stale.
func selectableOf(a *agent.Artifact) *agent.Artifact {
	if slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.MadeFor != nil }) {
		return a.Selectable()
	}
	return nil
}

// Stale reports whether what answers was made for other words than people have registered of its method. The artifact may be agent.Artifact.Selectable's.
type Stale func(a *agent.Artifact) bool

// HealthOf sums up the methods of a tool.
func HealthOf(all []*agent.Artifact, stale Stale) *Health {
	h := &Health{}
	for _, a := range all {
		h.add(digestOf(a), stale)
	}
	return h
}

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

// after reports whether the failure is newer than the other; of those whose time is not kept the first by method counts.
func (f *LastFailure) after(o *LastFailure) bool {
	switch {
	case f == nil || o == nil:
		return f != nil
	case f.At == nil || o.At == nil:
		return f.At != nil || o.At == nil && f.Method < o.Method
	}
	return f.At.After(*o.At) || f.At.Equal(*o.At) && f.Method < o.Method
}

// WithoutCalls returns the health as everybody may see it, whoever called the tool.
func (h *Health) WithoutCalls() *Health {
	if h == nil || h.LastFailure == nil {
		return h
	}
	c, last := *h, *h.LastFailure
	last.Reason = ""
	c.LastFailure = &last
	return &c
}
