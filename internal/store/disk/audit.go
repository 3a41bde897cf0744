package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// auditTrail is the part that holds the audit trail: audit.jsonl and the entries that the file does not have yet.
type auditTrail struct {
	n *namespace

	pending []*agent.AuditEntry // entries without a line yet; guarded by shared.mu, as are bytes and chainHead
	bytes   int64               // size of the file as readers see it
	// end of the chain, pending entries included; it has not begun before the first linked entry
	chainHead chain.Head

	synced  int64      // bytes of the file known to be on disk; guarded by flusher.mu, as is written
	written chain.Head // end of the chain in the file
}

// open finds the ends of the file and of the chain. at is what the last checkpoint recorded; nil means that there is
// none.
func (p *auditTrail) open(at *checkpointed) error {
	info, err := p.n.files.Stat(auditFile)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	if at != nil && at.Audit > info.Size {
		p.n.files.reportLost(auditFile, at.Audit-info.Size)
	}
	if at != nil && at.Audit < info.Size {
		// The entries after it come again from the journal.
		p.bytes = at.Audit
	} else if p.bytes, err = jsonl.EndLine(p.n.files, auditFile, info.Size); err != nil {
		return err
	}
	last, err := p.last()
	if err != nil {
		return err
	}
	p.chainHead = chain.Head{Seq: last.Seq, Hash: last.Hash}
	if at != nil && at.AuditHead != nil {
		if p.chainHead != *at.AuditHead {
			p.n.log.Error().Str("file", p.n.files.path(auditFile)).Int64("entry", at.AuditHead.Seq).
				Msg("the audit trail does not end as the last checkpoint left it; recurgentd store verify says what is wrong with it")
		}
		// With the recorded end, missing entries remain detectable.
		p.chainHead = *at.AuditHead
	}
	p.written = p.chainHead
	return nil
}

// last returns the last entry of the file. It returns the zero value if there is none or the line cannot be read.
func (p *auditTrail) last() (e agent.AuditEntry, err error) {
	if p.bytes == 0 {
		return e, nil
	}
	f, err := p.n.files.Open(auditFile, false)
	if err != nil {
		return e, err
	}
	defer f.Close()
	_, err = jsonl.Backward(context.Background(), f, p.bytes, func(line []byte, _ int64) (bool, error) {
		if json.Unmarshal(line, &e) != nil {
			e = agent.AuditEntry{}
		}
		return true, nil
	})
	return e, err
}

// write appends the lines of pending entries.
func (p *auditTrail) write(entries []*agent.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		if lines[i], err = chain.Line(e); err != nil {
			return err
		}
	}
	n, err := jsonl.Append(p.n.files, auditFile, p.bytes, lines) // only the flusher changes bytes
	if err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.bytes += n
	p.pending = p.pending[len(entries):]
	if last := entries[len(entries)-1]; last.Hash != "" {
		p.written = chain.Head{Seq: last.Seq, Hash: last.Hash}
	}
	return nil
}

// sync makes the file durable and sets in at where it and its chain end.
func (p *auditTrail) sync(at *checkpointed) error {
	p.n.mu.RLock()
	at.Audit = p.bytes
	p.n.mu.RUnlock()
	if p.written.Begun() {
		head := p.written
		at.AuditHead = &head
	}
	if at.Audit == p.synced {
		return nil
	}
	err := jsonl.Sync(p.n.files, auditFile)
	if err == nil {
		p.synced = at.Audit
	}
	return err
}

