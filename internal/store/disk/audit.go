package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
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
