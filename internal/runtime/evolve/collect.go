package evolve

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources gives Collect access to data beside the evidence. Each function may be nil.
type Sources struct {
	Value       func(callID string) json.RawMessage           // value of a call while it is kept, else nil
	Deliverable func(m *agent.MethodEvidence) json.RawMessage // deliverable of the contract in force, or nil
	// Wrong lists the ids of the method's calls that a person called wrong and whose correction has not been written yet.
	Wrong func(m *agent.MethodEvidence) []string
}

// Collect turns evidence into the input of Recommend: the newest MaxCalls calls of each method. Evidence may be in any order; the
// result is sorted by role and method. A nested call counts as corrected if its root was.
func Collect(evidence []agent.MethodEvidence, s Sources) []Method {
	all := map[string]bool{} // of all methods, because a verdict on a client's call applies to the calls below it, too
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

// addNotes adds the remarkable calls among the newest MaxCalls calls, and counts the plain ones between them.
func (m *Method) addNotes(e *agent.MethodEvidence, wrong map[string]bool) {
	m.Plain = min(e.After, MaxCalls)
	for _, c := range e.Plain {
		m.PlainIDs = append(m.PlainIDs, c.CallID)
	}
	for _, n := range slices.Backward(e.Notes) {
		if m.Plain+len(m.Calls) >= MaxCalls {
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
		m.Plain = min(m.Plain+n.Before, MaxCalls-len(m.Calls))
	}
	slices.Reverse(m.Calls)
}

// addWrong marks the calls whose answers were called wrong. A plain call becomes a remarkable one.
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
	// ids are in the order of time
	slices.SortStableFunc(m.Calls, func(a, b Call) int { return cmp.Compare(a.CallID, b.CallID) })
}