// repair removes the lines that do not parse, after moving the damaged file aside. The caller holds flusher.mu.
func (p *auditTrail) repair() error {
	data, err := p.n.files.ReadFile(auditFile)
	if vfs.NotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	good := make([]byte, 0, len(data))
	for line := range bytes.SplitSeq(data[:min(int64(len(data)), p.bytes)], []byte("\n")) {
		if len(line) > 0 && json.Unmarshal(line, &agent.AuditEntry{}) == nil {
			good = append(append(good, line...), '\n')
		}
	}
	if int64(len(good)) == p.bytes {
		return nil
	}
	if err := p.n.files.moveAside(auditFile, errors.New("lines that do not parse")); err != nil {
		return err
	}
	if err := p.n.files.Replace(auditFile, good); err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.bytes, p.synced = int64(len(good)), 0
	return nil
}

// AppendAudit is part of store.Namespace.
func (p *auditTrail) AppendAudit(ctx context.Context, a agent.AuditEntry) error {
	e := p.n.newEntry()
	e.Audit = &a
	return p.n.commit(ctx, &commit{entry: e})
}

// AuditHead is part of store.Namespace.
func (p *auditTrail) AuditHead(context.Context) (chain.Head, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.chainHead, nil
}

// plan links an entry to the one before it in commit order. The caller holds sequencer.mu.
func (p *auditTrail) plan(e *entry) error {
	if e.Audit == nil {
		return nil
	}
	head := p.n.batch.head
	if !head.Begun() {
		var err error
		if head, err = p.start(); err != nil {
			return err
		}
	}
	linked := *e.Audit
	next, err := chain.Link(head, &linked)
	if err != nil {
		return err
	}
	e.Audit, p.n.batch.head = &linked, next
	return nil
}

// start returns the head that the first entry of a batch links to. If the chain has not begun, it begins after the
// lines of an earlier version.
func (p *auditTrail) start() (chain.Head, error) {
	p.n.mu.RLock()
	head, pending, size := p.chainHead, p.pending, p.bytes
	p.n.mu.RUnlock()
	if head.Begun() {
		return head, nil
	}
	v := chain.NewVerifier(p.n.name, nil)
	data, err := p.read(size)
	if err != nil {
		return chain.Head{}, err
	}
	for line := range bytes.Lines(data) {
		v.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
	for _, a := range pending {
		line, err := chain.Line(a)
		if err != nil {
			return chain.Head{}, err
		}
		v.Add(line)
	}
	return v.Next(), nil
}

// read returns the first size bytes of the file.
func (p *auditTrail) read(size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	data, err := p.n.files.ReadFile(auditFile)
	return data[:min(size, int64(len(data)))], err
}

// apply adds an entry. The caller holds sequencer.mu and shared.mu.
func (p *auditTrail) apply(a *agent.AuditEntry) {
	if a.Hash != "" && a.Seq <= p.chainHead.Seq {
		// The entry was replayed because the checkpoint is lost; the file has it already.
		return
	}
	p.pending = append(p.pending, a)
	if a.Hash != "" {
		p.chainHead = chain.Head{Seq: a.Seq, Hash: a.Hash}
	}
}

// forget erases the bodies of pending entries about a deleted session. The caller holds shared.mu.
func (p *auditTrail) forget(session string) {
	for i, a := range p.pending {
		if a.SessionID == session {
			erased := chain.Erase(*a)
			p.pending[i] = &erased
		}
	}
}

// erase erases the bodies of entries about deleted sessions from the file. Each line is padded with spaces to its old
// length, so concurrent readers find the other lines in their places. The caller holds flusher.mu.
func (p *auditTrail) erase(match func(session string) bool) error {
	if any, err := p.hasAny(match); err != nil || !any {
		// Most sessions have no entries, and the file is not rewritten for them.
		return err
	}
	data, err := p.n.files.ReadFile(auditFile)
	if err != nil {
		return err
	}
	out := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		if a, about := about(line, match); about {
			erased := chain.Erase(a)
			short, err := chain.Line(&erased)
			if err != nil {
				return err
			}
			line = append(append(short, bytes.Repeat([]byte(" "), max(0, len(line)-len(short)-1))...), '\n')
		}
		out = append(out, line...)
	}
	p.synced = 0
	return p.n.files.Replace(auditFile, out)
}

