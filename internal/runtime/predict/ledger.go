package predict

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Actions of the audit trail that the ledger reads.
const (
	opSignaturePut    = "signature.put"
	opSignatureDelete = "signature.delete"
)

// A ledger holds the named signatures. They stand in the audit trail, which is durable, and are read from it once. A
// change is written to the trail first and to the ledger second.
type ledger struct {
	store store.Namespace

	mu     sync.Mutex       // held from open to close: while the trail is read and while a change is written
	loaded bool             // guarded by mu
	all    map[string]Named // by name; guarded by mu
}

// open locks the ledger and reads the trail if that has not happened yet; close unlocks it. After an error it is not locked.
func (l *ledger) open(ctx context.Context) error {
	l.mu.Lock()
	if l.loaded {
		return nil
	}
	entries, err := l.store.Audit(ctx, "", store.MaxTrail)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.all = map[string]Named{}
	for _, e := range slices.Backward(entries) {
		l.apply(e)
	}
	l.loaded = true
	return nil
}

func (l *ledger) close() { l.mu.Unlock() }

// apply applies one audit entry. The caller holds the ledger.
func (l *ledger) apply(e agent.AuditEntry) {
	switch e.Action {
	case opSignaturePut:
		var s Named
		if json.Unmarshal(e.After, &s) == nil {
			l.all[e.Target] = s
		}
	case opSignatureDelete:
		delete(l.all, e.Target)
	}
}

// write makes a change durable and applies it. The caller holds the ledger.
func (l *ledger) write(ctx context.Context, e agent.AuditEntry) error {
	if err := l.store.AppendAudit(ctx, e); err != nil {
		return err
	}
	l.apply(e)
	return nil
}
