package agent

import "slices"

// Bounds of MethodEvidence.
const (
	MaxNotes = 200 // the newest remarkable calls
	maxPlain = 20  // the newest plain calls
)

// MethodEvidence aggregates the outcomes of one method's calls. It outlives their entries in the call log. A call is
// either remarkable (see CallNote) or plain. Copies share lists, which never change in place.
type MethodEvidence struct {
	Role   string      `json:"role"`
	Method string      `json:"method"`
	Calls  int64       `json:"calls"`            // calls that ran a program, or failed to get one
	Last   string      `json:"last"`             // when the newest of these began
	After  int         `json:"after,omitempty"`  // plain calls since the newest note
	Plain  []PlainCall `json:"plain,omitempty"`  // the newest plain calls, oldest first
	Notes  []CallNote  `json:"notes,omitempty"`  // the newest remarkable calls, oldest first
	Judged bool        `json:"judged,omitempty"` // a person has given a verdict on some call
}

// PlainCall is a call that needs no CallNote.
type PlainCall struct {
	CallID string `json:"call_id"`
	Root   string `json:"root,omitempty"` // as in CallNote
}

// CallNote is one remarkable call: it was weak, failed, was repaired within the call, or was asked again.
type CallNote struct {
	CallID string `json:"call_id"`
	At     string `json:"at"`
	// Root is the id of the client's call above a nested call; "" for a client's call.
	Root      string   `json:"root,omitempty"`
	Before    int      `json:"before,omitempty"` // plain calls of the method between the previous note and this one
	ErrorType string   `json:"error_type,omitempty"`
	Authored  bool     `json:"authored,omitempty"`
	Class     Class    `json:"class,omitempty"`
	Weak      []string `json:"weak,omitempty"` // reasons
	// Passed means that a nested call caused it: that call was weak or authored the error.
	Passed bool `json:"passed,omitempty"`
	// CorrectedBy is the id of the client's call that asked the root's question again.
	CorrectedBy string `json:"corrected_by,omitempty"`
	// OwnContract is the session of the call if the contract came with the call or the session.
	OwnContract string `json:"own_contract,omitempty"`
}

// OK reports whether the call ended without an error.
func (n *CallNote) OK() bool { return n.ErrorType == "" }

// IsEvidence reports whether the entry describes a call that has ended and that ran a program or failed to get one.
func (e *LogEntry) IsEvidence() bool {
	return e.OutcomeStatus != StatusRunning && (e.ProgramSource != SourceNone || e.OutcomeStatus != StatusOK)
}

// RawMessageKey is the key of an outcome's metadata that has the last failure's message, if the daemon gave up.
const RawMessageKey = "raw_error_message"

// GaveUp reports whether the daemon ended the call with its own message, because programs failed as often as the policy
// allows.
func (e *LogEntry) GaveUp() bool {
	_, yes := e.OutcomeErrorMetadata[RawMessageKey]
	return yes
}

// MayBeRight reports whether a program answered, with a value or with an error that it returned.
func (e *LogEntry) MayBeRight() bool {
	return e.OutcomeStatus == StatusOK || e.OutcomeAuthored && !e.GaveUp()
}

// noteOf returns the note of a remarkable call; ok is false for a plain one.
func noteOf(e *LogEntry) (n CallNote, ok bool) {
	n = CallNote{CallID: e.CallID, At: e.Timestamp, Root: e.RootCallID, ErrorType: e.OutcomeErrorType,
		Authored: e.OutcomeAuthored, Class: failureOf(e),
		Weak: e.WeakSuccessReasons, Passed: e.WeakNestedCalls > 0 || e.OutcomePassedOn}
	if len(n.Weak) == 0 && n.ErrorType == "" && n.Class == ClassNone {
		return CallNote{}, false
	}
	// Only for client calls: the registry's contract wins over those of nested calls.
	if e.Depth == 0 && (e.ContractSource == ContractOfCall || e.ContractSource == ContractMerged) {
		n.OwnContract = e.SessionID
	}
	return n, true
}

// failureOf returns the class of the call's failure: its own, or that of the stored program that failed and was
// repaired within the call. Failures of programs that were not stored do not count against the stored one.
func failureOf(e *LogEntry) Class {
	if e.FailureClass != ClassNone || e.Selection.Decision != DecideRun || len(e.AttemptFailures) == 0 {
		return e.FailureClass
	}
	return e.AttemptFailures[0].FailureClass
}

// Add adds a call. It must be newer than those added before.
func (m *MethodEvidence) Add(e *LogEntry) {
	m.Calls++
	m.Last = max(m.Last, e.Timestamp)
	n, remarkable := noteOf(e)
	if !remarkable {
		m.After++
		m.Plain = append(m.Plain, PlainCall{e.CallID, e.RootCallID})
		m.Plain = m.Plain[max(0, len(m.Plain)-maxPlain):]
		return
	}
	n.Before = m.After
	m.note(n)
}

// Correct records that the call by repeated, at that time, the question of the call root. It marks root and all calls
// below it.
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

// note appends the newest note.
func (m *MethodEvidence) note(n CallNote) {
	m.After = 0
	m.Notes = append(m.Notes, n)
	m.Notes = m.Notes[max(0, len(m.Notes)-MaxNotes):]
}

// Weak counts the method's own weak answers among its newest calls, at most newest of them. It returns the number of
// calls looked at and the distinct reasons, newest first.
func (m *MethodEvidence) Weak(newest int) (weak, of int, reasons []string) {
	of = m.After
	for i := len(m.Notes) - 1; i >= 0 && of < newest; i-- {
		n := &m.Notes[i]
		if len(n.Weak) > 0 && !n.Passed {
			weak++
			for _, r := range n.Weak {
				if !slices.Contains(reasons, r) {
					reasons = append(reasons, r)
				}
			}
		}
		of += 1 + n.Before
	}
	return weak, min(of, newest), reasons
}
