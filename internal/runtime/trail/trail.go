// Package trail keeps people's decisions and other state that is stored only in the audit trail of a namespace.
//
// A Ledger reads the trail once, and from then on what came since, whichever replica wrote it. What is not in the trail it does not know, so it
// never knows anything that a crash could lose.
package trail

import (
	"context"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Ledger holds values by name, each the outcome of the audit entries about it.
type Ledger[T any] struct {
	fold func(all map[string]T, e agent.AuditEntry)

	mu     sync.Mutex   // held from Open to Close: while the trail is read and while a change is written
	reader *Reader      // guarded by mu
	all    map[string]T // guarded by mu
}

// New returns a ledger of the entries with these actions in the namespace's trail. fold applies one entry to the values.
func New[T any](s store.Namespace, fold func(all map[string]T, e agent.AuditEntry), about ...string) *Ledger[T] {
	return &Ledger[T]{fold: fold, reader: NewReader(s, store.AuditQuery{Actions: about})}
}

// Open locks the ledger and reads what is new in the trail; Close unlocks it. After an error it is not locked.
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

// All returns the values by name, as they were when the ledger was opened. The caller has opened it, and changes nothing.
func (l *Ledger[T]) All() map[string]T { return l.all }
