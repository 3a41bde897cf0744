package operator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
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
