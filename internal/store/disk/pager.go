package disk

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/store"
)

// pager collects a page of a history.
type pager struct {
	q       *store.HistoryQuery
	page    *store.HistoryPage
	last    int // seq of the last record in the page
	seen    int // seq of the last record that was read
	scanned int // number of records read
	size    int // bytes of the records in the page

	damaged int // number of lines that cannot be read; they are skipped

	needles [][]byte // texts that a selected line must contain
}

func newPager(q *store.HistoryQuery, page *store.HistoryPage) *pager {
	p := &pager{q: q, page: page}
	for _, name := range []string{q.Method, q.Role, q.Status} {
		if name != "" {
			needle, _ := json.Marshal(name) // a string always encodes
			p.needles = append(p.needles, needle)
		}
	}
	return p
}

// excludes reports whether the line is certainly not selected, without decoding it: its time is outside the query's, or
// it lacks a name and has no escapes that could spell the name.
func (p *pager) excludes(line []byte) bool {
	for _, needle := range p.needles {
		if !bytes.Contains(line, needle) && !bytes.Contains(line, []byte(`\u`)) {
			return true
		}
	}
	if p.q.Since.IsZero() && p.q.Until.IsZero() {
		return false
	}
	at, ok := writtenTime(line)
	return ok && (at.Before(p.q.Since) || !p.q.Until.IsZero() && !at.Before(p.q.Until))
}

// add adds a line if it is selected, and reports whether the page is complete.
func (p *pager) add(line []byte) (full bool) {
	if p.q.Scan > 0 && p.scanned == p.q.Scan {
		p.page.Next = p.seen
		return true
	}
	p.scanned++
	seq := seqOf(line)
	if seq > 0 {
		p.seen = seq
	}
	if !p.q.Plain() {
		if p.excludes(line) {
			return false
		}
		m := recordMeta{}
		if err := json.Unmarshal(line, &m); err == nil && !m.match(p.q) {
			return false
		}
	}
	if seq == 0 || !json.Valid(line) {
		p.damaged++
		return false
	}
	if p.size += len(line); p.q.Full(len(p.page.Records), p.size) {
		p.page.Next = p.last
		return true
	}
	p.page.Records = append(p.page.Records, bytes.Clone(line))
	p.last = p.seen
	return false
}

// seqOf returns a record's seq, or 0 if the line is not a record. It does not decode the record if the seq is where the
// store writes it.
func seqOf(line []byte) int {
	if i := bytes.Index(line, []byte(`"seq":`)); i >= 0 {
		n, digits := 0, 0
		for _, c := range line[i+len(`"seq":`):] {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int(c-'0')
			digits++
		}
		if digits > 0 && digits < 18 && i < 256 {
			return n
		}
	}
	return recordSeq(line)
}
