package store

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// DefaultLimit is the page size of a query without a limit.
const DefaultLimit = 100

// PatternsKept is the number of pattern events kept for a role.
const PatternsKept = 50

// KeyLife is how long a reply is kept under its idempotency key.
const KeyLife = 24 * time.Hour

// Match reports whether the query selects the record. It ignores After and Limit.
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

// Full reports whether a page with n records has no room for another one, which would bring the page to size bytes.
func (q *HistoryQuery) Full(n, size int) bool {
	return n == q.Limit || q.Bytes > 0 && size > q.Bytes && n > 0
}

// Plain reports whether the query selects every record. Then pages can be counted without reading them.
func (q *HistoryQuery) Plain() bool {
	return !q.Depth0 && q.Method == "" && q.Role == "" && q.Status == "" && q.Since.IsZero() && q.Until.IsZero()
}

// CallQuery selects log entries, newest first. Zero fields select any.
type CallQuery struct {
	Before                                  string // a call id; "" means the newest
	Limit                                   int    // 0 means 100
	SessionID, Role, Method, Status, Source string
	ErrorType, TraceID, ParentCallID        string
	WeakSuccess, HistoryAccess              *bool
	Since, Until                            time.Time

	Owner string // of the calls' sessions; "" matches any
	Scan  *Scan  // nil means no limit

	// Stable leaves out calls before which another call may still appear, because another replica is still committing
	// it. The remaining calls are in the order of the change feed.
	Stable bool
}

// A Scan limits the number of entries read for a page, which may then end early.
type Scan struct { // decreases with each entry read
	Most int
	Next string // set by the reader of the page: the Before of the next page if this one ended early, otherwise ""
}

// Match reports whether the query selects the entry. It ignores Before, Limit, Owner, Scan and Stable.
func (q *CallQuery) Match(e *agent.LogEntry) bool {
	equal := func(want, got string) bool { return want == "" || want == got }
	return equal(q.SessionID, e.SessionID) && equal(q.Role, e.Role) && equal(q.Method, e.Method) &&
		equal(q.Status, e.OutcomeStatus) && equal(q.Source, e.ProgramSource) &&
		equal(q.ErrorType, e.OutcomeErrorType) &&
		equal(q.TraceID, e.TraceID) && equal(q.ParentCallID, e.ParentCallID) &&
		(q.WeakSuccess == nil || *q.WeakSuccess == e.WeakSuccess) &&
		(q.HistoryAccess == nil || *q.HistoryAccess == e.HistoryAccessDetected) && within(e.Timestamp, q.Since, q.Until)
}

// Owns reports whether the entry belongs to the query's owner. session looks up the session of an entry without an
// owner.
func (q *CallQuery) Owns(e *agent.LogEntry, session func(id string) (agent.Session, error)) bool {
	if q.Owner == "" || e.Owner != "" {
		return q.Owner == "" || q.Owner == e.Owner
	}
	s, err := session(e.SessionID)
	return err == nil && s.OwnedBy(q.Owner)
}

// Read counts an entry and reports whether the page ends before it. last is the cursor of the entry before. A nil Scan
// has no limit.
func (s *Scan) Read(last string) (ends bool) {
	if s == nil {
		return false
	}
	if s.Most--; s.Most < 0 {
		s.Next = last
	}
	return s.Most < 0
}

// within reports whether the timestamp lies in [since, until). A timestamp that does not parse is outside of any
// bounded range.
func within(timestamp string, since, until time.Time) bool {
	if since.IsZero() && until.IsZero() {
		return true
	}
	t, err := time.Parse(time.RFC3339, timestamp)
	return err == nil && (since.IsZero() || !t.Before(since)) && (until.IsZero() || t.Before(until))
}

// FillLog sets the artifact counters in the entry from a, the artifact after the call. A nil artifact changes nothing.
func FillLog(e *agent.LogEntry, a *agent.Artifact) {
	if a == nil {
		return
	}
	e.ArtifactSuccessCount, e.ArtifactFailureCount = a.SuccessCount, a.FailureCount
	e.ArtifactIntrinsicFailureCount = a.IntrinsicFailureCount
	e.ArtifactAdaptiveFailureCount = a.AdaptiveFailureCount
	e.ArtifactExtrinsicFailureCount = a.ExtrinsicFailureCount
}

// Assign sets in a repeated commit what its first commit assigned. was is the log entry of the first commit.
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

// ForgetDebug removes the debug prompts and context, and the program's notes, from a log entry older than
// RetentionPolicy.ValueHours, because they contain values. It reports whether it removed anything. valueHours 0 keeps
// them forever. An entry whose timestamp does not parse counts as old.
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

// HoldsValues reports whether a log entry has anything that ForgetDebug removes.
func HoldsValues(e *agent.LogEntry) bool {
	return e.SystemPrompt != "" || e.UserPrompt != "" || e.Context != nil || e.Notes != nil
}

// EraseLog removes from a log entry everything in which a call's arguments and values may appear, for a deleted
// session.
func EraseLog(e *agent.LogEntry) {
	e.Args, e.Kwargs = nil, nil
	e.OutcomeErrorMessage, e.OutcomeErrorMetadata = "", nil
	e.SystemPrompt, e.UserPrompt, e.Context, e.Notes = "", "", nil, nil
	e.AttemptFailures, e.Warnings, e.SolverShape = nil, nil, nil
	e.Selection.Figures = nil
	if e.Replayable = false; e.ReplayableReason != agent.ReasonNoProgram { // which is still known
		e.ReplayableReason = agent.ReasonErased
	}
}
