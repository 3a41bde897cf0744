package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// view is a session's history at one moment: the file up to bytes, and the lines after it.
type view struct {
	id      string
	size    int
	bytes   int64
	pending [][]byte
}

// History is part of store.Store. It reads pages from the file by offset, found by bisection, and from the lines in
// memory that the file does not have yet.
func (s *Store) History(ctx context.Context, sessionID string, q store.HistoryQuery) (store.HistoryPage, error) {
	x, err := s.session(sessionID)
	if err != nil {
		return store.HistoryPage{}, err
	}
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	x.mu.RLock()
	v := view{x.id, x.size, x.bytes, x.pending}
	page, done := x.lastOf(&q)
	x.mu.RUnlock()
	if done {
		return page, nil
	}
	page = store.HistoryPage{Records: []json.RawMessage{}, Size: v.size}
	p := newPager(&q, &page)
	if q.Desc {
		err = s.walkBack(ctx, v, p)
	} else {
		err = s.walkForward(ctx, v, p)
	}
	if p.damaged > 0 {
		s.reportDamage(historyFile(v.id))
	}
	return page, err
}

// lastOf answers the question of every warm call (the newest depth-0 record of a role and method) from memory, when
// it can: done. The caller holds mu.
func (x *session) lastOf(q *store.HistoryQuery) (page store.HistoryPage, done bool) {
	if !q.Desc || !q.Depth0 || q.Limit != 1 || q.After != 0 || q.Role == "" || q.Method == "" || q.Status != "" || !q.Until.IsZero() {
		return page, false
	}
	page = store.HistoryPage{Records: []json.RawMessage{}, Size: x.size}
	r, known := x.last[q.Role+"\x00"+q.Method]
	if !known {
		// Records are in the order of their commits, their timestamps are those of the calls' starts.
		return page, x.size == 0 || x.since.IsZero() || !q.Since.IsZero() && !q.Since.Before(x.since)
	}
	if at, err := time.Parse(time.RFC3339, r.at); err == nil && !q.Since.IsZero() && at.Before(q.Since) {
		return page, true
	}
	page.Records = append(page.Records, r.line)
	if r.seq > 1 {
		page.Next = r.seq
	}
	return page, true
}