// about decodes a line and reports whether its entry is about one of the sessions and can be erased.
func about(line []byte, match func(session string) bool) (a agent.AuditEntry, about bool) {
	about = bytes.Contains(line, []byte(`"session_id":"`)) && json.Unmarshal(line, &a) == nil && a.SessionID != "" &&
		a.Hash != "" && match(a.SessionID)
	return a, about
}

// hasAny reports whether the file has an entry about one of the sessions.
func (p *auditTrail) hasAny(match func(session string) bool) (bool, error) {
	f, err := p.n.files.Open(auditFile, false)
	if vfs.NotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	return jsonl.Forward(context.Background(), f, 0, size, func(line []byte) (bool, error) {
		_, found := about(line, match)
		return found, nil
	})
}

// Audit is part of store.Namespace. If the query's cursor has the number of an entry, the start of the page is found by
// bisection instead of reading the file from its end.
func (p *auditTrail) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	p.n.mu.RLock()
	pending, end := slices.Clone(p.pending), p.bytes
	p.n.mu.RUnlock()
	page := store.NewAuditPage(q)
	for _, a := range slices.Backward(pending) {
		if page.Add(a) {
			return page.Entries, nil
		}
	}
	if end == 0 {
		return page.Entries, nil
	}
	f, err := p.n.files.Open(auditFile, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, seq := q.Place(); seq > 0 {
		if end, err = endBefore(f, end, seq); err != nil {
			return nil, err
		}
	}
	wanted := newAuditFilter(q)
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		if id := page.Seeks(); id != "" && !bytes.Contains(line, []byte(`"id":"`+id+`"`)) {
			return false, nil
		} else if id == "" && !wanted.may(line) {
			return before(line, q.Since) || page.Pass(func() string { return cursorOf(line) }), nil
		}
		var a agent.AuditEntry
		if json.Unmarshal(line, &a) != nil {
			p.n.files.reportDamage(auditFile)
			return false, nil
		}
		return page.Add(&a), nil
	})
	return page.Entries, err
}

// endBefore returns the offset of the line with the entry number seq in a file of that size.
func endBefore(f io.ReaderAt, size, seq int64) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		var e struct{ Seq int64 }
		err := json.Unmarshal(line, &e)
		return e.Seq >= seq, err == nil
	})
}

// before reports whether a line's entry is older than a time, which may be "". It does not decode the line: the time is
// the first of its values but for the id.
func before(line []byte, since string) bool {
	const field = `"timestamp":"`
	i := bytes.Index(line, []byte(field))
	if since == "" || i < 0 {
		return false
	}
	at := line[i+len(field):]
	return string(at[:min(len(since), len(at))]) < since
}

// cursorOf returns the cursor of a line's entry.
func cursorOf(line []byte) string {
	var e agent.AuditEntry
	_ = json.Unmarshal(line, &e) // a damaged line has no cursor and ends the paging
	return store.AuditCursor(&e)
}

// auditFilter excludes most of the lines that a query does not select without decoding them.
type auditFilter struct {
	principal []byte
	actions   [][]byte
	undoes    []byte
}

func newAuditFilter(q store.AuditQuery) (f auditFilter) {
	if q.Principal != "" {
		f.principal = append([]byte(`"actor":`), agent.Encoded(q.Principal)...)
	}
	if q.Undos {
		f.undoes = []byte(`"undoes":`)
	}
	for _, a := range q.Actions {
		f.actions = append(f.actions, append([]byte(`"action":`), agent.Encoded(a)...))
	}
	return f
}

// may reports whether the query may select the line.
func (f *auditFilter) may(line []byte) bool {
	return bytes.Contains(line, f.principal) && bytes.Contains(line, f.undoes) &&
		(len(f.actions) == 0 || slices.ContainsFunc(f.actions, func(a []byte) bool { return bytes.Contains(line, a) }))
}
