package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// auditTrail is the part that holds the audit trail: audit.jsonl and the entries that it does not have yet.
type auditTrail struct {
	n *namespace

	pending []*agent.AuditEntry // without a line yet; guarded by shared.mu, as all below
	bytes   int64               // of the file, visible to readers
}

// open finds the end of the file. size is where it ended at the last checkpoint; -1 when there was none.
func (p *auditTrail) open(size int64) error {
	info, err := p.n.files.Stat(auditFile)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	if size >= 0 && size < info.Size {
		p.bytes = size // what is behind comes again from the journal
		return nil
	}
	if size > info.Size {
		p.n.files.reportLost(auditFile, size-info.Size)
	}
	p.bytes, err = jsonl.EndLine(p.n.files, auditFile, info.Size)
	return err
}

// write appends the lines of pending entries.
func (p *auditTrail) write(entries []*agent.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		if lines[i], err = json.Marshal(e); err != nil {
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
	return nil
}

// sync makes the file durable and returns where it ends.
func (p *auditTrail) sync() (int64, error) {
	p.n.mu.RLock()
	size := p.bytes
	p.n.mu.RUnlock()
	if size == 0 {
		return 0, nil
	}
	return size, jsonl.Sync(p.n.files, auditFile)
}

// repair drops the lines that do not parse, and keeps the file as it was aside. The caller holds flusher.mu.
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
	p.bytes = int64(len(good))
	return nil
}

// AppendAudit is part of store.Namespace.
func (p *auditTrail) AppendAudit(ctx context.Context, a agent.AuditEntry) error {
	e := p.n.newEntry()
	e.Audit = &a
	return p.n.commit(ctx, &commit{entry: e})
}

// Audit is part of store.Namespace.
func (p *auditTrail) Audit(ctx context.Context, before string, limit int) ([]agent.AuditEntry, error) {
	p.n.mu.RLock()
	pending, end := p.pending, p.bytes
	p.n.mu.RUnlock()
	out := []agent.AuditEntry{}
	skip := before != ""
	add := func(a *agent.AuditEntry) (full bool) {
		if skip {
			skip = a.ID != before
			return false
		}
		if len(out) < limit {
			out = append(out, *a)
		}
		return len(out) >= limit
	}
	for _, a := range slices.Backward(pending) {
		if add(a) {
			return out, nil
		}
	}
	if end == 0 {
		return out, nil
	}
	f, err := p.n.files.Open(auditFile, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		var a agent.AuditEntry
		if json.Unmarshal(line, &a) != nil {
			p.n.files.reportDamage(auditFile)
			return false, nil
		}
		return add(&a), nil
	})
	return out, err
}
