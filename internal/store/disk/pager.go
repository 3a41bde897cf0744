package disk

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/store"
)

// pager collects a page.
type pager struct {
	q       *store.HistoryQuery
	page    *store.HistoryPage
	last    int // seq of the last record in the page
	seen    int // seq of the last record that was read
	scanned int // records that were read
	size    int // bytes of the records in the page

	damaged int // lines that cannot be read; they do not hide the others

	needles [][]byte // what a line must contain to be selected
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

// excludes reports whether the line is certainly not selected, without decoding it: a name is missing, and nothing could
// spell it in another way, or its time is outside the query's.
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

// add takes a line and reports whether the page is full and complete.
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

// seqOf returns a record's seq, without decoding the record where it stands as the store writes it; 0 for a line that is
// no record.
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
