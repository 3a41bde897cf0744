package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// AuditQuery selects audit entries, newest first.
type AuditQuery struct {
	// Before selects entries older than this one. It is a value of AuditCursor, or the entry's id alone, which has to
	// be searched for. "" means the newest.
	Before string
	Limit  int
	// Since is the time of the oldest entry, as agent.FormatTime formats it: the first entry before it ends the page.
	// "" means no limit. Where clocks went back, later entries can be missing.
	Since string
	Scan  *Scan // limits the entries that are looked at; nil means no limit

	Principal string   // exact match; "" matches any
	Actions   []string // any of these; empty matches any
	Undos     bool     // only operations that undid another one
}

// Match reports whether the query selects the entry. It ignores Before, Limit, Since and Scan.
func (q *AuditQuery) Match(e *agent.AuditEntry) bool {
	return (q.Principal == "" || q.Principal == e.Actor) && (len(q.Actions) == 0 ||
		slices.Contains(q.Actions, e.Action)) && (!q.Undos || e.Undoes != "")
}

// AuditCursor returns a cursor for the entry: its id and, if it is linked into the chain, its number.
func AuditCursor(e *agent.AuditEntry) string {
	if e.Seq == 0 {
		return e.ID // written by a version without a chain
	}
	return e.ID + "-" + strconv.FormatInt(e.Seq, 10)
}

// Place returns where the page begins: after the entry numbered seq or, if seq is 0, after the entry with that id.
func (q *AuditQuery) Place() (id string, seq int64) {
	if i := strings.LastIndexByte(q.Before, '-'); i >= 0 {
		if seq, err := strconv.ParseInt(q.Before[i+1:], 10, 64); err == nil && seq > 0 {
			return q.Before[:i], seq
		}
	}
	return q.Before, 0
}

// AuditPage collects the entries that a query selects. The entries come newest first.
type AuditPage struct {
	Entries []agent.AuditEntry

	q    AuditQuery
	id   string // of the entry before the page; "" once it was found
	seq  int64
	last func() string // returns the cursor of the last entry that was looked at
}

// NewAuditPage returns an empty page.
func NewAuditPage(q AuditQuery) *AuditPage {
	p := &AuditPage{Entries: []agent.AuditEntry{}, q: q, last: func() string { return q.Before }}
	p.id, p.seq = q.Place()
	return p
}

// Seeks returns the id of the entry before the page, as long as it has not been found. It returns "" once it was found
// or if its number is known.
func (p *AuditPage) Seeks() string {
	if p.seq > 0 {
		return ""
	}
	return p.id
}

// Add looks at the next entry and reports whether the page has ended.
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
	if e.Timestamp < p.q.Since || p.Pass(func() string { return AuditCursor(e) }) {
		return true
	}
	if p.q.Match(e) && len(p.Entries) < p.q.Limit {
		p.Entries = append(p.Entries, *e)
	}
	return len(p.Entries) >= p.q.Limit
}

// Pass counts an entry past the start of the page against the query's Scan, whether the query selects it or not. It
// reports whether the page ends before this entry. cursor returns the entry's cursor.
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
