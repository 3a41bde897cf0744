package store

import "github.com/recurgentd/recurgentd/internal/agent"

// AuditQuery selects audit entries.
type AuditQuery struct {
	Before string // the id of an entry: older ones; "" for the newest
	Limit  int
	Scan   int // entries that are looked at, at most; 0 for no bound

	Principal, Action, Target string // equal to; "" for any
}

// Match reports whether the query selects the entry, its place aside.
func (q *AuditQuery) Match(e *agent.AuditEntry) bool {
	same := func(want, have string) bool { return want == "" || want == have }
	return same(q.Principal, e.Actor) && same(q.Action, e.Action) && same(q.Target, e.Target)
}

// AuditPage collects what a query selects from entries that come newest first.
type AuditPage struct {
	Entries []agent.AuditEntry

	q       AuditQuery
	skip    bool
	scanned int
}

// NewAuditPage returns an empty page.
func NewAuditPage(q AuditQuery) *AuditPage {
	return &AuditPage{Entries: []agent.AuditEntry{}, q: q, skip: q.Before != ""}
}

// Add looks at the next entry. It reports whether the page is full.
func (p *AuditPage) Add(e *agent.AuditEntry) (full bool) {
	if p.skip {
		p.skip = e.ID != p.q.Before
		return false
	}
	p.scanned++
	if p.q.Match(e) && len(p.Entries) < p.q.Limit {
		p.Entries = append(p.Entries, *e)
	}
	return len(p.Entries) >= p.q.Limit || p.scanned == p.q.Scan
}
