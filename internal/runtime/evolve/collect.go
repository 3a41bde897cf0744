package evolve

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources answers what Collect asks beside the evidence. Each may be nil.
type Sources struct {
	Value       func(callID string) json.RawMessage           // an outcome's value while it is kept, else nil
	Deliverable func(m *agent.MethodEvidence) json.RawMessage // of the contract in force, or nil
	// Wrong lists the method's calls whose answers a person called wrong, and for which no program was written yet.
	Wrong func(m *agent.MethodEvidence) []string
}

// Collect makes of what is kept of each method's calls what recommendations look at: the newest MaxCalls calls. A call
// below a client's call was corrected when that one was. evidence may be in any order; the methods come by role and name.
func Collect(evidence []agent.MethodEvidence, s Sources) []Method {
	all := map[string]bool{} // of all methods: a verdict on a client's call speaks of the calls below it, too
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
	slices.SortFunc(out, func(a, b Method) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Method, b.Method)) })
	return out
}

// addNotes adds the notes of the newest MaxCalls calls, and counts the calls without a remark between them.
func (m *Method) addNotes(e *agent.MethodEvidence, wrong map[string]bool) {
	m.Plain = min(e.After, MaxCalls)
	for _, c := range e.Plain {
		m.PlainIDs = append(m.PlainIDs, c.CallID)
	}
	for _, n := range slices.Backward(e.Notes) {
		if m.Plain+len(m.Calls) >= MaxCalls {
			break
		}
		c := Call{CallID: n.CallID, Status: agent.StatusOK, ErrorType: n.ErrorType, Authored: n.Authored, Class: n.Class, Weak: n.Weak, Passed: n.Passed, CorrectedBy: n.CorrectedBy}
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

// addWrong adds that answers were called wrong. A call that was not worth a remark before is one now.
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
	slices.SortStableFunc(m.Calls, func(a, b Call) int { return cmp.Compare(a.CallID, b.CallID) }) // ids are in the order of time
}