// pager collects a page.
type pager struct {
	q      *store.HistoryQuery
	page   *store.HistoryPage
	last   int // seq of the last record in the page
	seen   int // seq of the last record looked at
	looked int // how many were
	size   int // bytes of the records in the page

	damaged int // lines that somebody damaged; they do not hide the others

	needles [][]byte // what a line must hold to be selected
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

// passesOver reports whether the line can be told without decoding it to be none that is asked for: a name is not in it, nor
// anything that could spell it in another way, or its time is another.
func (p *pager) passesOver(line []byte) bool {
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
func (p *pager) add(line []byte) (full bool, err error) {
	if p.q.Scan > 0 && p.looked == p.q.Scan {
		p.page.Next = p.seen
		return true, nil
	}
	p.looked++
	seq := seqOf(line)
	if seq > 0 {
		p.seen = seq
	}
	if !p.q.Plain() {
		if p.passesOver(line) {
			return false, nil
		}
		m := recordMeta{}
		if err := json.Unmarshal(line, &m); err == nil && !m.match(p.q) {
			return false, nil
		}
	}
	if seq == 0 || !json.Valid(line) {
		p.damaged++
		return false, nil
	}
	if p.size += len(line); p.q.Full(len(p.page.Records), p.size) {
		p.page.Next = p.last
		return true, nil
	}
	p.page.Records = append(p.page.Records, bytes.Clone(line))
	p.last = p.seen
	return false, nil
}

// seqOf finds a record's seq without decoding it where it stands as the store writes it.
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
	m := recordMeta{}
	_ = json.Unmarshal(line, &m) // 0 for what is no record: lines are checked when the history is opened
	return m.Seq
}

func (s *Store) walkForward(ctx context.Context, v view, p *pager) error {
	written := v.size - len(v.pending) // seq of the file's last record
	if p.q.After < written && v.bytes > 0 {
		f, err := s.fs.Open(historyFile(v.id), false)
		if err != nil {
			return err
		}
		defer f.Close()
		off, err := findSeq(f, v.bytes, p.q.After+1)
		if err != nil {
			return err
		}
		if !p.q.Since.IsZero() {
			from, err := findTime(f, v.bytes, p.q.Since.Add(-commitSlack))
			if err != nil {
				return err
			}
			off = max(off, from)
		}
		full, err := jsonl.Forward(ctx, f, off, v.bytes, func(line []byte) (bool, error) {
			if !p.q.Until.IsZero() && !timeOf(line).Before(p.q.Until.Add(commitSlack)) {
				return true, nil
			}
			return p.add(line)
		})
		if full || err != nil {
			return err
		}
	}
	for _, line := range v.pending[min(max(p.q.After-written, 0), len(v.pending)):] {
		if full, err := p.add(line); full || err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) walkBack(ctx context.Context, v view, p *pager) error {
	written := v.size - len(v.pending)
	to := v.size // the seq of the newest that is asked for
	if p.q.After > 0 {
		to = min(to, p.q.After-1)
	}
	for _, line := range slices.Backward(v.pending[:min(max(to-written, 0), len(v.pending))]) {
		if full, err := p.add(line); full || err != nil {
			return err
		}
	}
	if v.bytes == 0 || to < 1 {
		return nil
	}
	f, err := s.fs.Open(historyFile(v.id), false)
	if err != nil {
		return err
	}
	defer f.Close()
	end := v.bytes
	if to < written {
		if end, err = findSeq(f, v.bytes, to+1); err != nil {
			return err
		}
	}
	if !p.q.Until.IsZero() {
		behind, err := findTime(f, v.bytes, p.q.Until.Add(commitSlack))
		if err != nil {
			return err
		}
		end = min(end, behind)
	}
	stop := time.Time{}
	if !p.q.Since.IsZero() {
		stop = p.q.Since.Add(-commitSlack)
	}
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		if !stop.IsZero() && len(line) > 0 && timeOf(line).Before(stop) {
			return true, nil
		}
		return p.add(line)
	})
	return err
}

// commitSlack is by how much a record's timestamp, the start of its call, may be older than those of the records
// before it: no call lasts longer.
const commitSlack = 2 * time.Hour

// writtenTime finds a record's timestamp without decoding the record, where it stands as the store writes it.
func writtenTime(line []byte) (time.Time, bool) {
	const key = `"timestamp":"`
	head := line[:min(len(line), 256)]
	i := bytes.Index(head, []byte(key))
	if i < 0 || len(head) < i+len(key)+len(agent.TimeFormat)+1 || head[i+len(key)+len(agent.TimeFormat)] != '"' {
		return time.Time{}, false
	}
	at, err := time.Parse(agent.TimeFormat, string(head[i+len(key):i+len(key)+len(agent.TimeFormat)]))
	return at, err == nil
}

// timeOf returns a record's timestamp; one that cannot be read is the end of time, which no search by time stops at early.
func timeOf(line []byte) time.Time {
	if at, ok := writtenTime(line); ok {
		return at
	}
	m := recordMeta{}
	if json.Unmarshal(line, &m) == nil {
		if at, err := time.Parse(time.RFC3339, m.Timestamp); err == nil {
			return at
		}
	}
	return time.Unix(1<<40, 0)
}

// findSeq returns the offset of the first line whose seq is at least seq, by bisection; size when there is none.
func findSeq(f io.ReaderAt, size int64, seq int) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		n := seqOf(line)
		return n >= seq, n > 0
	})
}

// findTime returns the offset of a line such that no line before it was committed at or after at plus commitSlack, and every
// line from it on was committed at or after at: timestamps are those of calls' starts and out of order by up to commitSlack.
func findTime(f io.ReaderAt, size int64, at time.Time) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		return !timeOf(line).Before(at), seqOf(line) > 0
	})
}
