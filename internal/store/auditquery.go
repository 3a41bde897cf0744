package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// AuditQuery selects audit entries.
type AuditQuery struct {
	// older ones than this entry: what AuditCursor returned of it, or its id alone, which is searched for; "" for the newest
	Before string
	Limit  int
	Scan   *Scan // bounds the entries that are looked at; nil for no bound

	Principal string   // equal to; "" for any
	Actions   []string // one of them; none for any
	Undos     bool     // only operations that undid another one
}

// Match reports whether the query selects the entry, its place aside.
func (q *AuditQuery) Match(e *agent.AuditEntry) bool {
	return (q.Principal == "" || q.Principal == e.Actor) && (len(q.Actions) == 0 ||
		slices.Contains(q.Actions, e.Action)) && (!q.Undos || e.Undoes != "")
}

// AuditCursor names the entry and its place in the chain.
func AuditCursor(e *agent.AuditEntry) string {
	if e.Seq == 0 {
		return e.ID // of an earlier version
	}
	return e.ID + "-" + strconv.FormatInt(e.Seq, 10)
}

// Place is where the page begins: behind the entry with that number, or, where that is 0, behind the one of that id.
func (q *AuditQuery) Place() (id string, seq int64) {
	if i := strings.LastIndexByte(q.Before, '-'); i >= 0 {
		if seq, err := strconv.ParseInt(q.Before[i+1:], 10, 64); err == nil && seq > 0 {
			return q.Before[:i], seq
		}
	}
	return q.Before, 0
}

// AuditPage collects what a query selects from entries that come newest first.
type AuditPage struct {
	Entries []agent.AuditEntry

	q    AuditQuery
	id   string // of the entry before the page, until it was found
	seq  int64
	last func() string // the cursor of the entry that was looked at last
}

// NewAuditPage returns an empty page.
func NewAuditPage(q AuditQuery) *AuditPage {
	p := &AuditPage{Entries: []agent.AuditEntry{}, q: q, last: func() string { return q.Before }}
	p.id, p.seq = q.Place()
	return p
}

// Seeks returns the id of the entry that the page begins behind while that was not found; "" when it was, or when its number is known.
func (p *AuditPage) Seeks() string {
	if p.seq > 0 {
		return ""
	}
	return p.id
}

// Add looks at the next entry. It reports whether the page has ended.
func (p *AuditPage) Add(e *agent.AuditEntry) (ended bool) {
	switch {
	case p.seq > 0 && e.Seq >= p.seq:
		return false
	case p.Seeks() != "":
		if e.ID == p.id {
			p.id = ""
		}
		return false
	}
	if p.Pass(func() string { return AuditCursor(e) }) {
		return true
	}
	if p.q.Match(e) && len(p.Entries) < p.q.Limit {
		p.Entries = append(p.Entries, *e)
	}
	return len(p.Entries) >= p.q.Limit
}

// Pass counts an entry that is behind the page's beginning, whether the query selects it or not. It reports whether the page has ended before it.
func (p *AuditPage) Pass(cursor func() string) (ended bool) {
	if p.q.Scan != nil {
		last := ""
		if p.q.Scan.Most <= 0 {
			last = p.last()
		}
		if p.q.Scan.Read(last) {
			return true
		}
	}
	p.last = cursor
	return false
}
