package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// callList collects a page of the call log.
type callList struct {
	q           store.CallQuery
	out         []agent.LogEntry
	corrections map[string]string // corrected call → re-ask, of the re-asks that were met
	end         jsonl.Place       // of the lines that are left to read
	inFiles     bool              // the page begins in the files
}

func (l *callList) full() bool { return len(l.out) == l.q.Limit }

// ListCalls is part of store.Namespace.
func (p *calls) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	l := p.startList(q)
	if l.full() {
		return p.linked(l)
	}
	if l.inFiles {
		at, err := p.entries.Locate(jsonl.Key(q.Before), func(line []byte) bool { return jsonl.Member(line, "call_id") == q.Before })
		if err != nil || at == nil {
			return l.out, err
		}
		l.end = *at
	}
	if err := p.entries.Backward(ctx, l.end, func(line []byte) (bool, error) {
		if l.full() {
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

// startList begins a page with what pending calls it has.
func (p *calls) startList(q store.CallQuery) *callList {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	l := &callList{q: q, out: []agent.LogEntry{}, corrections: maps.Clone(p.corrections), end: p.entries.End()}
	before := len(p.pending)
	if q.Before != "" {
		before = slices.Index(p.pending, p.byID[q.Before])
		l.inFiles = before < 0
	}
	for _, c := range slices.Backward(p.pending[:max(before, 0)]) {
		if l.full() {
			break
		}
		if q.Match(&c.log) {
			l.out = append(l.out, c.log)
		}
	}
	return l
}

// add takes a line of the call log. It reports false for one that cannot be read.
func (l *callList) add(line []byte) bool {
	if c, ok := correctionIn(line); ok {
		l.corrections[c.Corrected] = c.CallID
	}
	if l.q.SessionID != "" && !bytes.Contains(line, []byte(l.q.SessionID)) {
		return true
	}
	var e agent.LogEntry
	if json.Unmarshal(line, &e) != nil {
		return false
	}
	if e.CallID != "" && l.q.Match(&e) { // a line that a repair emptied has no id
		l.out = append(l.out, e)
	}
	return true
}

// linked puts into the entries which call corrected them. On a page that is not the first, a re-ask may stand before the
// page's first entry, where only the index knows it.
func (p *calls) linked(l *callList) ([]agent.LogEntry, error) {
	window := time.Duration(p.n.policies.current().UserCorrection.WindowSeconds)*time.Second + commitSlack
	hours, now := p.n.policies.current().Retention.ValueHours, p.n.now()
	for i := range l.out {
		e := &l.out[i]
		store.ForgetDebug(e, hours, now)
		e.CorrectedBy = l.corrections[e.CallID]
		if e.CorrectedBy != "" || l.q.Before == "" || e.Depth > 0 || e.ProgramSource == agent.SourceNone {
			continue
		}
		at, err := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil {
			continue // damaged: the log is no source of truth
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
