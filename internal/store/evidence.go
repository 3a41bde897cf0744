package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Bounds of Evidence.
const (
	// calls kept, of all methods; beyond it the methods that went longest without a call lose theirs
	MaxEvidence = 100_000
	maxTrees    = 16 << 10 // roots in each of young and old
)

// Evidence aggregates the outcomes of calls by method as they are added, so that its cost does not grow with the log. It is not
// safe for concurrent use; the values that it returns are.
type Evidence struct {
	methods map[Target]*agent.MethodEvidence
	size    int // calls kept

	// The methods that were called below a client's call, by the id of that root. Roots are forgotten by age: when young is
	// full, it replaces old.
	young, old map[string][]Target
}

// NewEvidence returns evidence that begins with the stored one.
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

// Add adds a call that ended. It must be newer than those added before. Entries that say nothing about a program are ignored.
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

// Judge notes that a person has given a verdict on a call of the method.
func (v *Evidence) Judge(role, method string) { v.of(Target{Role: role, Method: method}).Judged = true }

func (v *Evidence) of(t Target) *agent.MethodEvidence {
	m := v.methods[t]
	if m == nil {
		m = &agent.MethodEvidence{Role: t.Role, Method: t.Method}
		v.methods[t] = m
	}
	return m
}

// remember notes that the method was called below the root, so that correct finds it.
func (v *Evidence) remember(root string, t Target) {
	if root == "" || slices.Contains(v.young[root], t) {
		return
	}
	if len(v.young) >= maxTrees {
		v.old, v.young = v.young, map[string][]Target{}
	}
	v.young[root] = append(v.young[root], t)
}

// correct links the calls of a tree with the call that asked the question of its root again; t is the root's method.
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

// thin drops the methods that went longest without a call until a tenth of MaxEvidence is free.
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

// Of returns the evidence of one method, empty if there is none.
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
