// Package trail keeps people's decisions and other state that is stored only in the audit trail of a namespace.
//
// A Ledger reads the trail once. A change is written to the trail first and to memory second, so the ledger never knows
// anything that a crash could lose.
package trail

import (
	"context"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Ledger holds values by name, each the outcome of the audit entries about it.
type Ledger[T any] struct {
	store store.Namespace
	fold  func(all map[string]T, e agent.AuditEntry)
	about []string // the actions that concern it

	mu     sync.Mutex   // held from Open to Close: while the trail is read and while a change is written
	loaded bool         // guarded by mu
	all    map[string]T // guarded by mu
}

// New returns a ledger of the entries with these actions in the namespace's trail. fold applies one entry to the values.
func New[T any](s store.Namespace, fold func(all map[string]T, e agent.AuditEntry), about ...string) *Ledger[T] {
	return &Ledger[T]{store: s, fold: fold, about: about}
}

// Open locks the ledger and reads the trail if that has not happened yet; Close unlocks it. After an error it is not locked.
func (l *Ledger[T]) Open(ctx context.Context) error {
	l.mu.Lock()
	if l.loaded {
		return nil
	}
	entries, err := l.store.Audit(ctx, store.AuditQuery{Limit: store.MaxTrail, Actions: l.about})
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.all = map[string]T{}
	for _, e := range slices.Backward(entries) {
		l.fold(l.all, e)
	}
	l.loaded = true
	return nil
}

// Close unlocks the ledger.
func (l *Ledger[T]) Close() { l.mu.Unlock() }

// All returns the values by name. The caller has opened the ledger, and changes nothing.
func (l *Ledger[T]) All() map[string]T { return l.all }

// Note applies an entry that is durable already. The caller has opened the ledger.
func (l *Ledger[T]) Note(e agent.AuditEntry) { l.fold(l.all, e) }

// Write makes an entry durable and applies it. The caller has opened the ledger.
func (l *Ledger[T]) Write(ctx context.Context, e agent.AuditEntry) error {
	if err := l.store.AppendAudit(ctx, e); err != nil {
		return err
	}
	l.Note(e)
	return nil
}
