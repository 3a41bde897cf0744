package evolve

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources gives Collect access to data outside the evidence. Each function may be nil.
type Sources struct {
	// returns a call's value, or nil if it is not kept any more
	Value func(callID string) json.RawMessage
	// returns the deliverable of the contract in force, or nil
	Deliverable func(m *agent.MethodEvidence) json.RawMessage
	// Wrong returns the IDs of the method's calls whose answers a person judged wrong and that are not corrected yet.
	Wrong func(m *agent.MethodEvidence) []string
}

// Collect turns evidence into the input of Recommend: the newest maxCalls calls of each method. Evidence may be in any
// order; the result is sorted by role and method. A nested call counts as corrected if its root call was.
func Collect(evidence []agent.MethodEvidence, s Sources) []Method {
	all := map[string]bool{} // for all methods, because a verdict on a client's call also applies to the calls below it
	wrong := make([][]string, len(evidence))
	for i := range evidence {
		if s.Wrong != nil && evidence[i].Judged {
			wrong[i] = s.Wrong(&evidence[i])
			for _, id := range wrong[i] {
				all[id] = true
			}
		}
	}
	out := make([]Method, 0, len(evidence))
	for i := range evidence {
		e := &evidence[i]
		m := Method{Role: e.Role, Method: e.Method, Value: s.Value}
		m.addNotes(e, all)
		m.addWrong(wrong[i])
		if len(m.Calls) == 0 {
			continue
		}
		m.PlainIDs = m.PlainIDs[max(0, len(m.PlainIDs)-m.Plain):]
		if s.Deliverable != nil {
			m.Deliverable = s.Deliverable(e)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Method) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role),
			cmp.Compare(a.Method, b.Method))
	})
	return out
}

// addNotes adds the remarkable calls among the newest maxCalls calls, and counts the plain calls between them.
func (m *Method) addNotes(e *agent.MethodEvidence, wrong map[string]bool) {
	m.Plain = min(e.After, maxCalls)
	for _, c := range e.Plain {
		m.PlainIDs = append(m.PlainIDs, c.CallID)
	}
	for _, n := range slices.Backward(e.Notes) {
		if m.Plain+len(m.Calls) >= maxCalls {
			break
		}
		c := Call{CallID: n.CallID, Status: agent.StatusOK, ErrorType: n.ErrorType, Authored: n.Authored,
			Class: n.Class, Weak: n.Weak, Passed: n.Passed, CorrectedBy: n.CorrectedBy}
		if !n.OK() {
			c.Status = agent.StatusError
		}
		if c.CorrectedBy == "" && (wrong[n.CallID] || wrong[n.Root]) {
			c.CorrectedBy = "verdict"
		}
		m.Calls = append(m.Calls, c)
		m.Plain = min(m.Plain+n.Before, maxCalls-len(m.Calls))
	}
	slices.Reverse(m.Calls)
}

// addWrong marks the calls whose answers were judged wrong. A plain call becomes a remarkable one.
func (m *Method) addWrong(ids []string) {
	for _, id := range ids {
		if i := slices.IndexFunc(m.Calls, func(c Call) bool { return c.CallID == id }); i >= 0 {
			m.Calls[i].Wrong = true
			continue
		}
		m.Calls = append(m.Calls, Call{CallID: id, Status: agent.StatusOK, CorrectedBy: "verdict", Wrong: true})
		m.PlainIDs = slices.DeleteFunc(m.PlainIDs, func(plain string) bool { return plain == id })
		m.Plain = max(0, m.Plain-1)
	}
	// IDs sort by time
	slices.SortStableFunc(m.Calls, func(a, b Call) int { return cmp.Compare(a.CallID, b.CallID) })
}
