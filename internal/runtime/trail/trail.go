// Package trail keeps people's decisions and other state that is stored only in the audit trail of a namespace.
//
// A Ledger reads the trail once, then only new entries, whichever replica wrote them. It knows only what is in the
// trail, so a crash cannot lose anything that it knows.
package trail

import (
	"context"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Ledger holds named values, each derived from the audit entries about it.
type Ledger[T any] struct {
	fold func(all map[string]T, e agent.AuditEntry)

	mu     sync.Mutex   // held from Open to Close, while the trail is read and while a change is written
	reader *Reader      // guarded by mu
	all    map[string]T // guarded by mu
}

// New returns a ledger of the entries with the given actions in the namespace's trail. fold applies one entry to the
// values.
func New[T any](s store.Namespace, fold func(all map[string]T, e agent.AuditEntry), about ...string) *Ledger[T] {
	return &Ledger[T]{fold: fold, reader: NewReader(s, store.AuditQuery{Actions: about})}
}

// Open locks the ledger and reads the new entries. Close unlocks it. After an error, the ledger is not locked.
func (l *Ledger[T]) Open(ctx context.Context) error {
	l.mu.Lock()
	entries, anew, err := l.reader.Next(ctx)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	if anew {
		l.all = map[string]T{}
	}
	for _, e := range entries {
		l.fold(l.all, e)
	}
	return nil
}

// Close unlocks the ledger.
func (l *Ledger[T]) Close() { l.mu.Unlock() }

// All returns the values by name, as of Open. The ledger must be open, and the map must not be modified.
func (l *Ledger[T]) All() map[string]T { return l.all }
