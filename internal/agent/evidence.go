package agent

import "slices"

// Bounds of what is kept of a method's calls as evidence.
const (
	MaxNotes = 200 // remarkable calls, the newest
	maxPlain = 20  // calls without a remark, the newest
)

// MethodEvidence is what is known of the outcomes of one method's calls, whatever became of the call log. It is a value:
// lists are shared and never changed in place.
type MethodEvidence struct {
	Role   string      `json:"role"`
	Method string      `json:"method"`
	Calls  int64       `json:"calls"`            // that ran a program, or failed to get one
	Last   string      `json:"last"`             // when the newest of them began
	After  int         `json:"after,omitempty"`  // ok calls without a remark since the newest note
	Plain  []PlainCall `json:"plain,omitempty"`  // the newest ones without a remark, oldest first
	Notes  []CallNote  `json:"notes,omitempty"`  // oldest first
	Judged bool        `json:"judged,omitempty"` // a person has judged a call, now or once
}

// PlainCall is an ok call without a remark.
type PlainCall struct {
	CallID string `json:"call_id"`
	Root   string `json:"root,omitempty"` // as of a CallNote
}

// CallNote is one remarkable call: weak, failed, repaired within the call, or asked again.
type CallNote struct {
	CallID      string   `json:"call_id"`
	At          string   `json:"at"`
	Root        string   `json:"root,omitempty"`   // the client's call below which it was made; "" for a client's own
	Before      int      `json:"before,omitempty"` // ok calls of the method without a remark since the note before
	ErrorType   string   `json:"error_type,omitempty"`
	Authored    bool     `json:"authored,omitempty"`
	Class       Class    `json:"class,omitempty"`
	Weak        []string `json:"weak,omitempty"`         // reasons
	Passed      bool     `json:"passed,omitempty"`       // a nested call of it was weak: that one is to blame
	CorrectedBy string   `json:"corrected_by,omitempty"` // the client's call that asked the root again
	OwnContract string   `json:"own_contract,omitempty"` // the session of a call that brought its own contract, or whose session did
}

// OK reports whether the call answered.
func (n *CallNote) OK() bool { return n.ErrorType == "" }

// IsEvidence reports whether the entry says anything of a program: it has ended, and a program ran or was to run.
func (e *LogEntry) IsEvidence() bool {
	return e.OutcomeStatus != StatusRunning && (e.ProgramSource != SourceNone || e.OutcomeStatus != StatusOK)
}

// NoteOf is what is kept of the call; ok is false for one without a remark.
func NoteOf(e *LogEntry) (n CallNote, ok bool) {
	n = CallNote{CallID: e.CallID, At: e.Timestamp, Root: e.RootCallID, ErrorType: e.OutcomeErrorType, Authored: e.OutcomeAuthored, Class: failureOf(e),
		Weak: e.WeakSuccessReasons, Passed: e.WeakNestedCalls > 0}
	if len(n.Weak) == 0 && n.ErrorType == "" && n.Class == ClassNone {
		return CallNote{}, false
	}
	if e.Depth == 0 && (e.ContractSource == ContractOfCall || e.ContractSource == ContractMerged) { // the registry wins over delegations
		n.OwnContract = e.SessionID
	}
	return n, true
}

// failureOf is the class of the failure that the call met: its own, or that of the stored program which failed first and
// was repaired within the call. What failed of a program that was not kept yet is no evidence against the one that is.
func failureOf(e *LogEntry) Class {
	if e.FailureClass != ClassNone || e.Selection.Decision != DecideRun || len(e.AttemptFailures) == 0 {
		return e.FailureClass
	}
	return e.AttemptFailures[0].FailureClass
}

// Add adds a call, newer than the others.
func (m *MethodEvidence) Add(e *LogEntry) {
	m.Calls++
	m.Last = max(m.Last, e.Timestamp)
	n, remarkable := NoteOf(e)
	if !remarkable {
		m.After++
		m.Plain = append(m.Plain, PlainCall{e.CallID, e.RootCallID})
		m.Plain = m.Plain[max(0, len(m.Plain)-maxPlain):]
		return
	}
	n.Before = m.After
	m.note(n)
}

// Correct notes that the client's call root was asked again by the call by, at that time, for all calls of its tree.
func (m *MethodEvidence) Correct(root, by, at string) {
	m.Notes = slices.Clone(m.Notes)
	for i := range m.Notes {
		if n := &m.Notes[i]; n.CallID == root || n.Root == root {
			n.CorrectedBy = by
		}
	}
	for _, c := range slices.Clone(m.Plain) {
		if c.CallID != root && c.Root != root {
			continue
		}
		m.Plain = slices.DeleteFunc(slices.Clone(m.Plain), func(p PlainCall) bool { return p == c })
		m.note(CallNote{CallID: c.CallID, At: at, Root: c.Root, CorrectedBy: by, Before: max(0, m.After-1)})
	}
}

// note adds the newest note.
func (m *MethodEvidence) note(n CallNote) {
	m.After = 0
	m.Notes = append(m.Notes, n)
	m.Notes = m.Notes[max(0, len(m.Notes)-MaxNotes):]
}
