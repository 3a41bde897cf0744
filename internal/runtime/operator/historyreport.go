package operator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// HistoryUsage is a report on how programs use the history.
type HistoryUsage struct {
	Usage
	Since string      `json:"since"` // time of the oldest counted call; "" if there is none
	Until string      `json:"until"`
	Roles []RoleUsage `json:"roles"` // sorted by role

	Truncated  bool         `json:"truncated"`  // the window has more than the newest 10,000 calls, which are counted
	ByAccess   ByAccess     `json:"by_access"`  // outcomes with and without access to the history
	Delegation []Delegation `json:"delegation"` // callers and called methods, most frequent first, at most 50 pairs
}

// ByAccess separates calls whose program refers to the history from the others.
type ByAccess struct {
	With    Outcomes `json:"with"`
	Without Outcomes `json:"without"`
}

// Outcomes summarizes a group of calls. Durations are in milliseconds. History sizes are records in the session.
type Outcomes struct {
	Calls int `json:"calls"`
	OK    int `json:"ok"`
	Weak  int `json:"weak"` // of the OK calls
	// calls that the client asked again, or whose root call it did
	Corrected    int            `json:"corrected"`
	ErrorTypes   map[string]int `json:"error_types"`
	MeanDuration float64        `json:"mean_duration_ms"`
	P95Duration  float64        `json:"p95_duration_ms"`
	MeanHistory  float64        `json:"mean_history_records"`
	MaxHistory   int            `json:"max_history_records"`

	durations []float64 // of all calls, for finish
}

// Delegation counts the calls that programs of one method made of another.
type Delegation struct {
	From         string  `json:"from"` // role.method
	To           string  `json:"to"`
	Calls        int     `json:"calls"`
	OK           int     `json:"ok"`
	Weak         int     `json:"weak"`
	WithAccess   int     `json:"with_access"` // calls whose calling program refers to the history
	MeanDuration float64 `json:"mean_duration_ms"`
}

// Usage counts calls that ran a program.
type Usage struct {
	Calls      int            `json:"calls"`
	WithAccess int            `json:"with_access"` // calls whose program refers to the history
	Share      float64        `json:"share"`       // 0 to 1
	Tags       map[string]int `json:"tags"`        // by query pattern: filter, map, slice, count or group
	Verdicts   map[string]int `json:"verdicts"`    // of people on the calls, by verdict: right or wrong
}

// RoleUsage is the usage of one role.
type RoleUsage struct {
	Role string `json:"role"`
	Usage
}

func newUsage() Usage { return Usage{Tags: map[string]int{}, Verdicts: map[string]int{}} }

// add counts a call.
func (u *Usage) add(e *agent.LogEntry) {
	u.Calls++
	if e.HistoryAccessDetected {
		u.WithAccess++
	}
	for _, tag := range e.HistoryQueryPatterns {
		u.Tags[tag]++
	}
	if e.Verdict != "" {
		u.Verdicts[e.Verdict]++
	}
	u.Share = float64(u.WithAccess) / float64(u.Calls)
}

// maxDelegations bounds the pairs in a report.
const maxDelegations = 50

// HistoryUsage reports on the newest 10,000 calls that began at or after since and before until. A zero time means no
// bound.
func (o *Operator) HistoryUsage(ctx context.Context, since, until time.Time) (HistoryUsage, error) {
	entries, more, err := o.newestCalls(ctx, since, until, maxReportCalls)
	if err != nil {
		return HistoryUsage{}, err
	}
	report := HistoryUsage{Usage: newUsage(), Roles: []RoleUsage{}, Truncated: more, Delegation: delegations(entries)}
	report.ByAccess.With.ErrorTypes, report.ByAccess.Without.ErrorTypes = map[string]int{}, map[string]int{}
	o.linkTrees(ctx, entries)
	roles, judged := map[string]*RoleUsage{}, o.verdictsOf()
	for i := range entries {
		e := &entries[i]
		e.Verdict = judged.on(ctx, e)
		if e.ProgramSource == agent.SourceNone {
			continue
		}
		if report.Until == "" {
			report.Until = e.Timestamp
		}
		report.Since = e.Timestamp
		report.add(e)
		if roles[e.Role] == nil {
			roles[e.Role] = &RoleUsage{Role: e.Role, Usage: newUsage()}
		}
		roles[e.Role].add(e)
		if e.HistoryAccessDetected {
			report.ByAccess.With.add(e)
		} else {
			report.ByAccess.Without.add(e)
		}
	}
	report.ByAccess.With.finish()
	report.ByAccess.Without.finish()
	for _, u := range roles {
		report.Roles = append(report.Roles, *u)
	}
	slices.SortFunc(report.Roles, func(a, b RoleUsage) int { return cmp.Compare(a.Role, b.Role) })
	return report, nil
}

// add counts a call. Until finish, the means are sums.
func (u *Outcomes) add(e *agent.LogEntry) {
	u.Calls++
	if e.OutcomeStatus == agent.StatusOK {
		u.OK++
	} else {
		u.ErrorTypes[e.OutcomeErrorType]++
	}
	if e.WeakSuccess {
		u.Weak++
	}
	if e.CorrectedBy != "" {
		u.Corrected++
	}
	u.MeanDuration += e.DurationMs
	u.durations = append(u.durations, e.DurationMs)
	u.MeanHistory += float64(e.ConversationHistorySize)
	u.MaxHistory = max(u.MaxHistory, e.ConversationHistorySize)
}

// finish turns sums into means, and sets the percentile.
func (u *Outcomes) finish() {
	if u.Calls == 0 {
		return
	}
	u.MeanDuration = rounded(u.MeanDuration / float64(u.Calls))
	u.MeanHistory = rounded(u.MeanHistory / float64(u.Calls))
	slices.Sort(u.durations)
	u.P95Duration = rounded(u.durations[(len(u.durations)*95+99)/100-1])
}

// rounded rounds to three decimals.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// delegations counts calls by pair of caller and called method. It ignores calls whose caller is not in entries.
func delegations(entries []agent.LogEntry) []Delegation {
	byID := make(map[string]*agent.LogEntry, len(entries))
	for i := range entries {
		byID[entries[i].CallID] = &entries[i]
	}
	pairs := map[[2]string]*Delegation{}
	for i := range entries {
		e := &entries[i]
		from := byID[e.ParentCallID]
		if from == nil {
			continue
		}
		k := [2]string{from.Role + "." + from.Method, e.Role + "." + e.Method}
		d := pairs[k]
		if d == nil {
			d = &Delegation{From: k[0], To: k[1]}
			pairs[k] = d
		}
		d.Calls++
		d.MeanDuration += e.DurationMs
		if e.OutcomeStatus == agent.StatusOK {
			d.OK++
		}
		if e.WeakSuccess {
			d.Weak++
		}
		if from.HistoryAccessDetected {
			d.WithAccess++
		}
	}
	out := make([]Delegation, 0, len(pairs))
	for _, d := range pairs {
		d.MeanDuration = rounded(d.MeanDuration / float64(d.Calls))
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Delegation) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out[:min(len(out), maxDelegations)]
}

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
