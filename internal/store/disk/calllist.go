package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// callList collects a page of the call log, in either direction.
type callList struct {
	q           store.CallQuery
	out         []agent.LogEntry
	corrections map[string]string // corrected call to re-ask, for the re-asks that were read
	end         jsonl.Place       // end of the lines that are left to read
	inFiles     bool              // the page begins in the files
	newest      bool              // the page begins at the end of the log, so all re-asks of its calls were read
	last        string            // id of the last call that was read
}

func (l *callList) full() bool { return len(l.out) == l.q.Limit }

// ListCalls is part of store.Namespace.
func (p *calls) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	if q.Owner != "" && q.Scan == nil {
		q.Scan = &store.Scan{Most: math.MaxInt} // owned may shorten the page; Scan.Next says where the next one begins
	}
	l := p.startList(q)
	if l.full() || q.Scan != nil && q.Scan.Next != "" {
		return p.linked(l)
	}
	if l.inFiles {
		at, err := p.entries.Locate(jsonl.Key(q.Before),
			func(line []byte) bool { return jsonl.Member(line, "call_id") == q.Before })
		if err != nil || at == nil {
			return l.out, err
		}
		l.end = *at
	}
	if err := p.entries.Backward(ctx, l.end, func(line []byte) (bool, error) {
		if l.full() || l.q.Scan.Read(l.last) {
			return true, nil
		}
		if !l.add(line) {
			p.n.files.reportDamage(callLogFile)
		}
		return false, nil
	}); err != nil {
		return l.out, err
	}
	return p.linked(l)
}

// CallsAfter is part of store.Namespace.
func (p *calls) CallsAfter(ctx context.Context, after string, limit int) ([]agent.LogEntry, error) {
	p.n.mu.RLock()
	l := &callList{q: store.CallQuery{Limit: limit}, out: []agent.LogEntry{}, corrections: maps.Clone(p.corrections),
		end: p.entries.End()}
	pending := slices.Clone(p.pending)
	at := slices.Index(pending, p.byID[after])
	p.n.mu.RUnlock()
	if at < 0 {
		if err := p.fileAfter(ctx, l, after); err != nil {
			return nil, err
		}
	}
	for _, c := range pending[at+1:] {
		if l.full() {
			break
		}
		l.out = append(l.out, c.log)
	}
	return p.linked(l)
}

// fileAfter adds the calls after a given one from the files, up to the page's end.
func (p *calls) fileAfter(ctx context.Context, l *callList, after string) error {
	var from jsonl.Place
	if after != "" {
		at, err := p.entries.Locate(jsonl.Key(after),
			func(line []byte) bool { return jsonl.Member(line, "call_id") == after })
		if err != nil {
			return err
		}
		if at == nil {
			return store.ErrNotFound
		}
		from = *at
	}
	return p.entries.Forward(ctx, from, l.end, func(line []byte) (bool, error) {
		if after != "" && jsonl.Member(line, "call_id") == after {
			return false, nil
		}
		if !l.add(line) {
			p.n.files.reportDamage(callLogFile)
		}
		return l.full(), nil
	})
}

// startList starts a page with pending calls.
func (p *calls) startList(q store.CallQuery) *callList {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	l := &callList{q: q, last: q.Before, newest: q.Before == "", out: []agent.LogEntry{},
		corrections: maps.Clone(p.corrections), end: p.entries.End()}
	before := len(p.pending)
	if q.Before != "" {
		before = slices.Index(p.pending, p.byID[q.Before])
		l.inFiles = before < 0
	}
	for _, c := range slices.Backward(p.pending[:max(before, 0)]) {
		if l.full() || q.Scan.Read(l.last) {
			break
		}
		l.last = c.log.CallID
		if l.takes(&c.log) {
			l.out = append(l.out, c.log)
		}
	}
	return l
}

// add adds a line of the call log if it belongs on the page. It returns false if the line cannot be read.
func (l *callList) add(line []byte) bool {
	if c, ok := correctionIn(line); ok {
		l.corrections[c.Corrected] = c.CallID
	}
	if id := jsonl.Member(line, "call_id"); id != "" {
		l.last = id
	}
	if l.q.Owner != "" && anothers(line, l.q.Owner) {
		return true
	}
	if l.q.SessionID != "" && !bytes.Contains(line, []byte(l.q.SessionID)) {
		return true
	}
	var e agent.LogEntry
	if json.Unmarshal(line, &e) != nil {
		return false
	}
	if e.CallID != "" && l.takes(&e) { // a line that a repair emptied has no id
		l.out = append(l.out, e)
	}
	return true
}

// takes reports whether the entry belongs on the page. Entries without an owner are left to owned.
func (l *callList) takes(e *agent.LogEntry) bool {
	return l.q.Match(e) && (l.q.Owner == "" || e.Owner == "" || e.Owner == l.q.Owner)
}

// owned removes calls without an owner from the page if their session belongs to another owner. It runs after the log
// is released, because looking up a session while holding the log would violate the lock order.
func (p *calls) owned(l *callList) {
	mine := map[string]bool{}
	full := l.full()
	before := len(l.out)
	l.out = slices.DeleteFunc(l.out, func(e agent.LogEntry) bool {
		if l.q.Owner == "" || e.Owner != "" {
			return false
		}
		known, looked := mine[e.SessionID]
		if !looked {
			x, err := p.n.sessions.get(e.SessionID)
			if err == nil {
				session := x.metadata()
				known = session.OwnedBy(l.q.Owner)
			}
			mine[e.SessionID] = known
		}
		return !known
	})
	if full && len(l.out) < before {
		l.q.Scan.Next = l.last
	}
}

// anothers reports whether the line certainly names another owner, without decoding it. It looks only before the trace
// id, where no client data can imitate the member.
func anothers(line []byte, owner string) bool {
	head, _, _ := bytes.Cut(line, []byte(`"trace_id"`))
	named := jsonl.Member(head, "owner")
	return named != "" && named != owner
}

// linked sets in the entries which call corrected them. If the page is not the first, a re-ask may come before the
// first entry of the page and is found only through the index.
func (p *calls) linked(l *callList) ([]agent.LogEntry, error) {
	p.owned(l)
	window := time.Duration(p.n.policies.current().UserCorrection.WindowSeconds)*time.Second + commitSlack
	hours, now := p.n.policies.current().Retention.ValueHours, p.n.now()
	for i := range l.out {
		e := &l.out[i]
		store.ForgetDebug(e, hours, now)
		e.CorrectedBy = l.corrections[e.CallID]
		if e.CorrectedBy != "" || l.newest || e.Depth > 0 || e.ProgramSource == agent.SourceNone {
			continue
		}
		at, err := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil {
			// The timestamp is damaged; the log is not the source of truth.
			continue
		}
		if err := p.entries.FindWithin(jsonl.Key(e.CallID), at, at.Add(window), func(line []byte) bool {
			c, ok := correctionIn(line)
			if ok = ok && c.Corrected == e.CallID; ok {
				e.CorrectedBy = c.CallID
			}
			return ok
		}); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}
