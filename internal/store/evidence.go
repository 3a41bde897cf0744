package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Limits of Evidence.
const (
	// MaxEvidence is the maximum number of calls kept for all methods together. Beyond it, the methods that went
	// longest without a call lose their evidence.
	MaxEvidence = 100_000
	maxTrees    = 16 << 10 // roots in each of young and old
)

// Evidence aggregates the outcomes of calls by method, so its size does not grow with the log. It is not safe for
// concurrent use; the values that it returns are.
type Evidence struct {
	methods map[Target]*agent.MethodEvidence
	size    int // calls kept

	// young and old hold the methods called in the tree of a client's call, by the call id of that root. Roots are
	// forgotten by age: a full young replaces old.
	young, old map[string][]Target
}

// NewEvidence returns evidence that starts with the stored one.
func NewEvidence(stored []agent.MethodEvidence) *Evidence {
	v := &Evidence{methods: make(map[Target]*agent.MethodEvidence, len(stored)), young: map[string][]Target{}}
	for i := range stored {
		m := stored[i]
		t := Target{Role: m.Role, Method: m.Method}
		v.methods[t] = &m
		v.size += weight(&m)
		for j := range m.Notes {
			v.remember(m.Notes[j].Root, t)
		}
		for j := range m.Plain {
			v.remember(m.Plain[j].Root, t)
		}
	}
	return v
}

func weight(m *agent.MethodEvidence) int { return len(m.Notes) + len(m.Plain) }

// Add adds a finished call. It must be newer than those added before. Entries that do not count as evidence are
// ignored.
func (v *Evidence) Add(e *agent.LogEntry) {
	if !e.IsEvidence() {
		return
	}
	t := Target{Role: e.Role, Method: e.Method}
	if ref := e.UserCorrectionReferenceCallID; ref != "" {
		v.correct(ref, t, e)
	}
	m := v.of(t)
	before := weight(m)
	m.Add(e)
	v.size += weight(m) - before
	v.remember(e.RootCallID, t)
	if v.size > MaxEvidence {
		v.thin()
	}
}

// Judge records that a person has given a verdict on a call of the method.
func (v *Evidence) Judge(role, method string) { v.of(Target{Role: role, Method: method}).Judged = true }

func (v *Evidence) of(t Target) *agent.MethodEvidence {
	m := v.methods[t]
	if m == nil {
		m = &agent.MethodEvidence{Role: t.Role, Method: t.Method}
		v.methods[t] = m
	}
	return m
}

// remember records that the method was called below the root, so that correct can find it.
func (v *Evidence) remember(root string, t Target) {
	if root == "" || slices.Contains(v.young[root], t) {
		return
	}
	if len(v.young) >= maxTrees {
		v.old, v.young = v.young, map[string][]Target{}
	}
	v.young[root] = append(v.young[root], t)
}

// correct links the calls in the tree of root with the call by, in which the user asked again. t is the method of root.
func (v *Evidence) correct(root string, t Target, by *agent.LogEntry) {
	for _, methods := range [][]Target{{t}, v.young[root], v.old[root]} {
		for _, t := range methods {
			if m := v.methods[t]; m != nil {
				v.size -= weight(m)
				m.Correct(root, by.CallID, by.Timestamp)
				v.size += weight(m)
			}
		}
	}
}

// thin drops the methods that went longest without a call until a tenth of MaxEvidence is free. Freeing a tenth at once
// keeps Add from sorting all methods each time.
func (v *Evidence) thin() {
	all := slices.SortedFunc(maps.Keys(v.methods), func(a, b Target) int {
		return cmp.Compare(v.methods[a].Last,
			v.methods[b].Last)
	})
	for _, t := range all {
		if v.size <= MaxEvidence*9/10 {
			return
		}
		v.size -= weight(v.methods[t])
		delete(v.methods, t)
	}
}

// Of returns the evidence of one method. It is empty if there is none.
func (v *Evidence) Of(role, method string) agent.MethodEvidence {
	if m := v.methods[Target{Role: role, Method: method}]; m != nil {
		return *m
	}
	return agent.MethodEvidence{Role: role, Method: method}
}

// Remarkable returns the evidence of the methods with a note or a verdict, sorted by role and method.
func (v *Evidence) Remarkable() []agent.MethodEvidence {
	return v.list(func(m *agent.MethodEvidence) bool { return len(m.Notes) > 0 || m.Judged })
}

// All returns the evidence of all methods, sorted by role and method.
func (v *Evidence) All() []agent.MethodEvidence {
	return v.list(func(*agent.MethodEvidence) bool { return true })
}

// list returns the methods that is selects, sorted by role and method.
func (v *Evidence) list(is func(*agent.MethodEvidence) bool) []agent.MethodEvidence {
	out := []agent.MethodEvidence{}
	for _, m := range v.methods {
		if is(m) {
			out = append(out, *m)
		}
	}
	slices.SortFunc(out, func(a, b agent.MethodEvidence) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Method, b.Method))
	})
	return out
}

// Remembers reports whether the artifact still holds data of the session.
func Remembers(a *agent.Artifact, session string) bool {
	if slices.Contains(a.Scorecard.Sessions, session) {
		return true
	}
	for _, g := range a.Held() {
		if slices.ContainsFunc(g.Fixtures, func(f agent.Fixture) bool { return f.SessionID == session }) {
			return true
		}
	}
	return false
}
