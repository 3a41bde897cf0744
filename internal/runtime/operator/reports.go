package operator

import (
	"context"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of reports.
const (
	maxReportCalls = 10_000 // newest calls that a report covers
	trendBuckets   = 12
)

// PatternReport is the pattern memory of a role.
type PatternReport struct {
	Role     string               `json:"role"`
	Patterns []evolve.Pattern     `json:"patterns"` // as in a prompt
	Events   []agent.PatternEvent `json:"events"`   // oldest first, at most 50
}

// PatternReport returns what is remembered about a role's calls, with their corrections.
func (o *Operator) PatternReport(ctx context.Context, role string) (PatternReport, error) {
	if err := agent.CheckStoredName("role", role); err != nil {
		return PatternReport{}, err
	}
	kept, err := o.store.Patterns(ctx, role)
	if err != nil {
		return PatternReport{}, err
	}
	report := PatternReport{Role: role, Patterns: evolve.Patterns(evolve.Capable(kept)), Events: slices.Clone(kept)}
	if len(kept) == 0 {
		report.Events = []agent.PatternEvent{}
		return report, nil
	}
	judged := o.verdictsOf()
	for i := range report.Events {
		e := &report.Events[i]
		if c, err := o.store.Call(ctx, e.CallID); err == nil { // retention may have dropped the entry
			e.Corrected, e.Verdict = c.Log.CorrectedBy, judged.on(ctx, &c.Log)
		}
		if e.RootCallID != "" {
			e.Corrected = o.correctionOf(ctx, e.RootCallID)
		}
		if e.Capabilities == nil {
			e.Capabilities = []string{}
		}
	}
	return report, nil
}

// Trends reports where programs came from and how calls failed, over time.
type Trends struct {
	Window    string  `json:"window"`
	Truncated bool    `json:"truncated"` // the window has more than the newest 10,000 calls, which are counted
	Total     Trend   `json:"total"`
	Buckets   []Trend `json:"buckets"` // twelve equal parts of the window, oldest first

	KnownTools KnownTools `json:"known_tools"`
}

// Trend counts the calls of one span of time.
type Trend struct {
	Since         string `json:"since"`
	Until         string `json:"until"`
	Calls         int    `json:"calls"`
	Errors        int    `json:"errors"`
	WeakSuccesses int    `json:"weak_successes"`
	// calls that the client asked again, and those judged wrong
	Corrections   int            `json:"corrections"`
	ProgramSource map[string]int `json:"program_source"`
	FailureClass  map[string]int `json:"failure_class"` // also of failed attempts that were repaired
	ErrorType     map[string]int `json:"error_type"`
	Verdicts      map[string]int `json:"verdicts"` // of people on these calls: right or wrong
}

// newTrend returns an empty span. Its maps are never nil.
func newTrend(since, until time.Time) Trend {
	return Trend{Since: agent.FormatTime(since), Until: agent.FormatTime(until), ProgramSource: map[string]int{},
		FailureClass: map[string]int{}, ErrorType: map[string]int{}, Verdicts: map[string]int{}}
}

// ownClass returns the failure class of the attempt that answered. The entry's class may be that of a stored program
// which failed before.
func ownClass(e *agent.LogEntry) agent.Class {
	earlier := slices.ContainsFunc(e.AttemptFailures, func(f agent.AttemptFailure) bool {
		return f.AttemptID != e.AttemptID && f.FailureClass == e.FailureClass
	})
	switch {
	case e.OutcomeStatus == agent.StatusOK:
		return agent.ClassNone
	case e.OutcomeAuthored && earlier:
		return agent.ClassAuthored
	}
	return e.FailureClass
}

// add counts a call. A call may count several failure classes: one for each failed attempt, and its own.
func (t *Trend) add(e *agent.LogEntry) {
	t.Calls++
	t.ProgramSource[e.ProgramSource]++
	for _, f := range e.AttemptFailures {
		if f.FailureClass != agent.ClassNone && f.AttemptID != e.AttemptID {
			t.FailureClass[string(f.FailureClass)]++
		}
	}
	if class := ownClass(e); class != agent.ClassNone {
		t.FailureClass[string(class)]++
	}
	if e.OutcomeStatus == agent.StatusError {
		t.Errors++
		t.ErrorType[e.OutcomeErrorType]++
	}
	if e.WeakSuccess {
		t.WeakSuccesses++
	}
	if e.UserCorrectionDetected {
		t.Corrections++
	}
	if e.Verdict != "" {
		t.Verdicts[e.Verdict]++
	}
	if e.Verdict == agent.VerdictWrong {
		t.Corrections++
	}
}

// Trends reports on the calls of the last window, in twelve buckets.
func (o *Operator) Trends(ctx context.Context, window time.Duration) (Trends, error) {
	until := o.o.Now().UTC()
	since := until.Add(-window)
	entries, more, err := o.newestCalls(ctx, since, time.Time{}, maxReportCalls)
	if err != nil {
		return Trends{}, err
	}
	t := Trends{Window: window.String(), Truncated: more, Total: newTrend(since, until)}
	step := window / trendBuckets
	for i := range time.Duration(trendBuckets) {
		t.Buckets = append(t.Buckets, newTrend(since.Add(i*step), since.Add((i+1)*step)))
	}
	judged := o.verdictsOf()
	for i := range entries {
		entries[i].Verdict = judged.on(ctx, &entries[i])
		at, err := time.Parse(time.RFC3339, entries[i].Timestamp)
		if err != nil {
			continue
		}
		t.Total.add(&entries[i])
		n := min(max(0, int(at.Sub(since)/step)), trendBuckets-1)
		t.Buckets[n].add(&entries[i])
	}
	t.KnownTools, err = o.knownTools(ctx, since, entries)
	return t, err
}

// newestCalls returns the newest calls that began at or after since and before until, newest first. A zero until means
// no bound. more reports whether it stopped after reading most entries.
func (o *Operator) newestCalls(ctx context.Context, since, until time.Time,
	most int) (calls []agent.LogEntry, more bool, err error) {
	from := agent.FormatTime(since)
	q := store.CallQuery{Until: until}
	for read := 0; read < most; {
		q.Limit = min(1000, most-read)
		page, err := o.store.ListCalls(ctx, q)
		if err != nil {
			return nil, false, err
		}
		read += len(page)
		fits := 0
		for _, e := range page {
			if e.Timestamp >= from {
				calls = append(calls, e)
				fits++
			}
		}
		// the log is in the order of ends, but the window is about begins: stop only at a page without a match
		if len(page) < q.Limit || fits == 0 {
			return calls, false, nil
		}
		q.Before = page[len(page)-1].CallID
	}
	return calls, true, nil
}
