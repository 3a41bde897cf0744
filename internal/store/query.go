package store

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// DefaultLimit is the length of a page when a query names none.
const DefaultLimit = 100

// PatternsKept is how many pattern events a role keeps.
const PatternsKept = 50

// KeyLife is how long a reply is kept under its idempotency key.
const KeyLife = 24 * time.Hour

// Match reports whether the record is one that the query selects; After and Limit are the caller's business.
func (q *HistoryQuery) Match(r *agent.Record) bool {
	switch {
	case q.Depth0 && r.Depth != 0,
		q.Method != "" && r.MethodName != q.Method,
		q.Role != "" && r.Role != q.Role,
		q.Status != "" && r.OutcomeSummary.Status != q.Status:
		return false
	}
	return within(r.Timestamp, q.Since, q.Until)
}

// Full reports whether a page that holds n records has no place for another one, with which they would take size bytes.
func (q *HistoryQuery) Full(n, size int) bool {
	return n == q.Limit || q.Bytes > 0 && size > q.Bytes && n > 0
}

// Plain reports whether the query selects every record, so that pages need not be read to be counted.
func (q *HistoryQuery) Plain() bool {
	return !q.Depth0 && q.Method == "" && q.Role == "" && q.Status == "" && q.Since.IsZero() && q.Until.IsZero()
}

// CallQuery selects log entries; zero fields select any.
type CallQuery struct {
	Before                                  string // call id
	Limit                                   int    // 0 means 100
	SessionID, Role, Method, Status, Source string
	ErrorType, TraceID, ParentCallID        string
	WeakSuccess, HistoryAccess              *bool
	Since, Until                            time.Time

	Owner string // of the calls' sessions; "" for anybody
	Scan  *Scan  // nil for no bound

	// Stable leaves out calls before which another one may still appear in this order: one that is being committed by another replica. What
	// is left is in the order of the change feed.
	Stable bool
}

// A Scan bounds how many entries are read for a page, which may end before it is full.
type Scan struct {
	Most int
	Next string // set by who makes the page: the Before of the next page where this one ended early, else ""
}

// Match reports whether the entry is one that the query selects; Before and Limit are the caller's business.
func (q *CallQuery) Match(e *agent.LogEntry) bool {
	equal := func(want, got string) bool { return want == "" || want == got }
	return equal(q.SessionID, e.SessionID) && equal(q.Role, e.Role) && equal(q.Method, e.Method) &&
		equal(q.Status, e.OutcomeStatus) && equal(q.Source, e.ProgramSource) &&
		equal(q.ErrorType, e.OutcomeErrorType) &&
		equal(q.TraceID, e.TraceID) && equal(q.ParentCallID, e.ParentCallID) &&
		(q.WeakSuccess == nil || *q.WeakSuccess == e.WeakSuccess) &&
		(q.HistoryAccess == nil || *q.HistoryAccess == e.HistoryAccessDetected) && within(e.Timestamp, q.Since, q.Until)
}

// Owns reports whether the entry is one of the query's owner; session finds the session of an entry that names no owner.
func (q *CallQuery) Owns(e *agent.LogEntry, session func(id string) (agent.Session, error)) bool {
	if q.Owner == "" || e.Owner != "" {
		return q.Owner == "" || q.Owner == e.Owner
	}
	s, err := session(e.SessionID)
	return err == nil && s.OwnedBy(q.Owner)
}

// Read counts an entry that is read for a page, and reports whether the page ends before it.
func (s *Scan) Read(last string) (ends bool) {
	if s == nil {
		return false
	}
	if s.Most--; s.Most < 0 {
		s.Next = last
	}
	return s.Most < 0
}

// within reports whether the timestamp lies in [since, until); one that does not parse lies in no bounded span.
func within(timestamp string, since, until time.Time) bool {
	if since.IsZero() && until.IsZero() {
		return true
	}
	t, err := time.Parse(time.RFC3339, timestamp)
	return err == nil && (since.IsZero() || !t.Before(since)) && (until.IsZero() || t.Before(until))
}

// FillLog sets the artifact's counters in the entry from the artifact as it is after the call; a nil artifact
// changes nothing.
func FillLog(e *agent.LogEntry, a *agent.Artifact) {
	if a == nil {
		return
	}
	e.ArtifactSuccessCount, e.ArtifactFailureCount = a.SuccessCount, a.FailureCount
	e.ArtifactIntrinsicFailureCount = a.IntrinsicFailureCount
	e.ArtifactAdaptiveFailureCount = a.AdaptiveFailureCount
	e.ArtifactExtrinsicFailureCount = a.ExtrinsicFailureCount
}

// Assign sets in a commit what was assigned to its call when it was first committed, with that log entry.
func (c *CallCommit) Assign(was *agent.LogEntry) {
	if c.Record.CallID != "" {
		c.Record.Seq = was.ConversationHistorySize
	}
	l := &c.Log
	l.ConversationHistorySize = was.ConversationHistorySize
	l.ArtifactSuccessCount, l.ArtifactFailureCount = was.ArtifactSuccessCount, was.ArtifactFailureCount
	l.ArtifactIntrinsicFailureCount, l.ArtifactAdaptiveFailureCount = was.ArtifactIntrinsicFailureCount,
		was.ArtifactAdaptiveFailureCount
	l.ArtifactExtrinsicFailureCount = was.ArtifactExtrinsicFailureCount
}

// ForgetDebug removes the prompts and the context that a session with debug on left in a log entry, and the program's notes, if the entry is older than
// RetentionPolicy.ValueHours, because they contain values. It reports whether it removed anything.
func ForgetDebug(e *agent.LogEntry, valueHours int, now time.Time) bool {
	if valueHours == 0 || !HoldsValues(e) {
		return false
	}
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err == nil && now.Sub(at) < time.Duration(valueHours)*time.Hour {
		return false
	}
	e.SystemPrompt, e.UserPrompt, e.Context, e.Notes = "", "", nil, nil
	return true
}

// HoldsValues reports whether a log entry has what ForgetDebug removes.
func HoldsValues(e *agent.LogEntry) bool {
	return e.SystemPrompt != "" || e.UserPrompt != "" || e.Context != nil || e.Notes != nil
}

// EraseLog removes from a log entry what a call's arguments and values may have left there, for a deleted session.
func EraseLog(e *agent.LogEntry) {
	e.Args, e.Kwargs = nil, nil
	e.OutcomeErrorMessage, e.OutcomeErrorMetadata = "", nil
	e.SystemPrompt, e.UserPrompt, e.Context, e.Notes = "", "", nil, nil
	e.AttemptFailures, e.Warnings, e.SolverShape = nil, nil, nil
	e.Selection.Figures = nil
	e.Replayable, e.ReplayableReason = false, agent.ReasonErased
}
