package disk

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

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
